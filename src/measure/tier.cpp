#include "measure/tier.hpp"

namespace hebe::measure {
namespace {

constexpr double kCappedClockChange = 0.1; // beyond it the board is in another state
constexpr double kCappedReplayCv = 0.05;
constexpr double kClockRecovery = 0.35;

Tier smoke() {
  Tier t;
  t.name = "smoke-v1";
  t.max_capped_clock_change = kCappedClockChange;
  t.max_capped_replay_cv = kCappedReplayCv;
  t.max_clock_recovery = kClockRecovery;
  t.drift_beyond_arms = true;
  t.settle_by_arm = true;
  return t;
}

// Limits follow an H200 as found: pairs of 5 s windows differ by about 0.05 %, its samples come 20
// ms apart (largest seen 44.6 ms), and its temperature reads in whole degrees.
Tier confirmation() {
  Tier t;
  t.name = "confirmation-v1";
  t.is_evidence = true;
  t.min_pairs = 12;
  t.min_window = Seconds(5);
  t.min_warm_up = Seconds(30);
  t.max_warm_up = Seconds(300);
  t.settle_span = Seconds(20);
  t.settle_power = 0.006;
  t.settle_temperature = Celsius(1);
  t.still_span = Seconds(30);
  t.steady_span = Seconds(60);
  t.steady_temperature = Celsius(2); // as far as the job may drift
  t.steady_change = Celsius(0.5);
  t.steady_power = 0.015;
  t.steady_energy_change = 0.002; // as much as leakage makes of 1 to 2 C
  t.max_job_drift = Celsius(2);
  t.max_pair_drift = Celsius(1);
  t.drift_beyond_arms = true;
  t.settle_by_arm = true;
  t.max_hold = Seconds(180); // about what beginning anew costs
  t.max_capped_clock_change = kCappedClockChange;
  t.max_capped_replay_cv = kCappedReplayCv;
  t.max_clock_recovery = kClockRecovery;
  t.min_coverage = 0.95;
  t.max_sample_gap = Seconds(0.1);
  t.meter_agreement = 0.02;
  t.max_replay_cv = 0.01;
  return t;
}

Json optional_number(const std::optional<Celsius>& v) {
  return v ? Json(v->value()) : Json(nullptr);
}
std::optional<Celsius> optional_celsius(const Json& j) {
  return j.is_null() ? std::nullopt : std::optional(Celsius(j.get<double>()));
}

} // namespace

Result<Tier> tier_named(std::string_view name) {
  for (auto tier : {smoke(), confirmation()})
    if (tier.name == name) return tier;
  return refuse(RefusalCode::bad_argument, "unknown protocol tier \"" + std::string(name) + "\"",
                "use smoke-v1 or confirmation-v1");
}

Json to_json(const Tier& t) {
  Json out{{"name", t.name},
           {"is_evidence", t.is_evidence},
           {"min_pairs", t.min_pairs},
           {"min_window_s", t.min_window.value()},
           {"min_warm_up_s", t.min_warm_up.value()},
           {"max_warm_up_s", t.max_warm_up.value()},
           {"settle_span_s", t.settle_span.value()},
           {"settle_power_ratio", t.settle_power},
           {"settle_temperature_c", t.settle_temperature.value()},
           {"max_job_drift_c", optional_number(t.max_job_drift)},
           {"max_pair_drift_c", optional_number(t.max_pair_drift)},
           {"min_coverage_ratio", t.min_coverage},
           {"max_sample_gap_s", t.max_sample_gap.value()},
           {"max_repeat_s", t.max_repeat.value()},
           {"max_clock_change_ratio", t.max_clock_change},
           {"meter_agreement_ratio", t.meter_agreement},
           {"max_replay_cv_ratio", t.max_replay_cv},
           {"max_energy_margin_percent", t.max_energy_margin},
           {"max_latency_margin_percent", t.max_latency_margin},
           {"max_failed_pairs_ratio", t.max_failed_pairs},
           {"max_idle_s", t.max_idle.value()},
           {"max_attempts", t.max_attempts},
           {"order_alpha", t.order_alpha},
           {"trend_alpha", t.trend_alpha}};
  if (t.still_span) out["still_span_s"] = t.still_span->value(); // older plans say neither
  if (t.steady_span) out["steady_span_s"] = t.steady_span->value();
  if (t.steady_temperature) out["steady_temperature_c"] = t.steady_temperature->value();
  if (t.steady_change) out["steady_change_c"] = t.steady_change->value();
  if (t.steady_power) out["steady_power_ratio"] = *t.steady_power;
  if (t.steady_energy_change) out["steady_energy_change_ratio"] = *t.steady_energy_change;
  if (t.drift_beyond_arms) out["drift_beyond_arms"] = true;
  if (t.settle_by_arm) out["settle_by_arm"] = true;
  if (t.max_hold) out["max_hold_s"] = t.max_hold->value();
  if (t.max_capped_clock_change) out["max_capped_clock_change_ratio"] = *t.max_capped_clock_change;
  if (t.max_capped_replay_cv) out["max_capped_replay_cv_ratio"] = *t.max_capped_replay_cv;
  if (t.max_clock_recovery) out["max_clock_recovery_ratio"] = *t.max_clock_recovery;
  return out;
}

Result<Tier> tier_from(const Json& j) {
  try {
    Tier t;
    t.name = j.at("name");
    t.is_evidence = j.at("is_evidence");
    t.min_pairs = j.at("min_pairs");
    t.min_window = Seconds(j.at("min_window_s"));
    t.min_warm_up = Seconds(j.at("min_warm_up_s"));
    t.max_warm_up = Seconds(j.at("max_warm_up_s"));
    t.settle_span = Seconds(j.at("settle_span_s"));
    t.settle_power = j.at("settle_power_ratio");
    t.settle_temperature = Celsius(j.at("settle_temperature_c"));
    if (j.contains("still_span_s")) t.still_span = Seconds(j.at("still_span_s"));
    if (j.contains("steady_span_s")) t.steady_span = Seconds(j.at("steady_span_s"));
    if (j.contains("steady_temperature_c"))
      t.steady_temperature = Celsius(j.at("steady_temperature_c"));
    if (j.contains("steady_change_c")) t.steady_change = Celsius(j.at("steady_change_c"));
    if (j.contains("steady_power_ratio")) t.steady_power = j.at("steady_power_ratio").get<double>();
    if (j.contains("steady_energy_change_ratio"))
      t.steady_energy_change = j.at("steady_energy_change_ratio").get<double>();
    t.drift_beyond_arms = j.value("drift_beyond_arms", false);
    t.settle_by_arm = j.value("settle_by_arm", false);
    if (j.contains("max_hold_s")) t.max_hold = Seconds(j.at("max_hold_s"));
    if (j.contains("max_capped_clock_change_ratio"))
      t.max_capped_clock_change = j.at("max_capped_clock_change_ratio").get<double>();
    if (j.contains("max_capped_replay_cv_ratio"))
      t.max_capped_replay_cv = j.at("max_capped_replay_cv_ratio").get<double>();
    if (j.contains("max_clock_recovery_ratio"))
      t.max_clock_recovery = j.at("max_clock_recovery_ratio").get<double>();
    t.max_job_drift = optional_celsius(j.at("max_job_drift_c"));
    t.max_pair_drift = optional_celsius(j.at("max_pair_drift_c"));
    t.min_coverage = j.at("min_coverage_ratio");
    t.max_sample_gap = Seconds(j.at("max_sample_gap_s"));
    t.max_repeat = Seconds(j.at("max_repeat_s"));
    t.max_clock_change = j.at("max_clock_change_ratio");
    t.meter_agreement = j.at("meter_agreement_ratio");
    t.max_replay_cv = j.at("max_replay_cv_ratio");
    t.max_energy_margin = j.at("max_energy_margin_percent");
    t.max_latency_margin = j.at("max_latency_margin_percent");
    t.max_failed_pairs = j.at("max_failed_pairs_ratio");
    t.max_idle = Seconds(j.at("max_idle_s"));
    t.max_attempts = j.at("max_attempts");
    t.order_alpha = j.at("order_alpha");
    t.trend_alpha = j.at("trend_alpha");
    return t;
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::bad_schema, std::string("tier: ") + e.what());
  }
}

} // namespace hebe::measure
