#include "ttgir/names.hpp"

#include "ttgir/scan.hpp"

#include <algorithm>

namespace hebe::ttgir {

Names::Names(const Module& module) {
  if (!module.edited()) return;
  walk(module.top(), [&](Operation& op) {
    for (const Value& value : op.results) all_.insert(value.name);
    for (const Region* region : op.regions)
      for (const Block* block : region->blocks)
        for (const Value& value : block->arguments) all_.insert(value.name);
  });
  visit(module.top());
}

std::string_view Names::of(const Value& value) const {
  const auto found = changed_.find(value.id - static_cast<std::uint32_t>(std::max(0, value.group)));
  return found == changed_.end() ? value.name : found->second;
}

void Names::define(const Value& value) {
  if (value.group > 0) return; // the group's first has spoken
  std::string_view name = value.name;
  if (name.empty() || visible_.contains(name)) {
    // A numeric name takes no suffix ("%4_1" does not parse).
    const bool numeric = name.empty() || (name[0] >= '0' && name[0] <= '9');
    const std::string stem = (numeric ? "v" : "") + std::string(name);
    for (std::size_t n = 1;; ++n) {
      const auto candidate = stem + "_" + std::to_string(n);
      if (all_.contains(candidate)) continue;
      name = made_.emplace_back(candidate);
      break;
    }
    all_.insert(name);
    changed_.emplace(value.id, name);
  }
  visible_.insert(name);
  scope_.push_back(name);
}

void Names::visit(const Operation& op) {
  for (const Region* region : op.regions) {
    const auto mark = scope_.size();
    for (const Block* block : region->blocks)
      for (const Value& value : block->arguments) define(value);
    for (const Block* block : region->blocks)
      for (const Operation* inner : block->operations) {
        visit(*inner);
        for (const Value& value : inner->results) define(value);
      }
    for (; scope_.size() > mark; scope_.pop_back()) visible_.erase(scope_.back());
  }
}

} // namespace hebe::ttgir
