// What a stored record and its recomputation disagree about. In: two JSON values; out: the first
// place, in words. Invariant: rounding by another C library is no difference, everything else is.
#pragma once

#include "core/json.hpp"

#include <string>

namespace hebe::evidence {

/// Where two JSON values differ by more than rounding: numbers within 1e-6 relative (another libm),
/// everything else exactly; of prose under "evidence" and "reason" the words. Empty: they agree.
[[nodiscard]] std::string first_difference(const Json& stored, const Json& recomputed,
                                           const std::string& path = "");

} // namespace hebe::evidence
