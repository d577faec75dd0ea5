// Facts about the check of a meter: whatever holds still, lies, wraps or is missing is refused by
// name.
#include "measure/meter_check.hpp"

#include <functional>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Three seconds: idle at 120 W, from 0.5 s on 440 W, seen `lag` late. The counter is read at 1 s
// and 3 s.
struct Trial {
  std::vector<meter::AlignedSample> samples;
  MeterTrial t;

  explicit Trial(std::int64_t lag_ms = 30) {
    for (std::int64_t ms = 0; ms <= 3000; ms += 20)
      samples.push_back({ms * kMs, 0, ms < 500 + lag_ms ? 120'000 + ms % 7 : 440'000 + ms % 7});
    t.load_begin_ns = 500 * kMs;
    t.begin.before = Instant(Nanos(1000 * kMs));
    t.end.before = Instant(Nanos(3000 * kMs));
    t.begin.energy_mj = 2'857'338;
    t.end.energy_mj = 2'857'338 + 880'000;
    t.power_limit = Watts(700);
  }
  Result<MeterBehaviour> checked() {
    t.samples = samples;
    return check_meter(t);
  }
};

TEST(MeterCheck, a_healthy_meter_passes_and_its_period_is_told) {
  const auto b = Trial().checked();
  ASSERT_TRUE(b) << b.error().what;
  EXPECT_DOUBLE_EQ(b->sample_period.value(), 0.02);
  EXPECT_DOUBLE_EQ(b->counter_period.value(), 0.1);
}

TEST(MeterCheck, the_lag_is_the_time_from_the_first_launch_to_the_settled_power) {
  for (const std::int64_t lag_ms : {20L, 60L, 200L, 1000L}) {
    Trial trial(lag_ms);
    trial.t.agreement = 1; // the late meter misses energy; that is not this fact
    EXPECT_NEAR(trial.checked().value().lag.value(), static_cast<double>(lag_ms) * 1e-3, 0.02)
        << lag_ms;
  }
}

TEST(MeterCheck, arms_of_different_power_do_not_make_the_lag_longer) {
  for (const bool weaker_first : {true, false}) {
    Trial trial(60);
    for (auto& s : trial.samples) // arms change every second: 440 W and 560 W
      if (s.raw_mw > 400'000 && ((s.t_mono_ns / kMs - 560) / 1000 % 2 == 1) == weaker_first)
        s.raw_mw += 120'000;
    trial.t.agreement = 1;
    EXPECT_NEAR(trial.checked().value().lag.value(), 0.06, 0.021) << weaker_first;
  }
}

TEST(MeterCheck, a_slow_rise_counts_until_95_percent) {
  Trial trial;
  for (auto& s : trial.samples) { // linear, 0.5 s long
    const double share =
        std::clamp(static_cast<double>(s.t_mono_ns - 500 * kMs) / (500.0 * kMs), 0.0, 1.0);
    s.raw_mw = 120'000 + static_cast<std::int64_t>(share * 320'000);
  }
  EXPECT_NEAR(trial.checked().value().lag.value(), 0.95 * 0.5, 0.021);
}

TEST(MeterCheck, the_first_arms_own_step_is_told_whatever_the_other_arm_draws) {
  Trial trial(60);
  for (auto& s : trial.samples) // the second arm, from 1.56 s on, draws half as much
    if (s.t_mono_ns >= 1560 * kMs) s.raw_mw -= 160'000;
  trial.t.agreement = 1;
  const auto b = trial.checked().value();
  EXPECT_NEAR(b.step_lag.value().value(), 0.06, 1e-9);
  Trial slow(60); // 300 ms to 95 %, while half of it is reached early
  for (auto& s : slow.samples)
    if (s.t_mono_ns >= 560 * kMs && s.t_mono_ns < 800 * kMs) s.raw_mw = 350'000;
  EXPECT_NEAR(slow.checked().value().step_lag.value().value(), 0.3, 1e-9);
}

TEST(MeterCheck, a_step_that_drowns_in_noise_has_no_lag_of_its_own) {
  Trial trial;
  for (std::size_t i = 25; i < trial.samples.size(); ++i) // 130 W on 120 W, give or take 10
    trial.samples[i].raw_mw = 120'000 + static_cast<std::int64_t>(i % 3) * 10'000;
  trial.t.agreement = 10;
  const auto b = trial.checked();
  ASSERT_TRUE(b) << b.error().what;
  EXPECT_FALSE(b->step_lag);
}

TEST(MeterCheck, each_way_to_be_wrong_has_its_refusal) {
  struct Row {
    const char* name;
    std::function<void(Trial&)> change;
    RefusalCode code;
    const char* what;
  };
  const Row table[] = {
      {"empty", [](Trial& x) { x.samples.clear(); }, RefusalCode::meter_empty,
       "gave 0 power samples"},
      {"almost empty", [](Trial& x) { x.samples.resize(25 + 19); }, RefusalCode::meter_empty,
       "gave 19 power samples under load, required 20"},
      {"frozen",
       [](Trial& x) {
         for (auto& s : x.samples) s.raw_mw = 78'000;
       },
       RefusalCode::meter_frozen, "are 78000 mW, from idle to full load"},
      {"frozen since before the load",
       [](Trial& x) {
         for (std::size_t i = 20; i < x.samples.size(); ++i) x.samples[i].raw_mw = 78'000;
       },
       RefusalCode::meter_frozen, "are 78000 mW"},
      {"zero", [](Trial& x) { x.samples[50].raw_mw = 0; }, RefusalCode::meter_implausible,
       "between 0 and"},
      {"negative", [](Trial& x) { x.samples[50].raw_mw = -1; }, RefusalCode::meter_implausible,
       "between -1 and"},
      {"a double read as an integer",
       [](Trial& x) { x.samples[50].raw_mw = 4'991'201'436'214'789'335; },
       RefusalCode::meter_implausible, "4991201436214789335 mW"},
      {"twice the limit", [](Trial& x) { x.samples[50].raw_mw = 1'400'001; },
       RefusalCode::meter_implausible, "(limit 700 W)"},
      {"counter missing at the begin",
       [](Trial& x) { x.t.begin.energy_mj = refuse(RefusalCode::meter_unsupported, "field 83"); },
       RefusalCode::meter_unsupported, "the cross-check is missing: field 83"},
      {"counter missing at the end",
       [](Trial& x) { x.t.end.energy_mj = refuse(RefusalCode::meter_failed, "GPU busy"); },
       RefusalCode::meter_failed, "the cross-check is missing: GPU busy"},
      {"counter frozen", [](Trial& x) { x.t.end.energy_mj = x.t.begin.energy_mj; },
       RefusalCode::meter_frozen, "stood at 2857338 mJ for 2.00 s"},
      {"counter backwards", [](Trial& x) { x.t.end.energy_mj = 2'857'337; },
       RefusalCode::meter_backwards, "went from 2857338 to 2857337 mJ"},
      {"counter reset", [](Trial& x) { x.t.end.energy_mj = 500; }, RefusalCode::meter_backwards,
       "went from 2857338 to 500 mJ"},
      {"counter 30 % fast", [](Trial& x) { x.t.end.energy_mj = 2'857'338 + 1'144'000; },
       RefusalCode::meter_disagreement,
       "the counter says 572.0 W, the samples 440.0 W; allowed are 10.0 %"},
      {"counter 30 % slow", [](Trial& x) { x.t.end.energy_mj = 2'857'338 + 616'000; },
       RefusalCode::meter_disagreement, "the counter says 308.0 W"},
      {"counter in joules", [](Trial& x) { x.t.end.energy_mj = 2'857'338 + 880; },
       RefusalCode::meter_disagreement, "the counter says 0.4 W"},
  };
  for (const auto& row : table) {
    Trial trial;
    row.change(trial);
    const auto b = trial.checked();
    ASSERT_FALSE(b) << row.name;
    EXPECT_EQ(b.error().code, row.code) << row.name;
    EXPECT_NE(b.error().what.find(row.what), std::string::npos) << b.error().what;
  }
}

TEST(MeterCheck, one_update_of_the_counter_is_allowed_at_the_ends) {
  // 5 % and 0.1 s in 2 s.
  for (const double share : {1.099, 0.901}) {
    Trial trial;
    trial.t.end.energy_mj = 2'857'338 + static_cast<std::int64_t>(880'000 * share);
    EXPECT_TRUE(trial.checked()) << share;
  }
}

TEST(MeterCheck, without_a_known_limit_only_what_no_board_draws_is_implausible) {
  Trial trial;
  trial.t.power_limit.reset();
  EXPECT_TRUE(trial.checked());
  trial.samples[3].raw_mw = 5'000'001;
  EXPECT_EQ(trial.checked().error().code, RefusalCode::meter_implausible);
}

} // namespace
} // namespace hebe::measure
