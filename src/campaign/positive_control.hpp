// Is extra memory traffic seen as what it costs? In: a traffic case, a fraction, a protocol; out:
// two sealed runs, a calibration at two other fractions and the control whose plan holds the
// prediction made from it. Invariant: one lease covers both, and the prediction is frozen before
// the control's first launch.
#pragma once

#include "campaign/job.hpp"

namespace hebe::campaign {

/// Arm A has no extra traffic, arm B this fraction; the calibration has these shares of it.
inline constexpr double kCalibrationLow = 0.25, kCalibrationHigh = 0.75;
inline constexpr double kMostFraction = 16;

/// `protocol.subject` is the traffic case, whose function takes `fraction`; its kind and subject_b
/// are set here. Refuses bad_argument for a fraction that is not finite, not above 0 or above
/// kMostFraction, and for a `fraction` among the subject's parameters.
[[nodiscard]] Result<JobRequest> control_request(JobRequest protocol, double fraction);
/// The calibration before it: smoke, four pairs, its own seed.
[[nodiscard]] JobRequest calibration_request(const JobRequest& control, double fraction);

/// What a control's plan predicts from the sealed calibration, which must outlive it.
[[nodiscard]] Predict control_prediction(const JobOutcome& calibration, double fraction);

struct ControlOutcome {
  JobOutcome calibration, control;
};
[[nodiscard]] Result<ControlOutcome> run_positive_control(const evidence::DataRoot& root,
                                                          const JobRequest& control,
                                                          double fraction,
                                                          const JobCallbacks& callbacks);

/// An A/B job whose arms are a traffic case at two fractions; the kind is "ab".
[[nodiscard]] JobSpec at_fractions(JobSpec job, double a, double b);

} // namespace hebe::campaign
