// One arm of a study's contrast: its energy, clocks and limits, what of its energy an idle board
// would draw, and how far it is from a plain copy of its bytes. In: the contrast's run; out: JSON
// (hebe.analysis.study/1, "arms"). Invariant: what was not read is null or says why; a number that
// was not measured says what it was estimated from.
#pragma once

#include "evidence/study_runs.hpp"

#include <optional>

namespace hebe::evidence {

/// What a launch that does nothing but move bytes costs: arm A of the study's floor or control.
struct PlainCopy {
  std::string job, case_name, provenance, tier;
  double bytes = 0, energy_j = 0, latency_s = 0, power_w = 0;
};
struct PlainCopies {
  std::optional<PlainCopy> floor, control;
};
[[nodiscard]] Result<PlainCopies> plain_copies_of(const StudyRuns& study);

/// {"A": ARM, "B": ARM}; its run was read with telemetry.
[[nodiscard]] Result<Json> study_arms(const StudyJob& contrast, const PlainCopies& copies);

} // namespace hebe::evidence
