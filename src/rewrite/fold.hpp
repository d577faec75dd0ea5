// What a pure operation on integers, pointers and layouts is worth without computing it. In: one
// operation; out: a value that is equal to its result in every launch, or why it was left.
// Invariant: no floating-point operation is looked at; integer arithmetic that could wrap is left.
#pragma once

#include "ttgir/ir.hpp"

#include <optional>
#include <span>
#include <string>

namespace hebe::rewrite {

struct Folded {
  ttgir::Value* value = nullptr; ///< null: left alone, though it looked foldable
  std::string why;
  bool contracts = false; ///< the compiler below may now contract a product that it could not
};

/// May make operations in front of `op`; `op` itself stays. `uses`: how many a value has, by id.
[[nodiscard]] std::optional<Folded> fold(ttgir::Module& module, ttgir::Operation& op,
                                         std::span<const std::uint32_t> uses);

} // namespace hebe::rewrite
