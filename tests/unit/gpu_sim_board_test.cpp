// Facts about the simulated board: its energy, heat and time are exact and stay as they were.
#include "gpu/sim_board.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::gpu {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::still_model;

constexpr Work kCopy{1e8, 0, 1, 1};

// Replays of `launches` copies until `length` has passed.
void load(VirtualClock& clock, SimBoard& board, Nanos length, const Work& work = kCopy,
          std::uint32_t launches = 1000) {
  const auto end = clock.now() + length;
  while (clock.now() < end) clock.sleep_until(board.enqueue(work, launches));
}

TEST(SimBoard, energy_is_the_sum_of_mean_power_over_any_pieces) {
  VirtualClock clock;
  SimBoard board(clock, {}, 7);
  board.open_context();
  const auto start = clock.now();
  for (int i = 0; i < 20; ++i) {
    load(clock, board, milliseconds(130));
    clock.sleep_for(milliseconds(70));
  }
  load(clock, board, milliseconds(1));
  const auto end = clock.now();
  Philox random(3);
  Joules sum{0};
  for (auto t = start; t < end;) {
    const auto next = std::min(end, t + Nanos(1 + random.below(40'000'000)));
    sum += board.mean_power(t, next) * to_seconds(next - t);
    t = next;
  }
  EXPECT_NEAR(sum / board.energy(start, end), 1, 1e-12);
}

TEST(SimBoard, a_launch_costs_what_the_model_says) {
  VirtualClock clock;
  auto model = still_model();
  model.leakage_per_kelvin = 0;
  SimBoard board(clock, model, 1);
  board.open_context();
  const auto begin = clock.now();
  const auto end = board.enqueue(kCopy, 1000);
  const double launch_s = kCopy.bytes / model.bandwidth + model.launch_overhead.value();
  EXPECT_NEAR(to_seconds(end - begin).value(), 1000 * launch_s, 1e-9);
  const double joules = model.context_idle.value() * to_seconds(end - begin).value() +
                        1000 * kCopy.bytes * model.joules_per_byte;
  EXPECT_NEAR(board.energy(begin, end).value() / joules, 1, 1e-9);
}

TEST(SimBoard, arithmetic_bounds_the_time_where_it_is_slower_than_memory) {
  VirtualClock clock;
  SimBoard board(clock, still_model(), 1);
  const Work work{1e6, 6e9, 1, 1};
  const auto begin = clock.now();
  EXPECT_NEAR(to_seconds(board.enqueue(work, 100) - begin).value(), 100 * (6e9 / 60e12 + 1.1e-6),
              1e-9);
}

TEST(SimBoard, work_queues_behind_work_and_an_idle_board_starts_at_once) {
  VirtualClock clock;
  SimBoard board(clock, still_model(), 1);
  const auto first = board.enqueue(kCopy, 100);
  const auto second = board.enqueue(kCopy, 100);
  EXPECT_EQ(second - first, first - clock.now());
  EXPECT_EQ(board.idle_from(), second);
  clock.sleep_until(second + seconds(1));
  EXPECT_EQ(board.idle_from(), clock.now());
  EXPECT_EQ(board.enqueue(kCopy, 100) - clock.now(), second - first);
}

TEST(SimBoard, temperature_approaches_the_steady_state_with_its_time_constant) {
  VirtualClock clock;
  auto model = still_model();
  model.leakage_per_kelvin = 0; // constant power: the exponential is exact
  SimBoard board(clock, model, 1);
  board.open_context();
  const double before = board.temperature(clock.now()).value();
  EXPECT_NEAR(before, model.ambient.value() + model.kelvin_per_watt * model.idle.value(), 1e-9);
  const auto begin = clock.now();
  load(clock, board, seconds(12));
  const double watts = board.mean_power(begin, clock.now()).value();
  const double settled = model.ambient.value() + model.kelvin_per_watt * watts;
  const double passed = to_seconds(clock.now() - begin).value();
  EXPECT_NEAR(board.temperature(clock.now()).value(),
              settled + (before - settled) * std::exp(-passed / 12), 1e-6);
  load(clock, board, seconds(120));
  EXPECT_NEAR(board.temperature(clock.now()).value(), settled, 0.01);
}

TEST(SimBoard, leakage_makes_a_warm_board_draw_more) {
  VirtualClock clock;
  SimBoard board(clock, still_model(), 1);
  board.open_context();
  load(clock, board, seconds(1));
  const auto cool = board.mean_power(clock.now() - milliseconds(500), clock.now());
  load(clock, board, seconds(60));
  const auto warm = board.mean_power(clock.now() - milliseconds(500), clock.now());
  EXPECT_GT(warm.value(), cool.value() + 0.5);
}

TEST(SimBoard, the_power_cap_stretches_time_and_holds) {
  VirtualClock clock;
  auto model = still_model();
  model.leakage_per_kelvin = 0;
  model.power_limit = Watts(300);
  SimBoard board(clock, model, 1);
  board.open_context();
  const auto begin = clock.now(), end = board.enqueue(kCopy, 1000);
  EXPECT_NEAR(board.mean_power(begin, end).value(), 300, 1e-6);
  EXPECT_NEAR(to_seconds(end - begin).value(),
              1000 * kCopy.bytes * model.joules_per_byte / (300 - 125), 1e-9);
  clock.sleep_until(end);
  EXPECT_NEAR(board.capped(end).value(), to_seconds(end - begin).value(), 1e-9);
  EXPECT_NEAR(board.capped(begin + milliseconds(10)).value(), 0.010, 1e-9);
  clock.sleep_for(seconds(1)); // idle is not capped
  (void)board.enqueue({}, 1);
  EXPECT_NEAR(board.capped(clock.now()).value(), to_seconds(end - begin).value(), 1e-9);
}

TEST(SimBoard, after_the_cap_the_clock_comes_back_and_arithmetic_with_it) {
  VirtualClock clock;
  auto model = still_model();
  model.capped_clock_wander = 0;
  SimBoard board(clock, model, 1);
  board.open_context();
  // 10 us of arithmetic a launch; with a third more energy than the limit allows, and with little.
  const Work hot{0, 6e8, 1, 0.76 * (700 - 125) * 10e-6 / (6e8 * model.joules_per_operation) / 0.57},
      cool{0, 6e8, 1, 0.1};
  load(clock, board, seconds(2), hot);
  const double held = board.clock_rate(clock.now() - milliseconds(5)).value();
  EXPECT_LT(held, 0.85 * model.clock.value());
  const auto took = [&](const Work& work) {
    const auto from = clock.now();
    clock.sleep_until(board.enqueue(work, 2000));
    return to_seconds(clock.now() - from).value();
  };
  std::vector<double> times, rates;
  for (int i = 0; i < 12; ++i) {
    times.push_back(took(cool));
    rates.push_back(board.clock_rate(clock.now() - milliseconds(1)).value());
  }
  const double usual = times.back();
  EXPECT_GT(times.front(), 1.1 * usual);
  EXPECT_LT(times.front(), model.clock.value() / held * usual) << "no slower than the clock was";
  EXPECT_TRUE(std::ranges::is_sorted(times, std::greater{}));
  EXPECT_TRUE(std::ranges::is_sorted(rates));
  EXPECT_EQ(rates.back(), model.clock.value());
  EXPECT_NEAR(times[5], usual, 0.02 * usual);
  const double copy = took(kCopy);
  load(clock, board, seconds(2), hot);
  EXPECT_NEAR(took(kCopy), copy, 1e-9) << "memory has a clock of its own";
}

TEST(SimBoard, on_an_idle_board_the_cap_takes_hold_late_and_swings_about_the_limit) {
  VirtualClock clock;
  BoardModel model;
  model.limit_swing = 0.48;
  SimBoard board(clock, model, 1);
  board.open_context();
  const Work hot{1e8, 0, 1, 1.33}; // some 770 W on a board of 700
  const auto after = [&](double s) { return clock.now() - to_nanos(Seconds(12 - s)); };
  const auto mean_of = [&](double from, double to) { // since the load began
    return board.mean_power(after(from), after(to)).value();
  };
  for (int round = 0; round < 2; ++round) {
    load(clock, board, seconds(12), hot, 100);
    EXPECT_EQ(board.clock_rate(after(0.5)).value(), board.model().clock.value());
    EXPECT_GT(mean_of(0.1, 0.6), 750);
    EXPECT_LT(mean_of(0.9, 1.0), 600);
    EXPECT_GT(mean_of(1.4, 1.5), 750);
    EXPECT_LT(mean_of(2.95, 3.05), 660);
    EXPECT_NEAR(mean_of(3, 11), 700, 5);
    EXPECT_NEAR(mean_of(10.9, 11.4), 700, 10);
    clock.sleep_for(seconds(1)); // at rest it begins anew, also after a load
  }
}

TEST(SimBoard, below_the_cap_nothing_is_capped) {
  VirtualClock clock;
  SimBoard board(clock, {}, 1);
  board.open_context();
  load(clock, board, seconds(2));
  EXPECT_EQ(board.capped(clock.now()).value(), 0);
  EXPECT_LT(board.mean_power(clock.now() - seconds(1), clock.now()).value(), 700);
}

TEST(SimBoard, equal_seeds_give_equal_boards_and_others_do_not) {
  const auto joules = [](std::uint64_t seed) {
    VirtualClock clock;
    SimBoard board(clock, {}, seed);
    const auto begin = clock.now();
    load(clock, board, seconds(1));
    return board.energy(begin, clock.now()).value();
  };
  EXPECT_EQ(joules(5), joules(5));
  EXPECT_NE(joules(5), joules(6));
}

TEST(SimBoard, opening_a_context_does_not_change_the_past) {
  VirtualClock clock;
  SimBoard board(clock, still_model(), 1);
  const auto begin = clock.now();
  clock.sleep_for(seconds(10));
  const auto end = clock.now();
  const auto before = board.energy(begin, end);
  board.open_context();
  EXPECT_NEAR(board.energy(begin, end).value(), before.value(), 1e-6);
  clock.sleep_for(seconds(1));
  EXPECT_GT(board.mean_power(end, clock.now()).value(), 120);
}

TEST(SimBoard, the_energy_of_a_long_idle_is_the_same_before_and_after_the_next_launch) {
  VirtualClock clock;
  SimBoard board(clock, still_model(), 1);
  board.open_context();
  load(clock, board, seconds(60)); // warm: it cools while it idles
  const auto begin = clock.now();
  clock.sleep_for(seconds(60));
  const auto end = clock.now();
  const auto before = board.energy(begin, end);
  const auto cooled = board.temperature(end);
  (void)board.enqueue(kCopy, 1);
  EXPECT_NEAR(board.energy(begin, end).value(), before.value(), 1e-6);
  EXPECT_NEAR(board.temperature(end).value(), cooled.value(), 0.01); // idle goes in steps of 50 ms
}

TEST(SimBoard, faults_show_in_time_power_and_heat) {
  struct Shown {
    double latency, watts, celsius;
  };
  const auto shown = [](std::initializer_list<const char*> faults) {
    VirtualClock clock;
    SimBoard board(clock, still_model(), 1, test::faults_from(faults));
    board.open_context();
    load(clock, board, seconds(100));
    const auto from = clock.now();
    const auto end = board.enqueue(kCopy, 1000);
    clock.sleep_until(end);
    return Shown{to_seconds(end - from).value(), board.mean_power(from, end).value(),
                 board.temperature(end).value()};
  };
  const auto none = shown({});
  EXPECT_NEAR(shown({"thermal_throttle@50"}).latency / none.latency, 1.25, 1e-6);
  EXPECT_GT(shown({"power_drift"}).watts, none.watts + 2);
  EXPECT_NEAR(shown({"ambient_rise"}).celsius, none.celsius + 8, 0.5);
  EXPECT_EQ(shown({"thermal_throttle@1000"}).latency, none.latency); // not yet
}

TEST(Faults, parse_and_print_the_same_text) {
  for (const char* name : {"counter_frozen",      "counter_backwards",
                           "counter_reset",       "counter_unsupported",
                           "samples_frozen",      "samples_empty",
                           "samples_gap",         "samples_implausible",
                           "samples_unsupported", "temperature_unsupported",
                           "meter_lies",          "nvml_lost",
                           "foreign_process",     "context_stays",
                           "thermal_throttle",    "power_brake",
                           "power_drift",         "ambient_rise",
                           "latency_jitter",      "clock_jump",
                           "ecc_error",           "mig",
                           "wrong_output",        "lease_removed"}) {
    for (const char* at : {"@0", "@2.5", "@60"}) {
      const auto fault = fault_from(name + std::string(at));
      ASSERT_TRUE(fault) << name << at;
      EXPECT_EQ(to_string(*fault), name + std::string(at));
    }
    EXPECT_EQ(to_string(fault_from(name).value()), std::string(name) + "@0");
  }
}

TEST(Faults, what_is_no_fault_is_refused_with_what_is) {
  const std::pair<const char*, const char*> table[] = {
      {"samples_gaps@1", "unknown fault \"samples_gaps\""},
      {"", "unknown fault \"\""},
      {"@3", "unknown fault \"\""},
      {"mig@", "\"\" is no time"},
      {"mig@-1", "\"-1\" is no time"},
      {"mig@nan", "\"nan\" is no time"},
      {"mig@inf", "\"inf\" is no time"},
      {"mig@1s", "\"1s\" is no time"},
      {"mig@1@2", "\"1@2\" is no time"},
      {"mig@2e6", "\"2e6\" is no time"},
  };
  for (const auto& [text, what] : table) {
    const auto fault = fault_from(text);
    ASSERT_FALSE(fault) << text;
    EXPECT_EQ(fault.error().code, RefusalCode::bad_argument);
    EXPECT_NE(fault.error().what.find(what), std::string::npos) << fault.error().what;
  }
  EXPECT_NE(fault_from("no").error().next.find("samples_gap, samples_implausible"),
            std::string::npos);
}

TEST(Faults, are_active_from_their_time_on) {
  VirtualClock clock;
  SimBoard board(clock, {}, 1, test::faults_from({"mig@2", "ecc_error"}));
  EXPECT_FALSE(board.active(FaultKind::mig, board.start() + Nanos(1'999'999'999)));
  EXPECT_TRUE(board.active(FaultKind::mig, board.start() + seconds(2)));
  EXPECT_TRUE(board.active(FaultKind::ecc_error, board.start()));
  EXPECT_FALSE(board.active(FaultKind::nvml_lost, board.start() + seconds(9)));
}

} // namespace
} // namespace hebe::gpu
