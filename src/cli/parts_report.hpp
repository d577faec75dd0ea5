// What a verification found of a record that is made of others, for people and as JSON. In: its
// parts; out: lines, or rows; the exit code. Invariant: what was not checked is said beside what
// was.
#pragma once

#include "cli/context.hpp"
#include "evidence/verify.hpp"

namespace hebe::cli {

/// Prints the parts; as JSON they follow what `named` says of the whole. Returns the exit code:
/// done, bad_data, or inconclusive where something that the whole is made of is not here.
[[nodiscard]] int report_parts(const Context& c, Json named, const evidence::PartsReport& report);

} // namespace hebe::cli
