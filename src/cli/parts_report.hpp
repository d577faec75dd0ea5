// What a verification found of a record that is made of others, for people and as JSON. In: its
// parts; out: lines, or rows; the exit code. Invariant: what was not checked is said beside what
// was.
#pragma once

#include "cli/context.hpp"
#include "evidence/verify.hpp"

namespace hebe::cli {

[[nodiscard]] Json parts_json(const evidence::PartsReport& report);
void print_parts(const Context& c, const evidence::PartsReport& report);
/// done, bad_data, or inconclusive where something that the whole is made of is not here.
[[nodiscard]] int exit_of(const evidence::PartsReport& report);

} // namespace hebe::cli
