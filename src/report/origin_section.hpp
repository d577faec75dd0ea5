// Where a study comes from: board, versions, runs and their seals, what it was frozen from. In: its
// analysis; out: HTML sections. Invariant: with these ids anybody finds the sealed records.
#pragma once

#include "core/json.hpp"

#include <string>

namespace hebe::report {

[[nodiscard]] std::string origin_section(const Json& study);

} // namespace hebe::report
