// All effects of a study in one table: A/A, contrasts, control. In: its analysis; out: an HTML
// table. Invariant: what the picture shows, as numbers, with tests and spread.
#pragma once

#include "core/json.hpp"

#include <string>

namespace hebe::report {

[[nodiscard]] std::string effect_table(const Json& study);

} // namespace hebe::report
