// Liveness from what is seen outside: effects and the ends of blocks are live, then whatever they
// use. In: a function; out: the rest erased. Invariant: the operations around a live one are live.
#include "rewrite/remove_dead.hpp"

#include "rewrite/loop_passes.hpp"
#include "ttgir/view.hpp"

#include <fmt/format.h>

#include <set>
#include <unordered_set>

namespace hebe::rewrite {
namespace {
using ttgir::Effect;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

bool is_pure_call(const Operation& op) {
  return op.info().effect == Effect::call && ttgir::boolean(op.text_of("pure")).value_or(false);
}

/// Whether it must stay for its own sake.
bool is_seen(const Operation& op) {
  if (op.form == Operation::Form::opaque) return true;
  switch (op.info().effect) {
  case Effect::pure:
    return false;
  case Effect::read:
    return ttgir::boolean(op.text_of("isVolatile")).value_or(false);
  case Effect::call:
    return !is_pure_call(op);
  case Effect::region: // as its regions; but a while loop may not end
    return op.is(Op::scf_while) || op.is(Op::ttg_warp_specialize) ||
           op.is(Op::ttg_warp_specialize_partitions) || op.is(Op::tt_func);
  case Effect::terminator: // those of loops and reductions live with what is around them
    return op.parent() && op.parent()->is(Op::tt_func);
  default:
    return true;
  }
}

class Liveness {
public:
  explicit Liveness(Operation& function) {
    ttgir::walk(function, [&](Operation& op) {
      if (is_seen(op)) live(op);
    });
    while (!open_.empty()) {
      const Value* value = open_.back();
      open_.pop_back();
      follow(*value);
    }
  }
  [[nodiscard]] bool holds(const Operation& op) const { return live_.contains(&op); }
  [[nodiscard]] bool carries(const Operation& loop, std::size_t i) const {
    return carried_.contains({&loop, i});
  }

private:
  void live(Operation& op) {
    if (!live_.insert(&op).second) return;
    if (Operation* around = op.parent()) live(*around);
    const auto loop = ttgir::For::of(op);
    for (const Value* operand : op.operands) open_.push_back(operand);
    if (loop) {
      if (Operation* yield = loop->yield()) live_.insert(yield); // its operands: see carry()
      return;
    }
    for (ttgir::Region* region : op.regions)
      for (ttgir::Block* block : region->blocks)
        for (Operation* inner : block->operations)
          // A branch keeps its end; a reduction, or a region that is not known, all of it.
          if ((!op.is(Op::scf_if) && !op.is(Op::tt_func)) ||
              inner->info().effect == Effect::terminator)
            live(*inner);
  }

  void carry(Operation& op, std::size_t i) {
    if (!carried_.insert({&op, i}).second) return;
    live(op);
    if (Operation* yield = ttgir::For::of(op)->yield(); yield && i < yield->operands.size())
      open_.push_back(yield->operands[i]);
  }

  void follow(const Value& value) {
    if (value.op) {
      live(*value.op);
      if (ttgir::For::of(*value.op)) carry(*value.op, value.index);
      return;
    }
    Operation* around = value.block && value.block->region ? value.block->region->parent : nullptr;
    if (!around) return;
    live(*around);
    if (ttgir::For::of(*around) && value.index > 0) carry(*around, value.index - 1);
  }

  std::unordered_set<const Operation*> live_;
  std::set<std::pair<const Operation*, std::size_t>> carried_;
  std::vector<const Value*> open_;
};

} // namespace

std::size_t erase_dead(Work& work) {
  const Liveness liveness(work.function);
  std::vector<Operation*> dead, loops;
  ttgir::walk(work.function, [&](Operation& op) {
    const bool around = &op == &work.function || liveness.holds(*op.parent());
    if (around && !liveness.holds(op)) dead.push_back(&op);
    if (liveness.holds(op) && ttgir::For::of(op)) loops.push_back(&op);
  });
  for (Operation* op : loops) {
    const auto loop = ttgir::For::of(*op);
    Operation* yield = loop->yield();
    for (std::size_t i = 0; yield && i < yield->operands.size(); ++i) {
      Value& argument = loop->carried()[i];
      if (liveness.carries(*op, i) || yield->operands[i] == &argument) continue;
      work.module.set_operand(*yield, i, argument);
      work.account.changed(
          *op, fmt::format("its carried value %{} is used by nothing and stays as it begins",
                           argument.name));
    }
  }
  std::size_t erased = 0;
  for (Operation* op : dead) {
    ttgir::walk(*op, [&](Operation& each) {
      ++erased;
      if (ttgir::Load::of(each))
        work.account.changed(each, describe(each) + " is erased: nothing uses it");
    });
    work.module.erase(*op);
  }
  return erased;
}

Pass remove_dead() {
  return {"remove-dead",
          "operations whose results nothing uses are erased",
          {},
          [](Work& work, const Json&) -> Status {
            if (const auto erased = erase_dead(work); erased > 0)
              work.account.changed(work.function,
                                   fmt::format("{} operations that nothing uses erased", erased));
            return {};
          }};
}

} // namespace hebe::rewrite
