// Facts about gates: each passes at its limit and fails beyond it, and nothing is judged by the
// energy.
#include "measure/gates.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

std::unexpected<Refusal> missing() {
  return refuse(RefusalCode::meter_unsupported, "not supported");
}

// A window of one second that passes every gate of confirmation-v1.
struct Subject {
  WindowReading w;
  WindowEstimate e;
  Tier tier = tier_named("confirmation-v1").value();
  MeterBehaviour behaviour{Seconds(0.02), Seconds(0.04), Seconds(0.1)};
  Reference reference{{Seconds(1e-3), Seconds(1e-3)}, 50, Watts(700)};
  bool jumped = false;

  Subject() {
    w.begin_ns = 1'000'000'000;
    w.end_ns = 2'000'000'000;
    w.elapsed = Seconds(1);
    w.pre_roll = Seconds(0.3);
    tier.min_window = Seconds(1);
    w.launches_per_replay = 100;
    w.replays = 10;
    for (auto* b : {&w.begin, &w.end}) {
      b->temperature_c = 50;
      b->sm_clock_mhz = 1980;
      b->event_reasons = 0;
      b->throttle = {0, 0, 0, 0, 0};
    }
    w.begin.energy_mj = 1'000'000;
    w.end.energy_mj = 1'400'000;
    e.samples = 50;
    e.coverage = 1;
    e.max_gap = Seconds(0.025);
    e.mean_power = Watts(400);
    e.energy_per_launch = Joules(0.4);
    e.counter_power = Watts(400);
  }
  /// By the power limit, for so much of the window.
  void hold_down(double share = 1) {
    w.end.throttle.power_cap_ns = static_cast<std::int64_t>(share * 1e9);
  }
  [[nodiscard]] std::vector<GateResult> judged() const {
    return judge_window(w, e, tier, behaviour, reference, jumped);
  }
};

std::vector<std::string> failed(const Subject& s) {
  std::vector<std::string> names;
  for (const auto& g : s.judged())
    if (!g.passed) names.push_back(g.name);
  return names;
}

using Change = std::function<void(Subject&)>;
const std::vector<std::string> kNone;

TEST(Gates, a_healthy_window_passes_all_of_them) { EXPECT_EQ(failed({}), kNone); }

TEST(Gates, each_passes_at_its_limit_and_fails_beyond_it) {
  struct Row {
    const char* name;
    RefusalCode code;
    Change at, beyond;
  };
  const auto reason = [](std::int64_t bits) {
    return [bits](Subject& s) { s.w.end.event_reasons = bits; };
  };
  const Row table[] = {
      {"clock_jump", RefusalCode::clock_jump, [](Subject& s) { s.jumped = false; },
       [](Subject& s) { s.jumped = true; }},
      {"samples_missing_ratio", RefusalCode::meter_gap,
       [](Subject& s) { s.e.coverage = s.tier.min_coverage; },
       [](Subject& s) { s.e.coverage = s.tier.min_coverage - 1e-6; }},
      {"sample_gap_s", RefusalCode::meter_gap,
       [](Subject& s) { s.e.max_gap = s.tier.max_sample_gap; },
       [](Subject& s) { s.e.max_gap = s.tier.max_sample_gap + Seconds(1e-6); }},
      {"samples_frozen_s", RefusalCode::meter_frozen,
       [](Subject& s) { s.e.longest_repeat = Seconds(0.5); },
       [](Subject& s) { s.e.longest_repeat = Seconds(0.500001); }},
      {"power_known", RefusalCode::meter_gap, [](Subject&) {},
       [](Subject& s) { s.e.mean_power.reset(); }},
      {"power_plausible_ratio", RefusalCode::meter_implausible,
       [](Subject& s) { s.e.mean_power = s.e.counter_power = Watts(700 * 1.3); },
       [](Subject& s) { s.e.mean_power = s.e.counter_power = Watts(700 * 1.3001); }},
      {"counter_backwards_mj", RefusalCode::meter_backwards,
       [](Subject& s) { s.w.end.energy_mj = 1'000'001; },
       [](Subject& s) { s.w.end.energy_mj = 999'999; }},
      {"counter_frozen", RefusalCode::meter_frozen,
       [](Subject& s) { s.w.end.energy_mj = 1'000'001; },
       [](Subject& s) { s.w.end.energy_mj = 1'000'000; }},
      {"meter_disagreement_ratio", RefusalCode::meter_disagreement,
       [](Subject& s) { s.e.counter_power = Watts(400 * 1.1199); },
       [](Subject& s) {
         s.e.counter_power = Watts(400 * 1.1201);
       }}, // 2 % and one update of 0.1 s in 1 s
      {"meter_disagreement_ratio", RefusalCode::meter_disagreement,
       [](Subject& s) { s.e.counter_power = Watts(400 * 0.8801); },
       [](Subject& s) { s.e.counter_power = Watts(400 * 0.8799); }},
      {"thermal_throttle_s", RefusalCode::throttled, [](Subject&) {},
       [](Subject& s) { s.w.end.throttle.thermal_ns = 1; }},
      {"hw_thermal_throttle_s", RefusalCode::throttled, [](Subject&) {},
       [](Subject& s) { s.w.end.throttle.hw_thermal_ns = 1; }},
      {"power_brake_s", RefusalCode::throttled, [](Subject&) {},
       [](Subject& s) { s.w.end.throttle.power_brake_ns = 1; }},
      {"sync_boost_s", RefusalCode::throttled, [](Subject&) {},
       [](Subject& s) { s.w.end.throttle.sync_ns = 1; }},
      {"voiding_event_reasons", RefusalCode::throttled, reason(0x01 | 0x02 | 0x04),
       reason(0x08)}, // idle, applications, power cap
      {"voiding_event_reasons", RefusalCode::throttled, reason(0x100), reason(0x10)},
      {"voiding_event_reasons", RefusalCode::throttled, reason(0), reason(0x20)},
      {"voiding_event_reasons", RefusalCode::throttled, reason(0), reason(0x40)},
      {"voiding_event_reasons", RefusalCode::throttled, reason(0),
       [](Subject& s) { s.w.begin.event_reasons = 0x80; }},
      {"sm_clock_change_ratio", RefusalCode::throttled,
       [](Subject& s) { s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 981; },
       [](Subject& s) { s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 979; }},
      {"sm_clock_change_ratio", RefusalCode::throttled,
       [](Subject& s) { s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 1019; },
       [](Subject& s) { s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 1021; }},
      {"sm_clock_change_ratio", RefusalCode::throttled,
       [](Subject& s) { s.hold_down(), s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 901; },
       [](Subject& s) {
         s.hold_down(), s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 899;
       }},
      {"sm_clock_change_ratio", RefusalCode::throttled,
       [](Subject& s) {
         s.w.begin.throttle =
             s.w.end.throttle = {missing(), missing(), missing(), missing(), missing()};
         // the power cap, from a driver without times
         s.w.begin.event_reasons = s.w.end.event_reasons = 0x04;
         s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 1099;
       },
       [](Subject& s) { s.w.begin.sm_clock_mhz = 1000, s.w.end.sm_clock_mhz = 1099; }},
      {"replay_cv_ratio", RefusalCode::gate_failed, [](Subject& s) { s.w.replay_cv = 0.01; },
       [](Subject& s) { s.w.replay_cv = 0.010001; }},
      {"replay_cv_ratio", RefusalCode::gate_failed,
       [](Subject& s) { s.hold_down(), s.w.replay_cv = 0.05; },
       [](Subject& s) { s.hold_down(), s.w.replay_cv = 0.050001; }},
      {"window_too_short_s", RefusalCode::gate_failed, [](Subject&) {},
       [](Subject& s) { s.tier.min_window = Seconds(1.000001); }},
      {"pre_roll_too_short_s", RefusalCode::gate_failed,
       [](Subject& s) { s.behaviour.lag = Seconds(0.06), s.w.pre_roll = Seconds(0.3); },
       [](Subject& s) { s.behaviour.lag = Seconds(0.06), s.w.pre_roll = Seconds(0.299999); }},
      {"pre_roll_too_short_s", RefusalCode::gate_failed,
       [](Subject& s) { s.behaviour.lag = Seconds(0), s.w.pre_roll = Seconds(0.25); },
       [](Subject& s) { s.behaviour.lag = Seconds(0), s.w.pre_roll = Seconds(0.249999); }},
      {"idle_before_s", RefusalCode::gate_failed,
       [](Subject& s) { s.w.idle_before = Seconds(0.005); },
       [](Subject& s) { s.w.idle_before = Seconds(0.005001); }},
      {"host_device_time_s", RefusalCode::clock_jump, [](Subject& s) { s.w.end_ns += 4'999'999; },
       [](Subject& s) { s.w.end_ns += 5'000'001; }},
      {"host_device_time_s", RefusalCode::clock_jump, [](Subject& s) { s.w.end_ns -= 4'999'999; },
       [](Subject& s) { s.w.end_ns -= 5'000'001; }},
  };
  for (const auto& row : table) {
    Subject at, beyond;
    row.at(at);
    row.beyond(beyond);
    EXPECT_EQ(failed(at), kNone) << row.name;
    const auto names = failed(beyond);
    ASSERT_FALSE(names.empty()) << row.name;
    EXPECT_EQ(names.front(), row.name);
    // Without a power its plausibility is unknown too.
    EXPECT_EQ(names.size(), row.name == std::string("power_known") ? 2U : 1U) << row.name;
    for (const auto& g : beyond.judged())
      EXPECT_TRUE(g.passed || g.name != row.name || g.code == row.code)
          << row.name << " is refused as " << name_of(g.code);
  }
}

TEST(Gates,
     a_counter_read_by_its_updates_must_agree_within_a_percent_and_a_doubtful_edge_is_one_update) {
  Subject s;
  s.e.counter_updates = 50;
  s.e.counter_power = Watts(400 * 1.0099);
  EXPECT_EQ(failed(s), kNone);
  s.e.counter_power = Watts(400 * 1.0101);
  EXPECT_EQ(failed(s), std::vector<std::string>{"meter_disagreement_ratio"});
  s.e.doubtful_edges = 1; // 1 + 2 %
  EXPECT_EQ(failed(s), kNone);
  s.e.counter_power = Watts(400 * 0.9699);
  EXPECT_EQ(failed(s), std::vector<std::string>{"meter_disagreement_ratio"});
  s.e.doubtful_edges = 2;
  EXPECT_EQ(failed(s), kNone);
}

MeterResponse response(double lag, double pre_roll, double minimum_window) {
  return {std::string(64, 'e'), "nvml.samples.total_power", Seconds(lag), Seconds(pre_roll),
          Seconds(minimum_window)};
}

TEST(Gates, a_response_record_sets_the_pre_roll_whatever_the_warm_up_saw) {
  Subject s;
  s.behaviour.lag = Seconds(0.07); // would ask for 350 ms
  s.behaviour.response.record = response(0.042, 0.21, 0.9);
  s.w.pre_roll = Seconds(0.21);
  EXPECT_EQ(failed(s), kNone);
  s.w.pre_roll = Seconds(0.2099);
  EXPECT_EQ(failed(s), std::vector<std::string>{"pre_roll_too_short_s"});
}

TEST(Gates, evidence_needs_windows_as_long_as_the_response_asks_for) {
  Subject s;
  s.behaviour.response.record = response(0.042, 0.21, 1.0);
  EXPECT_EQ(failed(s), kNone);
  s.behaviour.response.record = response(0.042, 0.21, 1.01);
  EXPECT_EQ(failed(s), std::vector<std::string>{"window_too_short_s"});
  s.tier.is_evidence = false;
  EXPECT_EQ(failed(s), kNone);
  s.tier.is_evidence = true;
  s.behaviour.response.record = response(0.042, 0.21, 0.5); // never less than the tier's own
  s.tier.min_window = Seconds(1.01);
  EXPECT_EQ(failed(s), std::vector<std::string>{"window_too_short_s"});
}

TEST(Gates, no_samples_at_all_is_told_apart_from_a_gap) {
  Subject s;
  s.e = {};
  const auto gates = s.judged();
  const auto gate = std::find_if(gates.begin(), gates.end(),
                                 [](auto& g) { return g.name == "samples_missing_ratio"; });
  ASSERT_NE(gate, gates.end());
  EXPECT_EQ(gate->code, RefusalCode::meter_empty);
  EXPECT_EQ(failed(s).front(), "samples_missing_ratio");
}

TEST(Gates, a_missing_value_fails_only_where_it_is_needed) {
  const std::tuple<const char*, Change, std::vector<std::string>> table[] = {
      {"counter",
       [](Subject& s) { s.w.end.energy_mj = missing(), s.e.counter_power.reset(); },
       {"counter_backwards_mj"}},
      {"throttle times",
       [](Subject& s) {
         s.w.end.throttle = {missing(), missing(), missing(), missing(), missing()};
       },
       {}},
      {"event reasons",
       [](Subject& s) { s.w.begin.event_reasons = missing(); },
       {"voiding_event_reasons"}},
      {"clocks", [](Subject& s) { s.w.end.sm_clock_mhz = missing(); }, {"sm_clock_change_ratio"}},
      {"power limit",
       [](Subject& s) { s.reference.power_limit.reset(); },
       {"power_plausible_ratio"}},
  };
  for (const auto& [name, change, expected] : table) {
    Subject s;
    change(s);
    EXPECT_EQ(failed(s), expected) << name;
    const bool counter = expected == std::vector<std::string>{"counter_backwards_mj"};
    s.tier = tier_named("smoke-v1").value(); // which can do without, but for the counter
    EXPECT_EQ(failed(s), counter ? expected : kNone) << name;
  }
}

TEST(Gates, a_value_that_is_no_number_fails) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<const char*, Change> table[] = {
      {"replay_cv_ratio", [](Subject& s) { s.w.replay_cv = kNan; }},
      {"samples_missing_ratio", [](Subject& s) { s.e.coverage = kNan; }},
      {"meter_disagreement_ratio", [](Subject& s) { s.e.counter_power = Watts(kNan); }},
      {"power_plausible_ratio",
       [](Subject& s) { s.e.mean_power = Watts(kNan), s.e.counter_power.reset(); }},
  };
  for (const auto& [name, change] : table) {
    Subject s;
    change(s);
    EXPECT_EQ(failed(s), std::vector<std::string>{name});
  }
}

TEST(Gates, temperature_is_only_reported_in_a_smoke_run) {
  Subject s;
  s.tier = tier_named("smoke-v1").value();
  s.w.end.temperature_c = 80;
  EXPECT_EQ(failed(s), kNone);
  s.w.end.temperature_c = missing();
  EXPECT_EQ(failed(s), kNone);
  const auto gates = s.judged();
  const auto drift = std::find_if(gates.begin(), gates.end(),
                                  [](auto& g) { return g.name == "job_temperature_drift_c"; });
  ASSERT_NE(drift, gates.end());
  EXPECT_FALSE(drift->limit);
}

TEST(Gates, a_power_cap_is_reported_and_never_fails) {
  Subject s;
  s.w.end.throttle.power_cap_ns = 900'000'000;
  s.w.end.event_reasons = 0x04;
  EXPECT_EQ(failed(s), kNone);
  const auto gates = s.judged();
  const auto gate =
      std::find_if(gates.begin(), gates.end(), [](auto& g) { return g.name == "power_cap_s"; });
  ASSERT_NE(gate, gates.end());
  EXPECT_DOUBLE_EQ(*gate->value, 0.9);
}

TEST(Gates, a_window_that_only_touched_the_power_limit_is_judged_as_one_that_did_not) {
  const std::vector<std::string> both{"sm_clock_change_ratio", "replay_cv_ratio"};
  Subject s;
  s.w.end.sm_clock_mhz = 1980 * 96 / 100; // limits: 2 to 10 % by the share
  s.w.replay_cv = 0.0201;                 // 1 to 5 %
  for (const double share : {0.0, 1e-9, 0.05, 0.2}) {
    s.hold_down(share);
    EXPECT_EQ(failed(s), both) << share;
  }
  for (const double share : {0.3, 0.5, 1.0, 1.02}) { // its counter is read a little later
    s.hold_down(share);
    EXPECT_EQ(failed(s), kNone) << share;
  }
  s.w.begin.throttle = s.w.end.throttle = {missing(), missing(), missing(), missing(), missing()};
  s.w.end.event_reasons = 0x04; // at one edge only
  EXPECT_EQ(failed(s), both);
}

TEST(Gates, the_energy_itself_is_not_judged) {
  for (const double joules : {1e-12, 0.4, 1e12}) {
    Subject s;
    s.e.energy_per_launch = Joules(joules);
    EXPECT_EQ(failed(s), kNone);
  }
}

TEST(Gates, a_plan_from_before_holds_every_window_to_its_own_limits) {
  Subject s;
  s.tier.drift_beyond_arms = false;
  s.tier.max_capped_clock_change.reset();
  s.tier.max_capped_replay_cv.reset();
  for (const int allowed : {48, 52}) {
    s.w.end.temperature_c = allowed;
    EXPECT_EQ(failed(s), kNone);
  }
  const std::vector<std::string> drift{"job_temperature_drift_c"};
  for (const int beyond : {47, 53}) {
    s.w.end.temperature_c = beyond;
    EXPECT_EQ(failed(s), drift);
  }
  s.w.end.temperature_c = missing();
  EXPECT_EQ(failed(s), drift);
  s.w.end.temperature_c = 50;
  s.reference.temperature_c.reset();
  EXPECT_EQ(failed(s), drift);
  s.reference.temperature_c = 50;
  s.hold_down();
  s.w.end.sm_clock_mhz = 1940; // 2.02 % under 1980
  s.w.replay_cv = 0.0101;
  EXPECT_EQ(failed(s), (std::vector<std::string>{"sm_clock_change_ratio", "replay_cv_ratio"}));
}

} // namespace
} // namespace hebe::measure
