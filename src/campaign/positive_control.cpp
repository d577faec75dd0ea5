#include "campaign/positive_control.hpp"

#include "campaign/campaign_spec.hpp"
#include "measure/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::campaign {
namespace {

Result<double> declared_bytes(const kernel::LaunchSpec& launch) {
  if (launch.work && launch.work->read.count + launch.work->written.count > 0)
    return static_cast<double>(launch.work->read.count) +
           static_cast<double>(launch.work->written.count);
  return refuse(RefusalCode::bad_spec, "case \"" + launch.name + "\" declares no traffic",
                "give the case its work: the prediction is per byte");
}

// What the plan predicts, from the sealed calibration and the traffic that arm A declares. The
// fraction is the claim; that the arms declare as much is one of the control's conditions.
Result<Json> predicted(const JobOutcome& calibration, const PreparedArms& arms, double fraction) {
  HEBE_TRY(const double plain, declared_bytes(arms.arm(0).compiled.launch));
  HEBE_TRY(const double extra, declared_bytes(arms.arm(1).compiled.launch));
  auto c = measure::calibration_of(calibration.analysis.json, kCalibrationLow * fraction,
                                   kCalibrationHigh * fraction);
  c.plain_bytes = plain;
  c.declared_fraction = extra / plain - 1;
  c.run_id = calibration.run.run_id;
  c.seal = calibration.run.seal;
  if (const auto limit = calibration.acquisition.reference.power_limit)
    c.power_limit_w = limit->value();
  return measure::predict(fraction, c);
}

} // namespace

Predict control_prediction(const JobOutcome& calibration, double fraction) {
  return [&calibration, fraction](const PreparedArms& arms) {
    return predicted(calibration, arms, fraction);
  };
}

JobSpec at_fractions(JobSpec job, double a, double b) {
  job.kind = "ab";
  job.subject_b = job.subject;
  job.subject.parameters["fraction"] = a;
  job.subject_b->parameters["fraction"] = b;
  return job;
}

Result<JobRequest> control_request(JobRequest protocol, double fraction) {
  if (!std::isfinite(fraction) || fraction <= 0 || fraction > kMostFraction)
    return refuse(
        RefusalCode::bad_argument, fmt::format("a fraction of {} is no extra traffic", fraction),
        fmt::format("give a number above 0 and up to {}; 1 is as much again", kMostFraction),
        "--fraction");
  if (protocol.subject.parameters.contains("fraction"))
    return refuse(RefusalCode::bad_argument, "the case's fraction is what the arms differ in",
                  "use --fraction", "--set fraction");
  static_cast<JobSpec&>(protocol) = at_fractions(protocol, 0, fraction);
  protocol.kind = "positive_control";
  HEBE_CHECK(drafted(protocol));
  return protocol;
}

JobRequest calibration_request(const JobRequest& control, double fraction) {
  auto r = control;
  auto spec = static_cast<const JobSpec&>(control);
  spec = at_fractions(spec, kCalibrationLow * fraction, kCalibrationHigh * fraction);
  const bool evidence = control.tier.is_evidence;
  spec.tier = measure::tier_named("smoke-v1").value();
  spec.pairs = 4;
  spec.window = Seconds(evidence ? 2 : spec.tier.min_window.value());
  spec.warm_up = Seconds(evidence ? 10 : spec.tier.min_warm_up.value());
  if (control.seed) spec.seed = seed_for(std::to_string(*control.seed), "calibration");
  static_cast<JobSpec&>(r) = std::move(spec);
  r.machine.seed = r.seed.value_or(1); // a simulated board must not repeat its noise
  return r;
}

Result<ControlOutcome> run_positive_control(const evidence::DataRoot& root,
                                            const JobRequest& control, double fraction,
                                            const JobCallbacks& callbacks) {
  const auto calibration = calibration_request(control, fraction);
  HEBE_CHECK(drafted(calibration));
  HEBE_TRY(auto leased, lease_machine(root, calibration, callbacks));
  HEBE_TRY(auto first, run_leased(root, calibration, *leased.machine, leased.lease, callbacks));
  auto again = control.machine;
  if (!leased.machine->simulated()) again.selector = leased.machine->info().uuid;
  leased.machine.reset(); // its context
  HEBE_TRY(leased.machine, Machine::open(again));
  HEBE_TRY(auto second, run_leased(root, control, *leased.machine, leased.lease, callbacks,
                                   control_prediction(first, fraction)));
  return ControlOutcome{std::move(first), std::move(second)};
}

} // namespace hebe::campaign
