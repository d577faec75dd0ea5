// Reads the text that Triton prints. In: TTIR or TTGIR; out: a Module, or where the text is wrong
// and what was expected there. Invariant: nothing is lost: print() of what was read gives the same
// bytes.
#pragma once

#include "core/result.hpp"
#include "ttgir/ir.hpp"

#include <memory>
#include <string>

namespace hebe::ttgir {

struct ReadOptions {
  /// A known op that is written in another way than its row of ops.def says (another version of
  /// Triton): refused, or carried as text with the reason in Operation::unread.
  bool carry_unmatched = false;
  std::string file = "<text>"; ///< for messages
};

/// Refuses (bad_ir) with file, line and column. The text is kept in the module.
[[nodiscard]] Result<std::unique_ptr<Module>> read_module(std::string text,
                                                          const ReadOptions& options = {});

} // namespace hebe::ttgir
