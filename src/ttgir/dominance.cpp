#include "ttgir/dominance.hpp"

#include <algorithm>

namespace hebe::ttgir {

Dominance::Dominance(const Module& module) {
  walk(module.top(), [&](Operation& op) {
    for (const Region* each : op.regions) region(*each);
  });
}

void Dominance::region(const Region& region) {
  for (const Block* block : region.blocks)
    for (std::size_t i = 0; i < block->operations.size(); ++i)
      position_.emplace(block->operations[i], i);
  if (region.blocks.empty()) return;
  const Block* entry = region.blocks.front();
  if (region.blocks.size() == 1) {
    idom_[entry] = entry;
    return;
  }
  const auto successors = [](const Block* block) {
    return block->operations.empty() ? std::span<Successor>{}
                                     : block->operations.back()->successors;
  };
  std::vector<const Block*>
      order; // post-order, without recursion: a hostile chain of blocks is long
  std::unordered_map<const Block*, std::size_t> number;
  std::vector<std::pair<const Block*, std::size_t>> stack{{entry, 0}};
  number[entry] = ~std::size_t{0};
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    const auto targets = successors(block);
    if (next < targets.size()) {
      const Block* target = targets[next++].block;
      if (number.emplace(target, ~std::size_t{0}).second) stack.emplace_back(target, 0);
    } else {
      number[block] = order.size();
      order.push_back(block);
      stack.pop_back();
    }
  }
  std::unordered_map<const Block*, std::vector<const Block*>> predecessors;
  for (const Block* block : order)
    for (const Successor& next : successors(block)) predecessors[next.block].push_back(block);
  idom_[entry] = entry;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (*it == entry) continue;
      const Block* found = nullptr;
      for (const Block* before : predecessors[*it]) {
        if (!idom_.contains(before)) continue;
        if (!found) {
          found = before;
          continue;
        }
        const Block* other = before;
        while (found != other) {
          while (number[found] < number[other]) found = idom_[found];
          while (number[other] < number[found]) other = idom_[other];
        }
      }
      auto& entry_of = idom_[*it];
      if (entry_of != found) {
        entry_of = found;
        changed = true;
      }
    }
  }
}

bool Dominance::block_dominates(const Block* a, const Block* b) const {
  if (!idom_.contains(b)) return true; // no path leads there
  while (true) {
    if (a == b) return true;
    const auto up = idom_.find(b);
    if (up == idom_.end() || up->second == b) return false;
    b = up->second;
  }
}

bool Dominance::dominates(const Value& value, const Operation& use) const {
  const Block* home = value.op ? value.op->block : value.block;
  if (!home) return false; // its operation was erased
  const Operation* at = &use;
  while (at && at->block && at->block->region != home->region) at = at->parent();
  if (!at || !at->block) return false;
  if (at->block != home) return block_dominates(home, at->block);
  if (!value.op) return true;
  const auto def = position_.find(value.op);
  const auto use_at = position_.find(at);
  return def != position_.end() && use_at != position_.end() && def->second < use_at->second;
}

} // namespace hebe::ttgir
