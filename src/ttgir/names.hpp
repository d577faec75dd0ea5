// Names that are unique where they can be seen. In: a module, perhaps edited; out: a name for every
// value. Invariant: a name that is unique stays; a changed one is not used by anything else.
#pragma once

#include "ttgir/ir.hpp"

#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hebe::ttgir {

class Names {
public:
  explicit Names(const Module& module);
  [[nodiscard]] std::string_view of(const Value& value) const;

private:
  void visit(const Operation& op);
  void define(const Value& value);

  std::unordered_map<std::uint32_t, std::string_view> changed_; ///< by value id
  std::unordered_set<std::string_view> visible_, all_;
  std::vector<std::string_view> scope_;
  std::deque<std::string> made_;
};

} // namespace hebe::ttgir
