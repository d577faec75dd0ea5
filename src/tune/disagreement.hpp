// Two JSON values member by member. In: what was recorded, and the same computed again; out: each
// place where they differ, with both. Invariant: whole numbers, words and structure must be equal;
// other numbers within the rounding of another C library.
#pragma once

#include "core/json.hpp"

#include <vector>

namespace hebe::tune {

/// analysis_mismatch, a refusal a place; `where` is what the record is called.
[[nodiscard]] std::vector<Refusal> disagreements(const Json& recorded, const Json& recomputed,
                                                 const std::string& where);

} // namespace hebe::tune
