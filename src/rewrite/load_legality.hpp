// Whether a value that was read before may stand for a load. In: two places of a function, masks;
// out: nothing, or why not. Invariant: every operation that may run between the two places, on any
// path and in any earlier trip of a loop around the second, is looked at.
#pragma once

#include "rewrite/known_values.hpp"
#include "rewrite/value_numbers.hpp"
#include "ttgir/dominance.hpp"
#include "ttgir/view.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hebe::rewrite {

/// What stands between a read and its repetition.
struct Between {
  std::optional<std::string> why; ///< it may not be repeated from memory's first state
  bool rests_on_disjoint = false; ///< good only as different arguments are different memory
};
/// `first` dominates `second`; whether either may change what `pointer` reads is not asked of
/// themselves.
[[nodiscard]] Between between(const ttgir::Operation& first, const ttgir::Operation& second,
                              const ttgir::Value& pointer, const LaunchFacts& facts);
/// The same from the place ahead of `place` on.
[[nodiscard]] Between between_from(const ttgir::Operation& place, const ttgir::Operation& second,
                                   const ttgir::Value& pointer, const LaunchFacts& facts);
/// The same for a whole loop: what it may change before, or between, its own loads.
[[nodiscard]] Between within(ttgir::Operation& loop, const ttgir::Value& pointer,
                             const LaunchFacts& facts);

/// Whether every lane of `mask` (null: all) is one of `of`'s, by the form of the masks.
[[nodiscard]] bool implies(ValueNumbers& numbers, const ttgir::Value* mask, const ttgir::Value* of);

/// The function's argument that a load reads, where it is certain; null otherwise.
[[nodiscard]] const ttgir::Value* argument_of(const ttgir::Load& load, ttgir::Operation& function);
/// Loads of tt.load in the order of the text.
[[nodiscard]] std::vector<ttgir::Load> loads_of(ttgir::Operation& function);
/// bad_spec where a name is not one of the function's arguments.
[[nodiscard]] Status are_arguments(const std::set<std::string>& names, ttgir::Operation& function);

} // namespace hebe::rewrite
