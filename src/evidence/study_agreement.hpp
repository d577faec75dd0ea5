// What the jobs of a study have to have in common: boot, board, lease, platform and protocol. In:
// its runs; out: conditions. Invariant: of what differs every value stands there with its jobs; an
// identity that is not known is not common.
#pragma once

#include "evidence/study_runs.hpp"
#include "measure/condition.hpp"

namespace hebe::evidence {

[[nodiscard]] std::vector<measure::Condition> jobs_agree(const StudyRuns& study);

/// What keeps a run from being the calibration that a control was predicted from: another board or
/// boot, a later start, another source, or fractions that its arms did not have. Empty: nothing.
[[nodiscard]] std::vector<std::string> calibration_faults(const StoredRun& calibration,
                                                          const StoredRun& control);

/// The value of an environment fact; null: unavailable, or nobody looked.
[[nodiscard]] Json fact_value(const StoredRun& run, std::string_view name);

} // namespace hebe::evidence
