// What can be said of a candidate without running it. In: baseline and candidate, compiled; what
// was asked of it; the account of its rewrite; out: checks. Invariant: everything is read from the
// artifacts, nothing from what was intended.
#pragma once

#include "qualify/check.hpp"
#include "qualify/spec.hpp"

namespace hebe::qualify {

/// What a rewrite knows of a launch: integer scalars, grid, and that its buffers are apart (which
/// the trial checks).
[[nodiscard]] rewrite::LaunchFacts facts_of(const kernel::LaunchSpec& launch);

/// Nothing of the kernel is seen outside of memory: no print, no assertion, and every operation is
/// understood.
[[nodiscard]] Check no_side_effects(const kernel::CompiledCase& compiled);

/// Spilled registers lie in local memory; stack and local bytes of a thread against `most`.
[[nodiscard]] Check no_spills(const kernel::CompiledCase& compiled, std::uint64_t most);

/// rewrite_applied, contracts_hold, same_abi, artifacts_distinct, no_side_effects, no_spills.
/// `account`: null where the candidate is no rewrite.
[[nodiscard]] std::vector<Check> static_checks(const kernel::CompiledCase& baseline,
                                               const kernel::CompiledCase& candidate,
                                               const Candidate& spec,
                                               const rewrite::Account* account);

/// Whether every contract of the rewrite holds for a launch.
[[nodiscard]] Check contracts_hold(const rewrite::Account& account,
                                   const kernel::LaunchSpec& original,
                                   const kernel::LaunchSpec& launch);

} // namespace hebe::qualify
