// Folding, merging of equal pure operations, removal of dead ones, until nothing changes. In: a
// kernel; out: the same kernel with fewer operations on integers, pointers and layouts. Invariant:
// exact, without any fact of the launch (in the IR only, where a select or a conversion of layouts
// stood between a product and its sum: products.hpp); floating-point operations are neither
// merged nor folded; a second run changes nothing.
#include "rewrite/access_passes.hpp"
#include "rewrite/fold.hpp"
#include "rewrite/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace hebe::rewrite {
namespace {

using ttgir::Block;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

/// Moves and computes integers, pointers and layouts only, and does the same each time.
bool mergeable(const Operation& op) {
  if (op.form == Operation::Form::opaque || op.results.size() != 1 || !op.regions.empty())
    return false;
  switch (op.code) {
  case Op::arith_constant:
  case Op::arith_addi:
  case Op::arith_subi:
  case Op::arith_muli:
  case Op::arith_shli:
  case Op::arith_shrsi:
  case Op::arith_shrui:
  case Op::arith_divsi:
  case Op::arith_divui:
  case Op::arith_remsi:
  case Op::arith_remui:
  case Op::arith_ceildivsi:
  case Op::arith_ceildivui:
  case Op::arith_floordivsi:
  case Op::arith_andi:
  case Op::arith_ori:
  case Op::arith_xori:
  case Op::arith_minsi:
  case Op::arith_maxsi:
  case Op::arith_minui:
  case Op::arith_maxui:
  case Op::arith_cmpi:
  case Op::arith_select:
  case Op::arith_extsi:
  case Op::arith_extui:
  case Op::arith_trunci:
  case Op::arith_index_cast:
  case Op::arith_index_castui:
  case Op::tt_get_program_id:
  case Op::tt_get_num_programs:
  case Op::tt_make_range:
  case Op::tt_addptr:
  case Op::tt_splat:
  case Op::tt_unsplat:
  case Op::tt_expand_dims:
  case Op::tt_broadcast:
  case Op::tt_trans:
  case Op::tt_ptr_to_int:
  case Op::tt_int_to_ptr:
  case Op::ttg_convert_layout:
    return true;
  default:
    return false;
  }
}

/// Equal text: equal operations.
std::string key_of(const Operation& op) {
  auto key = fmt::format("{} {}", op.name, static_cast<const void*>(op.result().type));
  for (const Value* operand : op.operands) key += fmt::format(" {}", operand->id);
  for (const auto& attribute : op.attributes)
    key +=
        fmt::format(" {}={} {}", attribute.name, attribute.text, static_cast<int>(attribute.place));
  return key;
}

class Simplifier {
public:
  explicit Simplifier(Work& work) : work_(work) {}

  void run() {
    while (round()) {
    }
    for (const auto& [op, why] : refused_) work_.account.refuse(*op, why);
  }

private:
  /// Whether anything changed.
  bool round() {
    refused_.clear();
    replaced_.clear();
    available_.clear();
    scope_.clear();
    changed_ = false;
    count_uses();
    region(*work_.function.regions[0]);
    redirect();
    remove_dead();
    return changed_;
  }

  void count_uses() {
    uses_.assign(work_.module.value_count(), 0);
    ttgir::walk(work_.function, [&](Operation& op) {
      for (const Value* operand : op.operands) ++uses_[operand->id];
    });
  }

  void region(ttgir::Region& region) {
    // The entry dominates the other blocks; of those none is known to dominate another here.
    for (Block* each : region.blocks) {
      const auto before = each == region.blocks.front() ? std::size_t{0} : scope_.size();
      block(*each);
      if (each != region.blocks.front()) leave(before);
    }
  }

  void block(Block& block) {
    for (Operation* op : std::vector(block.operations.begin(), block.operations.end())) {
      for (std::size_t i = 0; i < op->operands.size(); ++i)
        if (Value& now = current(*op->operands[i]); &now != op->operands[i])
          work_.module.set_operand(*op, i, now);
      if (simplified(*op)) continue;
      // Not into combiners of reductions and partitions of warps, which stand by themselves.
      if (!op->is(Op::scf_for) && !op->is(Op::scf_if) && !op->is(Op::scf_while)) continue;
      for (ttgir::Region* inner : op->regions) {
        const auto before = scope_.size();
        region(*inner);
        leave(before);
      }
    }
  }

  bool simplified(Operation& op) {
    if (const auto folded = fold(work_.module, op, uses_)) {
      if (folded->contracts) work_.account.at_best(Exactness::exact_in_ir);
      if (folded->value)
        return replace(op, *folded->value, fmt::format("{}: {}", describe(op), folded->why));
      refused_.emplace_back(&op, folded->why);
    }
    if (!mergeable(op)) return false;
    const auto key = key_of(op);
    if (const auto found = available_.find(key); found != available_.end())
      return replace(op, *found->second,
                     fmt::format("{} is %{} again", describe(op), found->second->name));
    available_.emplace(key, &op.result());
    scope_.push_back(key);
    return false;
  }

  void leave(std::size_t before) {
    for (; scope_.size() > before; scope_.pop_back()) available_.erase(scope_.back());
  }

  bool replace(Operation& op, Value& with, std::string what) {
    work_.account.changed(op, std::move(what));
    replaced_[&op.result()] = &with;
    changed_ = true;
    return true;
  }

  Value& current(Value& value) {
    Value* at = &value;
    for (auto found = replaced_.find(at); found != replaced_.end(); found = replaced_.find(at))
      at = found->second;
    return *at;
  }

  /// Uses that stand ahead of their definitions in the text: blocks in another order.
  void redirect() {
    if (replaced_.empty()) return;
    ttgir::walk(work_.function, [&](Operation& op) {
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (Value& now = current(*op.operands[i]); &now != op.operands[i])
          work_.module.set_operand(op, i, now);
    });
    for (const auto& [value, with] : replaced_) work_.module.erase(*value->op);
  }

  void remove_dead() {
    count_uses();
    std::vector<Operation*> all;
    ttgir::walk(work_.function, [&](Operation& op) { all.push_back(&op); });
    for (auto each = all.rbegin(); each != all.rend(); ++each) {
      Operation& op = **each;
      if (op.form == Operation::Form::opaque || op.info().effect != ttgir::Effect::pure ||
          op.results.empty() ||
          std::ranges::any_of(op.results, [&](const Value& value) { return uses_[value.id] != 0; }))
        continue;
      for (const Value* operand : op.operands) --uses_[operand->id];
      work_.account.changed(op, describe(op) + ": nothing uses it");
      // LLVM sees no dead trip through shared memory: it counted as a use of its source.
      if (op.is(Op::ttg_convert_layout) && may_be_product(*op.operands[0]))
        work_.account.at_best(Exactness::exact_in_ir);
      work_.module.erase(op);
      changed_ = true;
    }
  }

  Work& work_;
  bool changed_ = false;
  std::vector<std::uint32_t> uses_;                   ///< by value
  std::unordered_map<const Value*, Value*> replaced_; ///< in this round
  std::unordered_map<std::string, Value*> available_; ///< what dominates here
  std::vector<std::string> scope_;                    ///< keys of available_, as they came
  std::vector<std::pair<Operation*, std::string>> refused_;
};

Status run(Work& work, const Json& /*options*/) {
  Simplifier(work).run();
  return {};
}

} // namespace

Pass simplify() {
  return {
      "simplify", "layouts, addresses and constants, folded and merged; dead ones gone", {}, run};
}

} // namespace hebe::rewrite
