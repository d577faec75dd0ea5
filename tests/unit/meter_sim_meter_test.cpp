// Facts about the simulated meters: they behave as an H200's do, and each fault shows as itself.
#include "meter/sim_meter.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::meter {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;

void load(test::SimGpu& sim, Nanos length) {
  const auto end = sim.clock.now() + length;
  while (sim.clock.now() < end) sim.clock.sleep_until(sim.board.enqueue({1e8, 0, 1, 1}, 1000));
}

TEST(SimMeter, the_buffer_holds_119_samples_20_ms_apart_oldest_first) {
  test::SimGpu sim;
  load(sim, seconds(5));
  const auto samples = sim.meter.read_power_samples(0).value();
  ASSERT_NEAR(static_cast<double>(samples.size()), 119, 1);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    EXPECT_GE(samples[i].wall_us - samples[i - 1].wall_us, 10'000);
    EXPECT_LE(samples[i].wall_us - samples[i - 1].wall_us, 30'000);
  }
  EXPECT_LE(samples.back().wall_us, sim.clock.wall_us());
  EXPECT_GT(samples.back().wall_us, sim.clock.wall_us() - 30'000);
}

TEST(SimMeter, only_samples_newer_than_asked_come_and_none_twice) {
  test::SimGpu sim;
  load(sim, seconds(3));
  const auto first = sim.meter.read_power_samples(0).value();
  EXPECT_TRUE(sim.meter.read_power_samples(first.back().wall_us).value().empty());
  load(sim, milliseconds(500));
  const auto next = sim.meter.read_power_samples(first.back().wall_us).value();
  EXPECT_NEAR(static_cast<double>(next.size()), 25, 2);
  EXPECT_GT(next.front().wall_us, first.back().wall_us);
}

TEST(SimMeter, a_sample_is_the_same_whenever_it_is_read) {
  test::SimGpu sim;
  load(sim, seconds(3));
  const auto first = sim.meter.read_power_samples(0).value();
  load(sim, seconds(1));
  const auto later = sim.meter.read_power_samples(first[80].wall_us - 1).value();
  for (std::size_t i = 80; i < first.size(); ++i) {
    EXPECT_EQ(later[i - 80].wall_us, first[i].wall_us);
    EXPECT_EQ(later[i - 80].raw_mw, first[i].raw_mw);
  }
}

TEST(SimMeter, samples_show_the_boards_power_late_and_averaged) {
  test::SimGpu sim(1, {}, test::still_model());
  sim.clock.sleep_for(seconds(3)); // idle, then a step
  const auto step_us = sim.clock.wall_us();
  load(sim, seconds(1));
  const double high =
      sim.board.mean_power(sim.clock.now() - milliseconds(500), sim.clock.now()).value();
  const auto samples = sim.meter.read_power_samples(step_us - 200'000).value();
  EXPECT_GT(samples.size(), 50U);
  for (const auto& s : samples) {
    const double watts = static_cast<double>(s.raw_mw) * 1e-3;
    const auto after_us = s.wall_us - step_us;
    // Seen 12 ms late, and wholly after another 30 ms.
    EXPECT_TRUE(after_us >= 12'000 || watts < 130) << after_us;
    EXPECT_TRUE(after_us <= 42'000 || std::abs(watts - high) < 3) << after_us;
  }
}

TEST(SimMeter, the_counter_is_cached_for_100_ms_and_costs_5_ms_to_read) {
  test::SimGpu sim;
  sim.clock.sleep_until(sim.board.start() + milliseconds(1001));
  std::vector<std::int64_t> values;
  for (int i = 0; i < 40; ++i) { // every 10 ms
    const auto b = sim.meter.read_boundary().value();
    EXPECT_EQ(b.after - b.before, milliseconds(5));
    values.push_back(*b.energy_mj);
    sim.clock.sleep_for(milliseconds(5));
  }
  int changes = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    EXPECT_GE(values[i], values[i - 1]);
    changes += values[i] != values[i - 1];
    EXPECT_EQ(values[i] != values[i - 1], i % 10 == 0) << i; // at each 100 ms of the board's time
  }
  EXPECT_EQ(changes, 3);
}

TEST(SimMeter, the_counter_is_the_boards_exact_energy_at_its_last_update) {
  test::SimGpu sim;
  load(sim, seconds(2));
  const auto a = sim.clock.now();
  const auto begin = *sim.meter.read_boundary().value().energy_mj;
  load(sim, seconds(5));
  const auto b = sim.clock.now();
  const auto end = *sim.meter.read_boundary().value().energy_mj;
  const auto tick = [&](Instant t) {
    return sim.board.start() + (t - sim.board.start()) / milliseconds(100) * milliseconds(100);
  };
  EXPECT_NEAR(static_cast<double>(end - begin) * 1e-3, sim.board.energy(tick(a), tick(b)).value(),
              0.003);
}

TEST(SimMeter, an_edge_has_temperature_clocks_and_throttle_times) {
  test::SimGpu sim;
  load(sim, seconds(30));
  const auto b = sim.meter.read_boundary().value();
  EXPECT_EQ(*b.temperature_c, static_cast<std::int64_t>(sim.board.temperature(b.before).value()));
  EXPECT_EQ(*b.sm_clock_mhz, 1980);
  EXPECT_EQ(*b.event_reasons, 0);
  EXPECT_EQ(*b.throttle.thermal_ns + *b.throttle.power_brake_ns + *b.throttle.power_cap_ns, 0);
  EXPECT_EQ(sim.meter.board().provenance, Provenance::simulated);
}

TEST(SimMeter, each_fault_of_the_counter_shows_from_its_time_on) {
  struct Counter {
    std::optional<std::int64_t> before, at_5, at_6;
  };
  const auto counter = [](const char* fault) {
    test::SimGpu sim(1, test::faults_from({fault}), test::still_model());
    const auto read_at = [&](Nanos t) {
      sim.clock.sleep_until(sim.board.start() + t);
      const auto mj = sim.meter.read_boundary().value().energy_mj;
      return mj ? std::optional(*mj) : std::nullopt;
    };
    return Counter{read_at(milliseconds(3950)), read_at(seconds(5)), read_at(seconds(6))};
  };
  const auto none = counter("counter_reset@100");
  EXPECT_GT(*none.at_6 - *none.at_5, 100'000); // 125 W idle
  const auto frozen = counter("counter_frozen@4");
  EXPECT_EQ(*frozen.before, *none.before);
  EXPECT_EQ(*frozen.at_5, *frozen.at_6);
  EXPECT_EQ(*counter("counter_backwards@4").at_5, *none.at_5 - 5'000'000);
  const auto reset = counter("counter_reset@4");
  EXPECT_EQ(*reset.before, *none.before);
  EXPECT_LT(*reset.at_5, 130'000);
  EXPECT_GT(*reset.at_6, *reset.at_5);
  const auto lying = counter("meter_lies@4");
  EXPECT_NEAR(static_cast<double>(*lying.at_6 - *lying.at_5) /
                  static_cast<double>(*none.at_6 - *none.at_5),
              1.3, 1e-4);
  const auto none_at_all = counter("counter_unsupported@4");
  EXPECT_TRUE(none_at_all.before);
  EXPECT_FALSE(none_at_all.at_5);
}

TEST(SimMeter, each_fault_of_the_samples_shows_from_its_time_on) {
  const auto samples = [](const char* fault) {
    test::SimGpu sim(1, test::faults_from({fault}));
    load(sim, seconds(3));
    return sim.meter.read_power_samples(0);
  };
  const auto healthy = samples("samples_frozen@100").value();
  EXPECT_TRUE(samples("samples_empty@2").value().empty());
  EXPECT_EQ(samples("samples_unsupported@2").error().code, RefusalCode::meter_unsupported);
  const auto frozen = samples("samples_frozen@2").value();
  EXPECT_EQ(frozen.size(), healthy.size());
  EXPECT_NE(frozen[10].raw_mw, frozen[11].raw_mw);
  for (std::size_t i = frozen.size() - 40; i < frozen.size(); ++i)
    EXPECT_EQ(frozen[i].raw_mw, frozen.back().raw_mw);
  EXPECT_GT(samples("samples_implausible@2").value().back().raw_mw, 1'000'000'000'000'000'000);
  const auto gap = samples("samples_gap@1").value();
  std::int64_t widest = 0;
  for (std::size_t i = 1; i < gap.size(); ++i)
    widest = std::max(widest, gap[i].wall_us - gap[i - 1].wall_us);
  EXPECT_NEAR(static_cast<double>(widest), 1.02e6, 2.5e4); // a second, and up to the next sample
  EXPECT_NEAR(static_cast<double>(healthy.size() - gap.size()), 50, 2);
}

TEST(SimMeter, a_lost_board_refuses_every_call) {
  test::SimGpu sim(1, test::faults_from({"nvml_lost"}));
  EXPECT_EQ(sim.meter.read_boundary().error().code, RefusalCode::device_error);
  EXPECT_EQ(sim.meter.read_power_samples(0).error().code, RefusalCode::device_error);
  EXPECT_EQ(sim.meter.processes().error().code, RefusalCode::device_error);
}

TEST(SimMeter, the_other_faults_show_where_they_belong) {
  const auto edge = [](const char* fault) {
    test::SimGpu sim(1, test::faults_from({fault}));
    sim.clock.sleep_for(seconds(2));
    return sim.meter.read_boundary().value();
  };
  EXPECT_FALSE(edge("temperature_unsupported").temperature_c);
  EXPECT_EQ(*edge("thermal_throttle@1").throttle.thermal_ns, 1'000'000'000);
  EXPECT_EQ(*edge("thermal_throttle@1").event_reasons, 0x20);
  EXPECT_LT(*edge("thermal_throttle@1").sm_clock_mhz, 1600);
  EXPECT_EQ(*edge("power_brake@1").throttle.power_brake_ns, 1'000'000'000);
  EXPECT_EQ(*edge("power_brake@1").event_reasons, 0x80);

  test::SimGpu sim(1, test::faults_from({"mig", "ecc_error@1", "foreign_process@1"}));
  EXPECT_TRUE(*sim.meter.mig_enabled());
  EXPECT_EQ(*sim.meter.uncorrected_errors(), 0);
  EXPECT_EQ(sim.meter.processes()->size(), 1U); // our own
  sim.clock.sleep_for(seconds(1));
  EXPECT_EQ(*sim.meter.uncorrected_errors(), 1);
  EXPECT_EQ(sim.meter.processes()->back().name, "someone-elses-training");
}

TEST(SimMeter, a_clock_jump_moves_the_stamps_of_later_samples_only) {
  test::SimGpu sim(1, test::faults_from({"clock_jump@1"}));
  const auto start_us = sim.clock.wall_us();
  sim.clock.sleep_for(seconds(2));
  const auto samples = sim.meter.read_power_samples(0).value();
  EXPECT_EQ(sim.clock.wall_us() - start_us, 4'000'000);
  int before = 0, after = 0;
  for (const auto& s : samples) {
    before += s.wall_us > start_us && s.wall_us < start_us + 1'006'000;
    after += s.wall_us > start_us + 2'994'000;
  }
  EXPECT_NEAR(before, 50, 2);
  EXPECT_NEAR(after, 50, 2);
}

} // namespace
} // namespace hebe::meter
