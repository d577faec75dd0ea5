// Facts about idleness before a window: pauses of the host count, a clock at or after the power
// limit does not.
#include "measure/idleness.hpp"

#include "measure/replay_stream.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

// The product of 256 x 4096 x 4096 at the power limit, after an arm that runs it at a lower clock.
const std::vector<double> kRising = {25.2e-3, 25e-3,   24.8e-3, 24.6e-3, 24.4e-3, 24.2e-3,
                                     24e-3,   23.8e-3, 23.6e-3, 23.4e-3, 23.2e-3};
constexpr Seconds kTypical{23e-3};

double idle_of(std::vector<double> times, SlowerByClock slower, bool fed = false,
               bool ran_dry = false, Seconds typical = kTypical) {
  Stretch s;
  s.times = std::move(times);
  s.fed = fed;
  s.ran_dry = ran_dry;
  count_idle(s, typical, slower);
  return s.idle.value();
}

double idle_of(std::vector<double> times, double held, bool fed = false, bool ran_dry = false) {
  return idle_of(std::move(times), SlowerByClock{held, 0}, fed, ran_dry);
}

TEST(CountIdle, a_clock_that_the_power_limit_moves_is_none) {
  auto falling = kRising;
  std::ranges::reverse(falling);
  for (const auto& times : {kRising, falling}) {
    EXPECT_GT(idle_of(times, 0), 12e-3) << "without the limit the host may have been late";
    EXPECT_LT(idle_of(times, 0.1), 1e-3);
    EXPECT_GT(idle_of(times, 0.1, false, true), 12e-3) << "the GPU was found with nothing to do";
    EXPECT_GT(idle_of(times, 0.02), 6e-3) << "held down for a fifth of the time";
  }
}

TEST(CountIdle, what_a_clock_cannot_explain_is_idleness) {
  EXPECT_NEAR(idle_of(std::vector<double>(10, 28e-3), 0.1), 10 * (28e-3 - 25.3e-3), 1e-6);
}

TEST(CountIdle, a_pause_is_idleness_wherever_it_falls) {
  for (const double slower : {0.0, 0.1})
    for (const bool fed : {true, false})
      for (std::size_t i = 0; i < kRising.size(); ++i) {
        auto times = kRising;
        times[i] += 8e-3;
        EXPECT_GT(idle_of(times, slower, fed), idle_of(kRising, slower, fed) + 5e-3) << i;
      }
}

TEST(CountIdle, three_pauses_in_a_row_are_idleness) {
  std::vector<double> times(11, 23e-3);
  for (const std::size_t i : {4, 5, 6}) times[i] += 20e-3;
  for (const bool fed : {true, false}) EXPECT_GT(idle_of(times, 0.1, fed), 50e-3);
}

TEST(CountIdle, of_few_replays_and_of_none) {
  EXPECT_EQ(idle_of({}, 0.1), 0);
  EXPECT_NEAR(idle_of(std::vector<double>(4, 24e-3), 0.1), 4e-3, 1e-9) << "four show no median";
  EXPECT_EQ(idle_of(std::vector<double>(5, 24e-3), 0.1), 0);
  EXPECT_EQ(idle_of(std::vector<double>(5, 22e-3), 0.1), 0) << "never below none";
}

// As an H200 ran a product at 428 W after one that it had held down at 690 W, by 1590 of 1965 MHz
// (evidence/h200-tunes-prefill, pair 4): the first replays of 18.
const std::vector<double> kComesBack = [] {
  std::vector<double> times{29.68e-3, 26.81e-3, 25.14e-3, 24.69e-3, 24.4e-3, 24.2e-3};
  times.resize(18, 24.16e-3);
  return times;
}();
constexpr Seconds kAtFullClock{24.16e-3};
constexpr SlowerByClock kFrom1590{0, 1965.0 / 1590 - 1};

double idle_after(std::vector<double> times, SlowerByClock slower, bool ran_dry = false) {
  return idle_of(std::move(times), slower, true, ran_dry, kAtFullClock);
}

TEST(CountIdle, a_clock_that_comes_back_from_the_power_limit_is_none) {
  EXPECT_GT(idle_after(kComesBack, {}), 9e-3);
  EXPECT_GT(idle_after(kComesBack, {0.02, 0}), 7e-3) << "by the share of the time it was held";
  EXPECT_LT(idle_after(kComesBack, kFrom1590), 0.1e-3);
  EXPECT_GT(idle_after(kComesBack, kFrom1590, true), 9e-3)
      << "the GPU was found with nothing to do";
}

// Replays 2 to 8 each as late as the first: with no queue to show it, it could be another's work.
TEST(CountIdle, a_clock_comes_back_once_and_soon) {
  auto times = kComesBack;
  for (std::size_t i = 1; i < 8; ++i) times[i] = 29.6e-3;
  EXPECT_GT(idle_after(times, kFrom1590), 0.02);
  for (std::size_t i = 1; i < 4; ++i) times[i] = 29.6e-3;
  EXPECT_GT(idle_after(times, {0, 0.35}), 0.01) << "as low as the tier knows a clock";
}

TEST(CountIdle, the_first_replay_is_no_slower_than_the_clock_was_lower) {
  const double first = 29.68e-3 - 1.1 * kAtFullClock.value();
  EXPECT_GT(idle_after(kComesBack, {0, 0.1}), first);
  EXPECT_LT(idle_after(kComesBack, {0, 0.1}), first + 2e-3);
}

TEST(CountIdle, a_clock_that_comes_back_hides_no_pause) {
  for (std::size_t i = 0; i < kComesBack.size(); ++i) {
    auto times = kComesBack;
    times[i] += 8e-3;
    EXPECT_GT(idle_after(times, kFrom1590), 5e-3) << i;
  }
  auto late = kComesBack; // slow again after it had come back
  late[6] = late[7] = late[8] = 29e-3;
  EXPECT_GT(idle_after(late, kFrom1590), 12e-3);
}

meter::Boundary reading(std::int64_t mhz, std::int64_t reasons, std::int64_t capped_ns = 0) {
  meter::Boundary b;
  b.sm_clock_mhz = mhz;
  b.event_reasons = reasons;
  b.throttle.power_cap_ns = capped_ns;
  return b;
}

TEST(SlowerByTheClock, is_what_the_readings_of_the_limit_and_the_clock_say) {
  const auto tier = tier_named("confirmation-v1").value();
  const auto by = [&](const meter::Boundary& from, const meter::Boundary& to) {
    return slower_by_clock(tier, from, to, Nanos(1'000'000'000), true);
  };
  EXPECT_DOUBLE_EQ(by(reading(1590, 4), reading(1965, 0)).recovering, 1965.0 / 1590 - 1);
  EXPECT_DOUBLE_EQ(by(reading(1590, 4), reading(1965, 4)).recovering, 1965.0 / 1590 - 1);
  EXPECT_EQ(by(reading(1590, 0), reading(1965, 0)).recovering, 0) << "not at the limit";
  EXPECT_EQ(by(reading(1590, 4 | 0x20), reading(1965, 0)).recovering, 0) << "hot as well";
  EXPECT_EQ(by(reading(1980, 4), reading(1590, 4)).recovering, 0) << "it falls";
  EXPECT_EQ(by(reading(0, 4), reading(1980, 0)).recovering, 0);
  EXPECT_EQ(by(reading(345, 4), reading(1980, 0)).recovering, *tier.max_clock_recovery);
  const auto again =
      slower_by_clock(tier, reading(1515, 4), reading(1710, 4), Nanos(1'000'000'000), false);
  EXPECT_EQ(again.recovering, 0) << "of the same arm nothing comes back";
  for (const bool of_from : {true, false}) {
    auto silent = reading(of_from ? 1590 : 1965, 4);
    silent.sm_clock_mhz = std::unexpected(Refusal{});
    EXPECT_EQ((of_from ? by(silent, reading(1965, 0)) : by(reading(1590, 4), silent)).recovering,
              0);
  }
  auto silent = reading(1590, 4);
  silent.event_reasons = std::unexpected(Refusal{});
  EXPECT_EQ(by(silent, reading(1965, 0)).recovering, 0);
  EXPECT_DOUBLE_EQ(by(reading(1590, 4), reading(1600, 4, 500'000'000)).held, 0.05);
  // The limit's time is counted on for some tenths of a second: a free arm after a held one.
  EXPECT_EQ(by(reading(1590, 4), reading(1965, 0, 900'000'000)).held, 0);
  EXPECT_DOUBLE_EQ(slower_by_clock(tier, reading(1590, 4), reading(1965, 0, 900'000'000),
                                   Nanos(1'000'000'000), false)
                       .held,
                   0.09);
}

TEST(SlowerByTheClock, explains_to_plans_from_before_what_it_explained_then) {
  const auto by = [](const Tier& tier) {
    return slower_by_clock(tier, reading(1590, 4), reading(1965, 4, 900'000'000),
                           Nanos(1'000'000'000), true);
  };
  auto before = tier_named("smoke-v1").value();
  EXPECT_GT(by(before).recovering, 0.2);
  before.max_clock_recovery.reset();
  EXPECT_EQ(by(before).recovering, 0);
  EXPECT_DOUBLE_EQ(by(before).held, 0.09);
  before.max_capped_clock_change.reset();
  EXPECT_EQ(by(before).held, 0);
}

} // namespace
} // namespace hebe::measure
