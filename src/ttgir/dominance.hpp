// Which value can be seen where. In: a region's blocks and their branches; out: whether a
// definition reaches a use on every path. Invariant: the usual dominator tree (Cooper, Harvey and
// Kennedy, 2001, "A Simple, Fast Dominance Algorithm"), with regions nested inside operations.
#pragma once

#include "ttgir/ir.hpp"

#include <unordered_map>

namespace hebe::ttgir {

class Dominance {
public:
  explicit Dominance(const Module& module);
  /// Whether `value` is defined on every path to `use`.
  [[nodiscard]] bool dominates(const Value& value, const Operation& use) const;

private:
  void region(const Region& region);
  [[nodiscard]] bool block_dominates(const Block* a, const Block* b) const;

  std::unordered_map<const Operation*, std::size_t> position_; ///< in its block
  std::unordered_map<const Block*, const Block*>
      idom_; ///< the entry's is itself; unreachable: absent
};

} // namespace hebe::ttgir
