// What extra memory traffic must cost, said before it is measured. In: the energy and time of one
// kernel at two other fractions of extra traffic, measured on the same board under the same lease;
// out: the control's effects with a range, and afterwards whether they came true. Invariant: pure;
// no window of the control itself is ever an input.
#pragma once

#include "core/json.hpp"
#include "measure/condition.hpp"
#include "measure/contrast.hpp"

#include <array>
#include <optional>
#include <vector>

namespace hebe::measure {

/// A launch with this fraction of extra traffic, as calibrated. Errors: standard errors of means.
struct CalibrationPoint {
  double fraction = 0;
  double energy_j = 0, energy_error_j = 0;
  double latency_s = 0, latency_error_s = 0;
  double power_w = 0;
};

struct Calibration {
  std::array<CalibrationPoint, 2> points; ///< lower fraction first
  double plain_bytes = 0;                 ///< declared traffic of a launch with no extra
  double declared_fraction = 0; ///< of arm B, from the bytes both arms declare; 0: it declares none
  std::optional<double> capped_s, power_limit_w;
  int pairs = 0;
  std::string run_id, seal; ///< the sealed run that the calibration is
};

/// The range is this share of the predicted effect either way, and three standard errors. The share
/// allows for what a straight line leaves out: a DRAM reads more efficiently than it turns between
/// reading and writing, and leakage follows the temperature. (A linear model cannot know better
/// than that; a meter or a cache that is wrong is wrong by more: see docs/protocol.md.)
inline constexpr double kAllowance = 0.15, kErrors = 3;

/// Points, pairs and time on the power limit, from the analysis (hebe.run.analysis/1) of a job
/// whose arms had these fractions. The other members are the caller's.
[[nodiscard]] Calibration calibration_of(const Json& analysis, double low, double high);

/// Schema: member "prediction" of hebe.run.plan/1. Refuses gate_failed where the line through the
/// calibration gives a launch with no extra traffic no energy or no time; bad_argument for
/// fractions that are not finite, not above 0 or equal.
[[nodiscard]] Result<Json> predict(double fraction, const Calibration& calibration);
[[nodiscard]] Result<Calibration> calibration_from(const Json& json);
/// Where the calibration in a prediction differs from the analysis of the run that it names; empty:
/// nowhere.
[[nodiscard]] std::string calibration_fault(const Json& calibration, const Json& analysis);
/// Empty, or what in the prediction does not follow from its own calibration.
[[nodiscard]] std::string prediction_fault(const Json& prediction);

/// Sign, interval and range, of energy and latency, and whether the case declares the traffic.
[[nodiscard]] std::vector<Condition>
control_conditions(const Json& prediction, const Contrast& energy, const Contrast& latency);

/// Member "control" of hebe.run.analysis/1: the prediction beside what was seen.
[[nodiscard]] Json control_json(const Json& prediction, const std::vector<Condition>& conditions,
                                std::optional<double> capped_s);

/// Whether a board on its power limit was seen, in words.
[[nodiscard]] std::string power_cap_words(std::optional<double> capped_s, const char* during);

} // namespace hebe::measure
