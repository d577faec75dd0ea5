// Whether studies repeat each other. In: two or more studies; out: JSON of schema
// hebe.comparison/1, which is printed and never stored. Invariant: a pure function; contrasts are
// the same experiment by their cubins, never by a job's name, and what the analyses do not say is
// not inferred.
#pragma once

#include "evidence/compared_study.hpp"

namespace hebe::evidence {

/// "result" is inside (each energy effect of a primary contrast lies inside the other study's 95 %
/// interval), outside, or inconclusive with its reason. Refuses bad_argument: fewer than two, the
/// same study or sealed run twice, several provenances, no common contrast.
[[nodiscard]] Result<Json> study_comparison(const std::vector<ComparedStudy>& studies);

} // namespace hebe::evidence
