#include "ttgir/op.hpp"

#include <array>
#include <unordered_map>

namespace hebe::ttgir {
namespace {

constexpr OpInfo kRows[] = {
    {},
#define HEBE_OP(id, name, typing, effect, format) {name, Typing::typing, Effect::effect, format},
#include "ttgir/ops.def"
#undef HEBE_OP
};

} // namespace

const OpInfo& info_of(Op op) { return kRows[static_cast<std::size_t>(op)]; }

Op op_named(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, Op> all;
    for (std::size_t i = 1; i < std::size(kRows); ++i)
      all.emplace(kRows[i].name, static_cast<Op>(i));
    all.emplace("builtin.module", Op::module);
    return all;
  }();
  const auto found = index.find(name);
  return found == index.end() ? Op::unknown : found->second;
}

} // namespace hebe::ttgir
