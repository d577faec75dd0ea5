// Whether a module is well formed. In: a module, read or edited; out: every fault found, with its
// line. Invariant: what Triton's own verifier would accept of the checked rules gives no finding;
// an op that is not understood is checked for dominance only.
#pragma once

#include "ttgir/ir.hpp"

#include <string>
#include <vector>

namespace hebe::ttgir {

struct Finding {
  std::uint32_t line = 0; ///< 0: an operation made by an edit
  std::string op;         ///< its text, without regions
  std::string what;
};

/// Dominance, one definition, terminators, and types where they are known: operands of one type,
/// masks, loop and branch arguments, calls and returns.
[[nodiscard]] std::vector<Finding> verify(const Module& module);

} // namespace hebe::ttgir
