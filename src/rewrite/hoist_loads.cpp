// Loads leave their loops: equal ones of loops that run exactly once become one load in the entry
// block, and one whose address no trip changes is read once, ahead of its loop. In: a kernel and
// what is known of its launches; out: loops kept, loads moved. Invariant: only a load that runs in
// any case is moved, to a place that nothing separates from where it stood but what cannot change
// what it reads.
#include "rewrite/contraction.hpp"
#include "rewrite/load_legality.hpp"
#include "rewrite/loop_bodies.hpp"
#include "rewrite/loop_passes.hpp"
#include "rewrite/pass_options.hpp"
#include "rewrite/remove_dead.hpp"

#include <fmt/format.h>

#include <map>

namespace hebe::rewrite {
namespace {
using ttgir::Load;
using ttgir::Operation;
using ttgir::Value;

struct Options {
  std::optional<std::set<std::string>> arguments;
  std::int64_t at_least = 2;
  bool invariant = true, pin = true;
};

/// Computes a value of a loop's body ahead of the loop.
class Slice {
public:
  Slice(Work& work, Operation& before, const std::set<const Operation*>& once)
      : work_(work), before_(before), once_(once), dominance_(work.module) {}

  /// Why it cannot be computed there; nothing where it can.
  std::optional<std::string> refuses(const Value& value) {
    if (!seen_.insert(&value).second) return std::nullopt;
    if (dominance_.dominates(value, before_)) return std::nullopt;
    if (const Value* same = stands_for(value)) return refuses(*same);
    if (value.op && ttgir::Load::of(*value.op))
      return fmt::format("it needs %{}, which is loaded itself", value.name);
    if (!value.op || !is_expression(*value.op))
      return fmt::format("it needs %{}, which is not known ahead of the loop", value.name);
    for (const Value* each : value.op->operands)
      if (auto why = refuses(*each)) return why;
    return std::nullopt;
  }

  Value& made(Value& value) {
    if (dominance_.dominates(value, before_)) return value;
    if (Value* same = stands_for(value)) return made(*same);
    if (const auto found = made_.find(&value); found != made_.end()) return *found->second;
    std::vector<Value*> operands;
    for (Value* each : value.op->operands) operands.push_back(&made(*each));
    Operation& copy = work_.module.clone(*value.op, *before_.block, &before_);
    for (std::size_t i = 0; i < operands.size(); ++i)
      work_.module.set_operand(copy, i, *operands[i]);
    for (std::size_t i = 0; i < copy.results.size(); ++i)
      made_[&value.op->result(i)] = &copy.result(i);
    return *made_.at(&value);
  }

private:
  /// In a loop that runs once: where its variables begin, and what its results are.
  Value* stands_for(const Value& value) const {
    Operation* around = value.op                             ? value.op
                        : value.block && value.block->region ? value.block->region->parent
                                                             : nullptr;
    if (!around || !once_.contains(around)) return nullptr;
    const auto loop = ttgir::For::of(*around);
    if (value.op) return loop->yield() ? loop->yield()->operands[value.index] : nullptr;
    return value.index == 0 ? &loop->lower() : loop->initial()[value.index - 1];
  }

  Work& work_;
  Operation& before_;
  const std::set<const Operation*>& once_;
  ttgir::Dominance dominance_;
  std::set<const Value*> seen_;
  std::map<const Value*, Value*> made_;
};

class Hoister {
public:
  Hoister(Work& work, const Options& options) : work_(work), options_(options) {}

  void run() {
    const auto exactness = exactness_of_moves(work_.function);
    bool any = false;
    while (options_.invariant && hoist_one_invariant()) any = true;
    any = hoist_equal() || any;
    if (!any) return;
    work_.account.at_best(exactness);
    erase_dead(work_);
  }

private:
  bool asked(const Load& load) const {
    if (!options_.arguments) return true;
    const Value* argument = argument_of(load, work_.function);
    return argument && options_.arguments->contains(std::string(argument->name));
  }

  static std::vector<Value*> operands_of(const Load& load) {
    return {load.op.operands.begin(), load.op.operands.end()};
  }

  /// The load again, at the slice's place.
  Load moved(const Load& load, Slice& slice, Operation& before) {
    std::vector<Value*> operands;
    for (Value* each : operands_of(load)) operands.push_back(&slice.made(*each));
    Operation& made = work_.module.clone(load.op, *before.block, &before);
    for (std::size_t i = 0; i < operands.size(); ++i)
      work_.module.set_operand(made, i, *operands[i]);
    return {made};
  }

  static std::optional<std::string> refuses(Slice& slice, const Load& load) {
    for (const Value* each : operands_of(load))
      if (auto why = slice.refuses(*each)) return why;
    return std::nullopt;
  }

  void replace(const Load& load, const Load& with, std::string what) {
    if (load.cache() != with.cache() || load.eviction() != with.eviction())
      what += fmt::format("; its {} {} is gone, {} {} stays", load.cache(), load.eviction(),
                          with.cache(), with.eviction());
    work_.account.changed(load.op, what);
    work_.module.replace_all_uses(load.result(), with.result());
    work_.module.erase(load.op);
  }

  // One load whose address does not change, out of a loop that runs more than once.
  bool hoist_one_invariant() {
    for (const auto& load : loads_of(work_.function)) {
      Operation* around = load.op.parent();
      if (load.is_volatile() || !asked(load) || !ttgir::For::of(*around)) continue;
      KnownValues known(work_.facts);
      const auto trips = known.trips(*around);
      if (!trips || trips->low < 1 || trips->high == 1 || !ends_in_range(known, *around)) continue;
      const std::set<const Operation*> none;
      Slice slice(work_, *around, none);
      if (refuses(slice, load)) continue;
      const auto within = rewrite::within(*around, load.pointer(), work_.facts);
      if (within.why) {
        if (said_.insert(&load.op).second)
          work_.account.refuse(load.op, "no trip changes its address, but " + *within.why);
        continue;
      }
      if (options_.pin) pin_loops_of(work_, {load.op.block});
      assume(work_.account, work_.facts, *trips, "a loop runs, so its load may stand ahead of it");
      if (within.rests_on_disjoint)
        work_.account.assume_disjoint("a loop stores to another argument than it loads");
      const Load made = moved(load, slice, *around);
      replace(load, made,
              fmt::format("{} reads the same in every trip: it stands ahead of its loop",
                          describe(load.op)));
      return true;
    }
    return false;
  }

  /// Loops that run exactly once, and what their values are then.
  void find_once(Operation& op, KnownValues& known, ValueNumbers& numbers) {
    const auto loop = ttgir::For::of(op);
    const auto trips = loop ? known.trips(op) : std::nullopt;
    const bool runs_once = trips && trips->single() && trips->low == 1 && ends_in_range(known, op);
    if (runs_once) {
      once_.insert(&op);
      rests_on_.push_back(*trips);
      numbers.is(loop->induction(), loop->lower());
      for (std::size_t i = 0; i < loop->carried().size(); ++i)
        numbers.is(loop->carried()[i], *loop->initial()[i]);
    }
    for (ttgir::Region* region : op.regions)
      for (ttgir::Block* block : region->blocks)
        for (Operation* inner : block->operations) find_once(*inner, known, numbers);
    if (runs_once && loop->yield())
      for (std::size_t i = 0; i < op.results.size(); ++i)
        numbers.is(op.result(i), *loop->yield()->operands[i]);
  }

  /// Why the load may not run, or may run more often than once; its outermost loop otherwise.
  std::expected<Operation*, std::string> outermost(const Load& load, KnownValues& known) {
    Operation* top = &load.op;
    for (Operation* up = load.op.parent(); up != &work_.function; up = up->parent()) {
      if (!up) return std::unexpected("it stands in no function");
      if (!ttgir::For::of(*up))
        return std::unexpected(
            fmt::format("it stands in {}, so it may not be read at all", up->name));
      if (!once_.contains(up))
        return std::unexpected("it stands in a loop, and " + says_trips(known, *up));
      top = up;
    }
    if (top->block != work_.function.regions[0]->blocks.front())
      return std::unexpected("it does not stand in the entry block");
    return top;
  }

  bool hoist_equal() {
    KnownValues known(work_.facts);
    ValueNumbers numbers;
    find_once(work_.function, known, numbers);
    std::vector<std::vector<Load>> groups;
    std::map<std::string, std::size_t> group_of;
    for (const auto& load : loads_of(work_.function)) {
      if (load.op.parent() == &work_.function || !asked(load)) continue;
      if (load.is_volatile()) {
        work_.account.refuse(load.op, "it is volatile");
        continue;
      }
      if (const auto top = outermost(load, known); !top) {
        if (!said_.contains(&load.op)) work_.account.refuse(load.op, top.error());
        continue;
      }
      std::string key(load.result().type->text);
      for (const std::size_t segment : {0U, 1U, 2U}) {
        key += '|';
        for (const Value* each : load.op.segment(segment)) key += std::to_string(numbers.of(*each));
      }
      for (const auto& each : load.op.attributes)
        if (each.name != "cache" && each.name != "evict" && each.name != "operandSegmentSizes")
          key += fmt::format("|{}={}", each.name, each.text);
      const auto [found, fresh] = group_of.emplace(key, groups.size());
      if (fresh) groups.emplace_back();
      groups[found->second].push_back(load);
    }
    bool any = false;
    for (const auto& group : groups) any = hoist_group(group, known) || any;
    return any;
  }

  bool hoist_group(const std::vector<Load>& group, KnownValues& known) {
    const auto at_least = static_cast<std::size_t>(options_.at_least);
    const auto refuse_all = [&](const std::vector<Load>& loads, const std::string& why) {
      for (const auto& each : loads) work_.account.refuse(each.op, why);
      return false;
    };
    const auto too_few = [&](std::size_t n) {
      return fmt::format("{} equal {} to hoist, fewer than {}", n, n == 1 ? "load" : "loads",
                         at_least);
    };
    if (group.size() < at_least) return refuse_all(group, too_few(group.size()));
    Operation& before = **outermost(group.front(), known);
    Slice slice(work_, before, once_);
    if (const auto why = refuses(slice, group.front())) return refuse_all(group, *why);
    std::vector<Load> good;
    bool disjoint = false;
    std::set<ttgir::Block*> blocks;
    for (const auto& load : group) {
      const auto between = rewrite::between_from(before, load.op, load.pointer(), work_.facts);
      if (between.why) {
        work_.account.refuse(load.op, *between.why);
        continue;
      }
      good.push_back(load);
      disjoint = disjoint || between.rests_on_disjoint;
      for (Operation* up = load.op.parent(); up != &work_.function; up = up->parent())
        blocks.insert(up->regions[0]->blocks.front());
    }
    if (good.size() < at_least) return refuse_all(good, too_few(good.size()));
    const Load made = moved(group.front(), slice, before);
    if (options_.pin) pin_loops_of(work_, blocks);
    // The addresses are equal as these loops run once, and each load is read as its loop runs.
    for (const auto& each : rests_on_)
      assume(work_.account, work_.facts, each, "loops of hoisted loads run once");
    if (disjoint)
      work_.account.assume_disjoint("a store stands between a hoisted load and its place");
    for (const auto& load : good)
      replace(load, made, fmt::format("{} is read once, in the entry block", describe(load.op)));
    return true;
  }

  Work& work_;
  const Options& options_;
  std::set<const Operation*> once_, said_;
  std::vector<Interval> rests_on_;
};

} // namespace

Pass hoist_loads() {
  return {
      "hoist-loads",
      "equal loads of loops that run once become one load in the entry block",
      {{"arguments", "the arguments whose loads are hoisted (all)"},
       {"at_least", "how many equal loads make it worth it (2)"},
       {"invariant", "also loads that no trip of a loop changes, ahead of it (true)"},
       {"pin", "write down as math.fma what is contracted in a loop that a load leaves (true)"}},
      [](Work& work, const Json& given) -> Status {
        Options options;
        HEBE_TRY(options.arguments, names(given, "arguments"));
        HEBE_TRY(options.at_least, number(given, "at_least", 2, 1));
        HEBE_TRY(options.invariant, flag(given, "invariant", true));
        HEBE_TRY(options.pin, flag(given, "pin", true));
        if (options.arguments) HEBE_CHECK(are_arguments(*options.arguments, work.function));
        Hoister(work, options).run();
        return {};
      }};
}

} // namespace hebe::rewrite
