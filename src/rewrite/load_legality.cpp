#include "rewrite/load_legality.hpp"

#include "ttgir/memory_effects.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::rewrite {
using ttgir::Block;
using ttgir::Effect;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Region;
using ttgir::Value;

namespace {

/// Looks at operations one by one until one of them may change what is read.
class Watch {
public:
  Watch(const Value& pointer, const LaunchFacts& facts)
      : reads_(ttgir::origin_of(pointer)), facts_(facts) {}
  Between found;

  void whole(Operation& op) {
    ttgir::walk(op, [&](Operation& each) { one(each); });
  }
  void blocks(const Region& region, const Block* except) {
    for (Block* block : region.blocks)
      if (block != except)
        for (Operation* op : block->operations) whole(*op);
  }

private:
  static std::string at(const Operation& op) {
    return op.line > 0 ? fmt::format("{} of line {}", op.name, op.line) : describe(op);
  }

  void one(Operation& op) {
    if (found.why) return;
    if (op.form != Operation::Form::opaque &&
        (op.info().effect == Effect::region || op.info().effect == Effect::terminator) &&
        !op.is(Op::ttg_warp_specialize))
      return; // its inside is looked at by itself
    if (op.is(Op::ttg_warp_specialize)) {
      found.why = at(op) + " stands between: its warps run side by side";
      return;
    }
    // What is in `op` only: its regions have their own turn.
    const auto effects = ttgir::effects_of(op);
    if (effects.unknown)
      found.why = at(op) + " stands between, and what it does to memory is not known";
    else if (effects.synchronises)
      found.why = at(op) + " stands between: after it another thread's stores may be seen";
    else if (op.info().effect == Effect::read_write && op.text_of("sem") != "relaxed" &&
             op.text_of("sem") != "1")
      found.why = at(op) + " stands between: after it another program's stores may be seen";
    else if (effects.writes_global)
      writes(op, effects);
  }

  void writes(const Operation& op, const ttgir::MemoryEffects& effects) {
    if (ttgir::may_interfere(reads_, effects.writes, true)) {
      found.why = at(op) + " stands between and may change what is read";
    } else if (!facts_.disjoint && ttgir::may_interfere(reads_, effects.writes, false)) {
      found.why = at(op) + " stands between, to another argument, and nothing says that arguments "
                           "are different memory";
    } else {
      found.rests_on_disjoint = true;
    }
  }

  ttgir::PointerOrigin reads_;
  const LaunchFacts& facts_;
};

/// `skip`: how many operations from `first` on are not looked at.
Between looked_at(const Operation& first, std::ptrdiff_t skip, const Operation& second,
                  const Value& pointer, const LaunchFacts& facts) {
  Watch watch(pointer, facts);
  // The operations around `second`, from the one in the region of `first` inwards.
  std::vector<const Operation*> way{&second};
  while (way.back()->block->region != first.block->region) {
    const Operation* up = way.back()->parent();
    if (!up) return {"the two do not stand in one function", false};
    way.push_back(up);
  }
  std::ranges::reverse(way);
  const Block& home = *first.block;
  const auto begin = std::ranges::find(home.operations, &first) + skip;
  const bool same = way.front()->block == &home;
  const auto end = same ? std::ranges::find(home.operations, way.front()) : home.operations.end();
  for (auto it = begin; it < end; ++it) watch.whole(**it);
  if (!same) watch.blocks(*home.region, &home);
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    const Operation& around = *way[i];
    const Block& block = *way[i + 1]->block;
    if (!around.is(Op::scf_if)) { // an earlier trip may have run all of it
      for (const Region* region : around.regions) watch.blocks(*region, nullptr);
      break;
    }
    for (Operation* op : block.operations) {
      if (op == way[i + 1]) break;
      watch.whole(*op);
    }
  }
  return watch.found;
}

} // namespace

Between between(const Operation& first, const Operation& second, const Value& pointer,
                const LaunchFacts& facts) {
  return looked_at(first, 1, second, pointer, facts);
}

Between between_from(const Operation& place, const Operation& second, const Value& pointer,
                     const LaunchFacts& facts) {
  return looked_at(place, 0, second, pointer, facts);
}

Between within(Operation& loop, const Value& pointer, const LaunchFacts& facts) {
  Watch watch(pointer, facts);
  watch.whole(loop);
  return watch.found;
}

bool implies(ValueNumbers& numbers, const Value* mask, const Value* of) {
  if (!of) return true;
  if (!mask) return false;
  std::vector<const Value*> open{mask};
  for (std::size_t i = 0; i < open.size() && i < 64; ++i) {
    const Value& at = *open[i];
    if (numbers.of(at) == numbers.of(*of)) return true;
    if (at.op && at.op->is(Op::arith_andi))
      open.insert(open.end(), at.op->operands.begin(), at.op->operands.end());
  }
  return false;
}

const Value* argument_of(const ttgir::Load& load, Operation& function) {
  const auto origin = ttgir::origin_of(load.pointer());
  const auto arguments = function.regions[0]->front().arguments;
  if (origin.anything || origin.arguments.size() != 1 ||
      *origin.arguments.begin() >= arguments.size())
    return nullptr;
  return &arguments[*origin.arguments.begin()];
}

std::vector<ttgir::Load> loads_of(Operation& function) {
  std::vector<ttgir::Load> out;
  ttgir::walk(function, [&](Operation& op) {
    if (const auto load = ttgir::Load::of(op)) out.push_back(*load);
  });
  return out;
}

Status are_arguments(const std::set<std::string>& names, Operation& function) {
  for (const auto& name : names)
    if (std::ranges::none_of(function.regions[0]->front().arguments,
                             [&](const Value& each) { return each.name == name; }))
      return refuse(RefusalCode::bad_spec, fmt::format("the kernel has no argument \"{}\"", name));
  return {};
}

} // namespace hebe::rewrite
