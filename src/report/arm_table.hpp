// What a contrast found of its arms, side by side. In: "arms" of a contrast; out: an HTML table.
// Invariant: each row says the same of A and B; what is unknown says why.
#pragma once

#include "core/json.hpp"

#include <string>

namespace hebe::report {

[[nodiscard]] std::string arm_table(const Json& arms);

} // namespace hebe::report
