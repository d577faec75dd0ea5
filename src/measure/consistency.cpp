#include "measure/consistency.hpp"

#include "measure/prediction.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hebe::measure {
namespace {

std::unexpected<Refusal> contradiction(std::string what) {
  return refuse(RefusalCode::analysis_mismatch, std::move(what), "restore the run from a copy");
}

// As the tier is, or as it was: before it knew how an arm at the power limit behaves (its power
// flickers, the clock after it comes back late), before it waited for a
// board that had left its temperature and let arms settle each by itself, before it knew what arms
// do by themselves (warm the board unequally, and be held at the power limit), before it let a
// temperature flicker without a trend (and wait longer for it), and before it asked for one that
// stands still.
bool has_thresholds_of(const Tier& asked, Tier tier) {
  if (to_json(asked) == to_json(tier)) return true;
  tier.steady_power.reset();
  tier.steady_energy_change.reset();
  tier.max_clock_recovery.reset();
  if (to_json(asked) == to_json(tier)) return true;
  tier.settle_by_arm = false;
  tier.max_hold.reset();
  if (to_json(asked) == to_json(tier)) return true;
  tier.drift_beyond_arms = false;
  tier.max_capped_clock_change.reset();
  tier.max_capped_replay_cv.reset();
  if (to_json(asked) == to_json(tier)) return true;
  tier.steady_temperature.reset();
  tier.steady_change.reset();
  if (tier.is_evidence) tier.max_warm_up = Seconds(180);
  if (to_json(asked) == to_json(tier)) return true;
  tier.still_span.reset();
  tier.steady_span.reset();
  return to_json(asked) == to_json(tier);
}

Status plan_is_its_tiers(const Plan& plan) {
  const auto tier = tier_named(plan.tier.name);
  if (!tier || !has_thresholds_of(plan.tier, *tier))
    return contradiction("the plan's thresholds are not those of tier \"" + plan.tier.name + "\"");
  auto again = plan;
  if (auto complete = complete_plan(again); !complete)
    return contradiction("the plan is below its tier: " + complete.error().what);
  if (again.order != plan.order)
    return contradiction("the order of the pairs is not what the seed gives");
  if (plan.kind == "aa" && plan.cubins[0] != plan.cubins[1])
    return contradiction("an A/A plan has two different cubins");
  for (int arm = 0; arm < 2; ++arm) {
    const auto& subject = subject_of(plan, arm);
    if (!subject.contains("artifacts")) continue;
    const auto& artifacts = subject.at("artifacts"); // a library stands in a cubin's place
    if (artifacts.value("cubin", artifacts.value("library", "")) !=
        plan.cubins[static_cast<std::size_t>(arm)])
      return contradiction(fmt::format("arm {}'s cubin is not the artifact that was compiled",
                                       arm == 0 ? "A" : "B"));
  }
  return {};
}

Status prediction_follows(const Plan& plan) {
  if (plan.kind != "positive_control") return {};
  if (const auto fault = prediction_fault(plan.prediction); !fault.empty())
    return contradiction("the prediction does not follow from its calibration: " + fault);
  const auto bytes = [&](int arm) {
    const auto& work = subject_of(plan, arm).at("launch").at("work");
    return work.at("bytes_read").get<double>() + work.at("bytes_written").get<double>();
  };
  const auto& c = plan.prediction.at("calibration");
  if (c.at("plain_bytes") != bytes(0) ||
      std::abs(c.at("declared_fraction").get<double>() - (bytes(1) / bytes(0) - 1)) > 1e-9)
    return contradiction("the prediction is not for the traffic that the plan's arms declare");
  return {};
}

Status provenance_agrees(const Plan& plan, const Acquisition& a) {
  const std::string device = plan.device.value("provenance", "");
  if (device != name_of(a.provenance))
    return contradiction(
        fmt::format("the plan's device is {}, the windows are {}", device, name_of(a.provenance)));
  // Only a vendor's live meter measures: a replayed or simulated source cannot be relabelled.
  const std::string live = a.provenance == Provenance::measured ? "nvml." : "sim.";
  for (const auto& source : {a.samples.name, a.counter.name})
    if (!source.starts_with(live))
      return contradiction(fmt::format("source {} cannot be {}", source, name_of(a.provenance)));
  return {};
}

Status warm_up_follows(const Plan& plan, const Acquisition& a) {
  const auto& blocks = a.warm_up.blocks;
  if (blocks.empty()) return contradiction("the warm-up has no blocks");
  if (a.warm_up.stable != has_settled(blocks, plan.tier))
    return contradiction("whether the warm-up settled does not follow from its blocks");
  if (a.warm_up.duration < plan.warm_up)
    return contradiction("the warm-up was shorter than planned");
  const double spanned = to_seconds(Nanos(blocks.back().end_ns - blocks.front().end_ns)).value();
  if (spanned > a.warm_up.duration.value())
    return contradiction("the warm-up's blocks span more than its duration");
  if (a.reference.temperature_c != settled_temperature(blocks, plan.tier))
    return contradiction("the reference temperature is not what the warm-up's blocks give");
  std::array<Seconds, 2> latency{};
  for (const auto& b : blocks) latency[static_cast<std::size_t>(b.arm)] = b.latency;
  for (std::size_t i = 0; i < 2; ++i)
    if (std::abs(latency[i] / a.reference.latency[i] - 1) > 1e-9)
      return contradiction("the reference latency is not that of the last warm-up blocks");
  return {};
}

// A run that followed a response record: that of its own source, which its own step agreed with.
Status response_follows(const Acquisition& a) {
  const auto& r = a.behaviour.response.record;
  if (!r) return {};
  if (r->source != a.samples.name)
    return contradiction("the response record is of " + r->source + ", the samples are of " +
                         a.samples.name);
  if (!(r->lag.value() > 0) || r->pre_roll.value() < 4.999 * r->lag.value())
    return contradiction("the response record's pre-roll is not five of its lags");
  if (a.behaviour.step_lag &&
      !agrees_with_step(*r, *a.behaviour.step_lag, a.behaviour.sample_period))
    return contradiction(disagreement(*r, *a.behaviour.step_lag, a.behaviour.sample_period));
  return {};
}

Status windows_follow(const Plan& plan, const Acquisition& a, std::span<const Window> windows) {
  std::int64_t index = 0, last_end = a.warm_up.blocks.back().end_ns;
  for (const auto& w : windows) {
    const auto& r = w.reading;
    if (r.index != index++)
      return contradiction(fmt::format("window {} stands in place {}", r.index, index - 1));
    if (r.begin_ns <= last_end || r.end_ns <= r.begin_ns)
      return contradiction(fmt::format("window {} overlaps what was before it", r.index));
    last_end = r.end_ns;
    if (r.attempt > plan.tier.max_attempts)
      return contradiction(fmt::format("window {} is of attempt {}, the tier allows {}", r.index,
                                       r.attempt, plan.tier.max_attempts));
  }
  if (auto fault = hold_fault(a.holds, windows, a.reference, plan.tier); !fault.empty())
    return contradiction(std::move(fault));
  return {};
}

} // namespace

Status check_consistency(const Plan& plan, const Acquisition& a, std::span<const Window> windows) {
  HEBE_CHECK(plan_is_its_tiers(plan));
  HEBE_CHECK(prediction_follows(plan));
  HEBE_CHECK(provenance_agrees(plan, a));
  HEBE_CHECK(warm_up_follows(plan, a));
  HEBE_CHECK(response_follows(a));
  return windows_follow(plan, a, windows);
}

} // namespace hebe::measure
