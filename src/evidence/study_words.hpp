// What a contrast says in plain sentences. In: the contrast of a study and the run it is from; out:
// sentences with their numbers. Invariant: what is not decided is not told as an effect, and what
// stands beside an effect is never told as its cause.
#pragma once

#include "evidence/stored_run.hpp"

#include <string>
#include <vector>

namespace hebe::evidence {

/// `contrast`: an element of "contrasts" (hebe.analysis.study/1), whole but for its words.
[[nodiscard]] std::vector<std::string> study_words(const Json& contrast, const StoredRun& run);

} // namespace hebe::evidence
