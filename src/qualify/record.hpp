// What a qualification says (schema hebe.qualification.kernel/1). In: every kernel with its checks;
// out: JSON, and which pairs may be measured. Invariant: a kernel is qualified only where every
// check of it passed; without a GPU the checks that need one are listed as not run, and the record
// says that it is simulated; no energy is in it.
#pragma once

#include "qualify/check.hpp"
#include "qualify/spec.hpp"
#include "ttgir/counts.hpp"

namespace hebe::qualify {

/// One kernel: the baseline or a candidate.
struct Variant {
  std::string name, why;
  Json passes = Json::array();
  Json rewrite = nullptr; ///< the account of its passes; null: there were none
  std::optional<kernel::CompiledCase> compiled; ///< none: it could not be built
  std::vector<Check> checks;
  Json outputs = Json::object();
  Json mechanism = nullptr, occupancy = nullptr;
  std::optional<ttgir::Counts> counts;
  bool counted_at_point = true; ///< else at the smaller launch that the interpreter was given

  /// Every check passed; those that need a GPU only where there is one.
  [[nodiscard]] bool qualified(bool gpu) const;
  [[nodiscard]] std::vector<const Check*> problems(bool gpu) const;
};

struct PointResult {
  std::string name;
  bool primary = false;
  Json inputs;      ///< digests
  Json interpreted; ///< where the interpreter saw another launch of the same code: its parameters
  Variant baseline;
  std::vector<Variant> candidates;
  /// "baseline" or a candidate; null where it was not built at this point.
  [[nodiscard]] const Variant* find(std::string_view variant) const;
};

/// A pair that may be measured, chosen without any energy.
struct MeasurementCase {
  std::string point, a, b;
  bool primary = false;
  std::string why_not;               ///< empty: eligible
  std::optional<double> bytes_saved; ///< loaded by a and not by b, as interpreted
};
[[nodiscard]] std::vector<MeasurementCase>
measurement_cases(const QualificationSpec& spec, const std::vector<PointResult>& points, bool gpu);

struct Findings {
  std::vector<PointResult> points;
  std::vector<MeasurementCase> cases;
  bool gpu = false; ///< whether a GPU ran the kernels
  /// With contrasts: the primary case is eligible (all are, where the primary point was left out).
  /// Without: every candidate is qualified at every point.
  [[nodiscard]] bool qualified() const;
};

/// A check that candidate loads fewer bytes of each argument than the baseline, as interpreted.
[[nodiscard]] Check fewer_loads(const std::vector<std::string>& arguments, const Variant& baseline,
                                const Variant& candidate);

/// One point, as it stands in a record.
[[nodiscard]] Json to_json(const PointResult& point, bool gpu);

/// Everything but what it was found on (environment, when).
[[nodiscard]] Json to_json(const QualificationSpec& spec, const Findings& findings);

} // namespace hebe::qualify
