#include "ttgir/memory_effects.hpp"

#include "ttgir/view.hpp"

#include <algorithm>
#include <unordered_set>

namespace hebe::ttgir {
namespace {

class Tracer {
public:
  PointerOrigin trace(const Value& value) {
    visit(value);
    return std::move(origin_);
  }

private:
  void visit(const Value& value) {
    std::vector<const Value*> open{&value};
    while (!open.empty()) {
      const Value& at = *open.back();
      open.pop_back();
      if (!seen_.insert(&at).second) continue;
      if (at.op)
        of_result(at, open);
      else
        of_argument(at, open);
    }
  }

  /// Whether the function around it makes numbers of pointers anywhere.
  static bool knows_addresses(const Operation& op) {
    Operation* around = op.parent();
    while (around && !around->is(Op::tt_func)) around = around->parent();
    bool found = false;
    if (around)
      walk(*around, [&](Operation& each) { found = found || each.is(Op::tt_ptr_to_int); });
    return found;
  }

  void of_result(const Value& value, std::vector<const Value*>& open) {
    const Operation& op = *value.op;
    switch (op.code) {
    case Op::tt_addptr:
    case Op::tt_advance:
      if (knows_addresses(op)) break; // an offset may lead from one argument into another
      open.push_back(op.operands[0]);
      return;
    case Op::tt_splat:
    case Op::tt_unsplat:
    case Op::tt_broadcast:
    case Op::tt_expand_dims:
    case Op::tt_reshape:
    case Op::tt_trans:
    case Op::tt_bitcast:
    case Op::arith_bitcast:
    case Op::tt_split:
    case Op::tt_gather:
    case Op::ttg_convert_layout:
    case Op::tt_make_tensor_ptr:
    case Op::tt_make_tensor_descriptor:
    case Op::ttng_reinterpret_tensor_descriptor:
      open.push_back(op.operands[0]);
      return;
    case Op::arith_select:
      open.push_back(op.operands[1]);
      open.push_back(op.operands[2]);
      return;
    case Op::tt_join:
    case Op::tt_cat:
      open.push_back(op.operands[0]);
      open.push_back(op.operands[1]);
      return;
    case Op::scf_for:
      open.push_back(op.operands[value.index + 3]);
      yielded(op, 0, value.index, open);
      return;
    case Op::scf_if:
      for (std::size_t r = 0; r < op.regions.size(); ++r) yielded(op, r, value.index, open);
      return;
    case Op::scf_while: { // its results are what the condition passes on
      const auto& before = op.regions[0]->front().operations;
      if (before.empty() || value.index + 1 >= before.back()->operands.size()) break;
      open.push_back(before.back()->operands[value.index + 1]);
      return;
    }
    case Op::ub_poison:
      return; // reaches nothing
    default:
      break;
    }
    origin_.anything = true;
  }

  void yielded(const Operation& op, std::size_t region, std::uint32_t index,
               std::vector<const Value*>& open) {
    const auto& blocks = op.regions[region]->blocks;
    const Operation* last =
        blocks.empty() || blocks[0]->operations.empty() ? nullptr : blocks[0]->operations.back();
    if (last && index < last->operands.size())
      open.push_back(last->operands[index]);
    else
      origin_.anything = true;
  }

  void of_argument(const Value& value, std::vector<const Value*>& open) {
    const Block* block = value.block;
    const Operation* around = block && block->region ? block->region->parent : nullptr;
    if (!around) {
      origin_.anything = true;
    } else if (around->is(Op::tt_func) && around->regions[0]->blocks.front() == block) {
      if (Function{const_cast<Operation&>(*around)}.is_kernel())
        origin_.arguments.insert(value.index);
      else
        origin_.anything = true; // an inner function's argument: whatever its callers pass
    } else if (around->is(Op::scf_for) && value.index > 0) {
      open.push_back(around->operands[value.index + 2]);
      yielded(*around, 0, value.index - 1, open);
    } else if (around->is(Op::scf_while)) {
      const bool first = around->regions[0]->blocks.front() == block;
      if (first && value.index < around->operands.size()) {
        open.push_back(around->operands[value.index]);
        yielded(*around, 1, value.index, open);
      } else if (!first) {
        yielded(*around, 0, value.index + 1, open);
      }
    } else if (around->is(Op::tt_func)) { // a branch's argument: from every branch that leads here
      for (const Block* from : around->regions[0]->blocks) {
        if (from->operations.empty()) continue;
        const Operation& last = *from->operations.back();
        for (const Successor& next : last.successors)
          if (next.block == block && value.index < next.count)
            open.push_back(last.operands[next.first + value.index]);
      }
    } else {
      origin_.anything = true;
    }
  }

  PointerOrigin origin_;
  std::unordered_set<const Value*> seen_;
};

void add(MemoryEffects& effects, Operation& op) {
  const auto pointer = [&](std::size_t segment) {
    const auto found = op.segment(segment);
    PointerOrigin all;
    if (found.empty() || !found[0])
      all.anything = true;
    else
      all = origin_of(*found[0]);
    return all;
  };
  if (op.form == Operation::Form::opaque) {
    effects.unknown = effects.reads.anything = effects.writes.anything = true;
    effects.reads_global = effects.writes_global = true;
    return;
  }
  const auto reads = [&](std::size_t segment) {
    effects.reads_global = true;
    effects.reads.merge(pointer(segment));
  };
  const auto writes = [&](std::size_t segment) {
    effects.writes_global = true;
    effects.writes.merge(pointer(segment));
  };
  switch (op.info().effect) {
  case Effect::pure:
  case Effect::region:
  case Effect::terminator:
    return;
  case Effect::read:
    reads(0);
    if (boolean(op.text_of("isVolatile")).value_or(false))
      writes(0); // may not be merged or dropped
    return;
  case Effect::write:
    return writes(0);
  case Effect::read_write:
    reads(0);
    return writes(0);
  case Effect::read_write_shared:
    effects.shared = true;
    return reads(0);
  case Effect::read_shared:
  case Effect::write_shared:
  case Effect::alloc:
    effects.shared = true;
    return;
  case Effect::call:
    // Functions of a maths library, marked pure by Triton, and calls of this module's functions.
    if (boolean(op.text_of("pure")).value_or(false)) return;
    [[fallthrough]];
  case Effect::unknown:
    effects.unknown = effects.reads.anything = effects.writes.anything = true;
    effects.reads_global = effects.writes_global = true;
    return;
  case Effect::other:
    (op.is(Op::tt_print) || op.is(Op::tt_assert) || op.is(Op::cf_assert) ||
             op.is(Op::llvm_intr_assume)
         ? effects.other
         : effects.synchronises) = true;
    return;
  }
}

} // namespace

void PointerOrigin::merge(const PointerOrigin& other) {
  arguments.insert(other.arguments.begin(), other.arguments.end());
  anything = anything || other.anything;
}

PointerOrigin origin_of(const Value& pointer) { return Tracer().trace(pointer); }

MemoryEffects effects_of(Operation& op) {
  MemoryEffects effects;
  walk(op, [&](Operation& each) { add(effects, each); });
  return effects;
}

bool may_interfere(const PointerOrigin& reads, const PointerOrigin& writes, bool disjoint) {
  if (reads.anything || writes.anything || !disjoint) return true;
  return std::ranges::any_of(reads.arguments,
                             [&](auto argument) { return writes.arguments.contains(argument); });
}

} // namespace hebe::ttgir
