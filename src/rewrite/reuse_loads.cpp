// A load whose addresses were read before takes the value that was read: retention in registers.
// In: a kernel; out: fewer loads, and equal expressions merged where a load was. Invariant: the
// earlier load is on every path, nothing between may change what it read, and every lane that the
// later one reads was read; a lane that it does not read has its `other`.
#include "rewrite/contraction.hpp"
#include "rewrite/load_legality.hpp"
#include "rewrite/loop_passes.hpp"
#include "rewrite/pass_options.hpp"
#include "rewrite/remove_dead.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hebe::rewrite {
namespace {
using ttgir::Load;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

struct Options {
  std::optional<std::set<std::string>> arguments;
  std::optional<std::set<std::int64_t>> only;
  bool convert = false, pin = true;
};

/// How a later load gets the earlier one's value.
struct Reuse {
  Load later, earlier;
  bool select = false, convert = false, disjoint = false;
  std::vector<Interval> rests_on{}; ///< masks that are known
};

std::string line_of(const Load& load) {
  return load.op.line > 0 ? fmt::format("the load of line {}", load.op.line) : describe(load.op);
}

/// Attributes that say what is read, not how.
bool same_kind(const Operation& a, const Operation& b) {
  const auto rest = [](const Operation& op) {
    std::map<std::string_view, std::string_view> out;
    for (const auto& each : op.attributes)
      if (each.name != "cache" && each.name != "evict" && each.name != "isVolatile" &&
          each.name != "operandSegmentSizes")
        out.emplace(each.name, each.text);
    return out;
  };
  return rest(a) == rest(b);
}

class Reuser {
public:
  Reuser(Work& work, const Options& options)
      : work_(work), options_(options), known_(work.facts), dominance_(work.module) {}

  void run() {
    std::map<const Value*, std::int64_t> counts;
    const auto loads = loads_of(work_.function);
    std::map<const Value*, std::int64_t> totals;
    for (const auto& load : loads) ++totals[argument_of(load, work_.function)];
    for (const auto& load : loads) {
      const Value* argument = argument_of(load, work_.function);
      const auto ordinal = ++counts[argument];
      const bool asked =
          (!options_.arguments ||
           (argument && options_.arguments->contains(std::string(argument->name)))) &&
          (!options_.only || options_.only->contains(ordinal));
      if (!asked || !find(load, totals[argument])) earlier_.push_back(load);
    }
    if (reuses_.empty()) return;
    work_.account.at_best(exactness_of_moves(work_.function));
    if (options_.pin) {
      std::set<ttgir::Block*> blocks;
      for (const auto& each : reuses_)
        if (each.later.op.block != each.earlier.op.block) blocks.insert(each.later.op.block);
      pin_loops_of(work_, blocks);
    }
    for (const auto& each : reuses_) apply(each);
    merge_expressions();
    erase_dead(work_);
  }

private:
  bool find(const Load& later, std::int64_t of_argument) {
    if (later.is_volatile()) {
      if (of_argument > 1) work_.account.refuse(later.op, "it is volatile");
      return false;
    }
    std::string why;
    // The nearest first: its value has the shortest way to live in registers.
    for (auto it = earlier_.rbegin(); it != earlier_.rend(); ++it) {
      auto found = plan(*it, later);
      if (found) {
        numbers_.is(later.result(), it->result());
        blind_.is(later.result(), it->result());
        plain_.is(later.result(), it->result());
        reuses_.push_back(*std::move(found));
        return true;
      }
      if (why.empty()) why = found.error();
    }
    if (why.empty() && of_argument > 1 && !earlier_.empty())
      why = "no load before it reads the same addresses";
    if (!why.empty()) work_.account.refuse(later.op, why);
    return false;
  }

  /// An empty reason: another place is read, as far as anyone knows.
  std::expected<Reuse, std::string> plan(const Load& earlier, const Load& later) {
    Reuse out{later, earlier};
    if (numbers_.of(earlier.pointer()) != numbers_.of(later.pointer())) {
      if (blind_.of(earlier.pointer()) != blind_.of(later.pointer()))
        return std::unexpected(std::string());
      out.convert = true;
      if (!options_.convert)
        return std::unexpected(fmt::format(
            "{} has it in another layout ({}, not {}): a conversion is not free", line_of(earlier),
            earlier.result().type->encoding, later.result().type->encoding));
    }
    if (!same_kind(earlier.op, later.op))
      return std::unexpected(line_of(earlier) + " has other attributes");
    if (earlier.is_volatile()) return std::unexpected(line_of(earlier) + " is volatile");
    if (!dominance_.dominates(earlier.result(), later.op))
      return std::unexpected(line_of(earlier) + " is not on every path that leads here");
    if (scope_of(earlier.op) != scope_of(later.op))
      return std::unexpected(line_of(earlier) + " is of other warps");
    if (auto why = masks(out)) return std::unexpected(*why);
    // Facts are needed only where the two are not the same expression anyhow.
    const auto rest = [&](const Value* a, const Value* b) {
      if (!a || !b || plain_.of(*a) == plain_.of(*b)) return;
      auto& numbers = out.convert ? blind_ : numbers_;
      for (const auto* value : {a, b}) out.rests_on.push_back(numbers.rests_on(*value));
    };
    rest(&earlier.pointer(), &later.pointer());
    rest(earlier.mask(), later.mask());
    rest(earlier.other(), later.other());
    const auto between = rewrite::between(earlier.op, later.op, earlier.pointer(), work_.facts);
    if (between.why) return std::unexpected(*between.why);
    out.disjoint = between.rests_on_disjoint;
    return out;
  }

  /// The interval of a mask that is true in every lane.
  std::optional<Interval> all_true(const Value* mask) {
    if (!mask) return std::nullopt;
    auto found = known_.constant(*mask);
    return found && found->low == 1 ? found : std::nullopt;
  }

  std::optional<std::string> masks(Reuse& reuse) {
    auto& numbers = reuse.convert ? blind_ : numbers_;
    const Value *had = reuse.earlier.mask(), *needs = reuse.later.mask();
    const Value *had_other = reuse.earlier.other(), *other = reuse.later.other();
    const bool same_mask = had == needs || (had && needs && numbers.of(*had) == numbers.of(*needs));
    const bool same_other =
        had_other == other || (had_other && other && numbers.of(*had_other) == numbers.of(*other));
    if (same_mask) {
      reuse.select = needs && other && !same_other;
      return std::nullopt;
    }
    if (const auto needs_all = all_true(needs)) { // and so its `other` is never seen
      if (const auto had_all = all_true(had); had_all || !had) {
        reuse.rests_on.push_back(*needs_all);
        if (had_all) reuse.rests_on.push_back(*had_all);
        return std::nullopt;
      }
    }
    if (!implies(numbers, needs, had)) {
      const auto had_all = all_true(had);
      if (!had_all)
        return fmt::format("{} reads under another mask, %{}, and nothing says that this one's "
                           "lanes are among them",
                           line_of(reuse.earlier), had->name);
      reuse.rests_on.push_back(*had_all);
    }
    reuse.select = needs && other;
    return std::nullopt;
  }

  void apply(const Reuse& reuse) {
    Operation& op = reuse.later.op;
    Value* value = &reuse.earlier.result();
    const auto made = [&](Op code, std::vector<Value*> operands) -> Value* {
      return &work_.module
                  .create({.code = code,
                           .operands = std::move(operands),
                           .results = {reuse.later.result().type},
                           .attributes = {},
                           .segments = {},
                           .name = std::string(reuse.later.result().name),
                           .location = op.location},
                          *op.block, &op)
                  .result();
    };
    std::string what =
        fmt::format("{} takes the value of {}", describe(op), line_of(reuse.earlier));
    if (reuse.convert) {
      value = made(Op::ttg_convert_layout, {value});
      what += ", converted to its layout";
    }
    if (reuse.select) {
      value = made(Op::arith_select, {reuse.later.mask(), value, reuse.later.other()});
      what += ", with its own `other` where it is masked";
    }
    if (reuse.later.cache() != reuse.earlier.cache() ||
        reuse.later.eviction() != reuse.earlier.eviction())
      what += fmt::format("; its {} {} is gone, {} {} stays", reuse.later.cache(),
                          reuse.later.eviction(), reuse.earlier.cache(), reuse.earlier.eviction());
    for (const auto& each : reuse.rests_on)
      assume(work_.account, work_.facts, each, "what two loads read, or their masks");
    if (reuse.disjoint)
      work_.account.assume_disjoint("a store stands between two loads of another argument");
    work_.account.changed(op, what);
    work_.module.replace_all_uses(reuse.later.result(), *value);
    work_.module.erase(op);
  }

  /// Equal expressions become the first one that is on every path. Sums and products only within
  /// one block: the compiler contracts no further.
  void merge_expressions() {
    ValueNumbers numbers;
    const ttgir::Dominance dominance(work_.module);
    std::unordered_map<std::uint32_t, std::vector<Operation*>> seen;
    std::unordered_map<Value*, Value*> into;
    std::vector<Operation*> merged;
    ttgir::walk(work_.function, [&](Operation& op) {
      if (!is_expression(op)) return;
      auto& twins = seen[numbers.of(op.result())];
      const bool in_block = op.is(Op::arith_mulf) || op.is(Op::arith_addf) || op.is(Op::arith_subf);
      for (Operation* twin : twins) {
        if (in_block && twin->block != op.block) continue;
        if (scope_of(*twin) != scope_of(op)) continue;
        if (!dominance.dominates(twin->result(), op)) continue;
        for (std::size_t i = 0; i < op.results.size(); ++i) into[&op.result(i)] = &twin->result(i);
        merged.push_back(&op);
        return;
      }
      twins.push_back(&op);
    });
    ttgir::walk(work_.function, [&](Operation& op) {
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (const auto found = into.find(op.operands[i]); found != into.end())
          work_.module.set_operand(op, i, *found->second);
    });
    for (Operation* op : merged) work_.module.erase(*op);
    if (!merged.empty())
      work_.account.changed(work_.function,
                            fmt::format("{} expressions merged with equal ones", merged.size()));
  }

  Work& work_;
  const Options& options_;
  KnownValues known_;
  ttgir::Dominance dominance_;
  ValueNumbers numbers_{ValueNumbers::Layouts::matter, &known_};
  ValueNumbers blind_{ValueNumbers::Layouts::ignored, &known_}; ///< layouts put aside
  ValueNumbers plain_;                                          ///< and with no facts
  std::vector<Load> earlier_;                                   ///< those that stay
  std::vector<Reuse> reuses_;
};

} // namespace

Pass reuse_loads() {
  return {
      "reuse-loads",
      "a load of what an earlier load has read takes that value",
      {{"arguments", "the arguments whose loads may take another's value (all)"},
       {"only", "which loads of an argument may, by number from 1 in the kernel's text (all)"},
       {"convert", "through ttg.convert_layout where the layouts differ (false)"},
       {"pin", "write down as math.fma what is contracted in a loop that a load leaves (true)"}},
      [](Work& work, const Json& given) -> Status {
        Options options;
        HEBE_TRY(options.arguments, names(given, "arguments"));
        HEBE_TRY(options.only, ordinals(given, "only"));
        HEBE_TRY(options.convert, flag(given, "convert", false));
        HEBE_TRY(options.pin, flag(given, "pin", true));
        if (options.arguments) HEBE_CHECK(are_arguments(*options.arguments, work.function));
        Reuser(work, options).run();
        return {};
      }};
}

} // namespace hebe::rewrite
