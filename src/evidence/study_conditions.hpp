// Whether a study qualifies. In: its runs and its qualification; out: every condition with what
// shows whether it holds. Invariant: none is left out: what could not be known does not hold, and
// where runs differ the fact stands there with both values and their jobs.
#pragma once

#include "evidence/study_runs.hpp"
#include "measure/condition.hpp"

namespace hebe::evidence {

/// The primary's own, and no other contrast's.
inline constexpr std::string_view kPrimaryQualified = "primary's run qualified: every gate passed";

[[nodiscard]] std::vector<measure::Condition> study_conditions(const StudyRuns& study);

} // namespace hebe::evidence
