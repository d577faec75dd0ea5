#include "rewrite/known_values.hpp"

#include "ttgir/view.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace hebe::rewrite {
using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

namespace {

/// The width of an integer type; 0 for another one.
unsigned width(const Value& value) {
  if (!value.type) return 0;
  const auto& leaf = value.type->leaf();
  if (!leaf.is(ttgir::Type::Kind::scalar) || !ttgir::is_integer(leaf.scalar)) return 0;
  return leaf.scalar == ttgir::Scalar::index ? 64 : ttgir::bits_of(leaf.scalar);
}

/// Nothing where a value may be outside of the type: the machine would wrap.
std::optional<Interval> in_range(Interval interval, const Value& value) {
  const unsigned bits = width(value);
  if (bits == 0 || bits > 64) return std::nullopt;
  if (bits == 64) return interval;
  const std::int64_t most = (std::int64_t{1} << (bits - 1)) - 1;
  // An i1 is 0 or 1 here.
  const std::int64_t least = bits == 1 ? 0 : -most - 1, greatest = bits == 1 ? 1 : most;
  if (interval.low < least || interval.high > greatest) return std::nullopt;
  return interval;
}

Interval resting_on_both(const Interval& a, const Interval& b) {
  Interval out;
  out.arguments = a.arguments;
  out.arguments.insert(b.arguments.begin(), b.arguments.end());
  out.grid = a.grid || b.grid;
  return out;
}

/// The hull of `f` at the corners; nothing where one of them overflows 64 bits.
template <class F> std::optional<Interval> corners(const Interval& a, const Interval& b, F f) {
  Interval out = resting_on_both(a, b);
  out.low = std::numeric_limits<std::int64_t>::max();
  out.high = std::numeric_limits<std::int64_t>::min();
  for (const auto x : {a.low, a.high})
    for (const auto y : {b.low, b.high}) {
      std::int64_t z = 0;
      if (f(x, y, z)) return std::nullopt;
      out.low = std::min(out.low, z);
      out.high = std::max(out.high, z);
    }
  return out;
}

constexpr auto kAdd = [](std::int64_t a, std::int64_t b, std::int64_t& c) {
  return __builtin_add_overflow(a, b, &c);
};
constexpr auto kSubtract = [](std::int64_t a, std::int64_t b, std::int64_t& c) {
  return __builtin_sub_overflow(a, b, &c);
};
constexpr auto kMultiply = [](std::int64_t a, std::int64_t b, std::int64_t& c) {
  return __builtin_mul_overflow(a, b, &c);
};

// MLIR's predicates, by number as the generic form has them.
constexpr std::array<std::string_view, 10> kPredicates = {"eq",  "ne",  "slt", "sle", "sgt",
                                                          "sge", "ult", "ule", "ugt", "uge"};

std::string_view predicate_of(const Operation& op) {
  const auto text = op.text_of("predicate");
  const auto number = ttgir::integer(text);
  if (number && *number >= 0 && *number < 10) return kPredicates[static_cast<std::size_t>(*number)];
  return text;
}

/// 0, 1 or both.
std::optional<Interval> compared(std::string_view predicate, const Interval& a, const Interval& b) {
  Interval out = resting_on_both(a, b);
  const auto is = [&](bool always, bool never) -> std::optional<Interval> {
    out.low = always ? 1 : 0;
    out.high = never ? 0 : 1;
    return out;
  };
  if (predicate.starts_with("u")) {
    if (a.low < 0 || b.low < 0) return is(false, false);
    predicate.remove_prefix(1);
  } else if (predicate.starts_with("s")) {
    predicate.remove_prefix(1);
  }
  if (predicate == "lt") return is(a.high < b.low, a.low >= b.high);
  if (predicate == "le") return is(a.high <= b.low, a.low > b.high);
  if (predicate == "gt") return is(a.low > b.high, a.high <= b.low);
  if (predicate == "ge") return is(a.low >= b.high, a.high < b.low);
  const bool same = a.single() && b.single() && a.low == b.low;
  const bool apart = a.high < b.low || b.high < a.low;
  if (predicate == "eq") return is(same, apart);
  if (predicate == "ne") return is(apart, same);
  return std::nullopt;
}

} // namespace

std::optional<Interval> KnownValues::interval(const Value& value) {
  if (const auto found = seen_.find(&value); found != seen_.end()) return found->second;
  seen_[&value] = std::nullopt; // a value that depends on itself has none
  const auto found = computed(value);
  seen_[&value] = found;
  return found;
}

std::optional<Interval> KnownValues::constant(const Value& value) {
  auto found = interval(value);
  return found && found->single() ? found : std::nullopt;
}

std::optional<Interval> KnownValues::computed(const Value& value) {
  if (width(value) == 0) return std::nullopt;
  if (const auto fixed = ttgir::constant_integer(value)) return in_range({*fixed, *fixed}, value);
  if (value.op) {
    if (value.op->form == Operation::Form::opaque || value.op->results.size() != 1)
      return std::nullopt;
    auto found = of_operation(*value.op);
    return found ? in_range(*found, value) : std::nullopt;
  }
  // An argument of a block: of the function, or a loop's induction variable.
  Operation* around = value.block && value.block->region ? value.block->region->parent : nullptr;
  if (!around) return std::nullopt;
  if (around->is(Op::tt_func)) {
    if (value.block != around->regions[0]->blocks.front()) return std::nullopt;
    const auto fact = facts_.scalars.find(std::string(value.name));
    if (fact == facts_.scalars.end()) return std::nullopt;
    return in_range({fact->second, fact->second, {fact->first}}, value);
  }
  if (const auto loop = ttgir::For::of(*around); loop && &loop->induction() == &value) {
    const auto lower = interval(loop->lower()), upper = interval(loop->upper()),
               step = interval(loop->step());
    if (!lower || !upper || !step || step->low <= 0) return std::nullopt;
    // As numbers without a sign a negative bound is a large one.
    if (loop->is_unsigned() && (lower->low < 0 || upper->low < 0)) return std::nullopt;
    std::int64_t span = 0;
    if (__builtin_sub_overflow(upper->high, lower->low, &span) ||
        upper->high == std::numeric_limits<std::int64_t>::min())
      return std::nullopt;
    Interval out = resting_on_both(*lower, *upper);
    out.arguments.insert(step->arguments.begin(), step->arguments.end());
    out.grid = out.grid || step->grid;
    out.low = lower->low;
    out.high = std::max(lower->low, upper->high - 1); // where the body runs at all
    if (lower->single() && upper->single() && step->single() && upper->high > lower->low)
      out.high = lower->low + (upper->high - lower->low - 1) / step->low * step->low;
    return out;
  }
  return std::nullopt;
}

std::optional<Interval> KnownValues::of_operation(const Operation& op) {
  const auto a = op.operands.empty() ? std::nullopt : interval(*op.operands[0]);
  const auto b = op.operands.size() < 2 ? std::nullopt : interval(*op.operands[1]);
  switch (op.code) {
  case Op::tt_make_range: {
    const auto start = ttgir::integer(op.text_of("start")), end = ttgir::integer(op.text_of("end"));
    if (!start || !end || *end <= *start) return std::nullopt;
    return Interval{*start, *end - 1};
  }
  case Op::tt_get_program_id:
  case Op::tt_get_num_programs: {
    const auto axis = op.text_of("axis");
    const std::size_t i = axis == "x" || axis == "0" ? 0 : axis == "y" || axis == "1" ? 1 : 2;
    if (facts_.grid[i] == 0) return std::nullopt;
    const std::int64_t programs = facts_.grid[i];
    if (op.is(Op::tt_get_program_id)) return Interval{0, programs - 1, {}, true};
    return Interval{programs, programs, {}, true};
  }
  case Op::tt_splat:
  case Op::tt_unsplat:
  case Op::tt_broadcast:
  case Op::tt_expand_dims:
  case Op::ttg_convert_layout:
  case Op::arith_trunci: // in_range refuses what does not fit
    return a;
  case Op::arith_extsi: // an i1 is 0 or 1 here, and true is -1 with a sign
    return width(*op.operands[0]) == 1 ? std::nullopt : a;
  case Op::arith_extui:
    return a && a->low >= 0 ? a : std::nullopt;
  default:
    break;
  }
  if (!a || !b) return std::nullopt;
  // Signed arithmetic of i1, where true is -1, is not what intervals of 0 and 1 say.
  const auto text = predicate_of(op);
  const bool signless = op.is(Op::arith_andi) || op.is(Op::arith_ori) ||
                        (op.is(Op::arith_cmpi) && !text.starts_with('s'));
  if (width(*op.operands[0]) == 1 && !signless) return std::nullopt;
  switch (op.code) {
  case Op::arith_addi:
    return corners(*a, *b, kAdd);
  case Op::arith_subi:
    return corners(*a, *b, kSubtract);
  case Op::arith_muli:
    return corners(*a, *b, kMultiply);
  case Op::arith_divsi:
    if (b->low <= 0) return std::nullopt;
    return corners(*a, *b, [](std::int64_t x, std::int64_t y, std::int64_t& z) {
      z = x / y;
      return false;
    });
  case Op::arith_remsi: {
    if (b->low <= 0 || a->low < 0) return std::nullopt;
    Interval out = resting_on_both(*a, *b);
    if (a->single() && b->single()) {
      out.low = out.high = a->low % b->low;
    } else {
      out.low = 0;
      out.high = std::min(a->high, b->high - 1);
    }
    return out;
  }
  case Op::arith_minsi:
  case Op::arith_maxsi: {
    Interval out = resting_on_both(*a, *b);
    const bool least = op.is(Op::arith_minsi);
    out.low = least ? std::min(a->low, b->low) : std::max(a->low, b->low);
    out.high = least ? std::min(a->high, b->high) : std::max(a->high, b->high);
    return out;
  }
  case Op::arith_andi:
  case Op::arith_ori: {
    if (width(op.result()) != 1) return std::nullopt;
    Interval out = resting_on_both(*a, *b);
    const bool both = op.is(Op::arith_andi);
    out.low = both ? std::min(a->low, b->low) : std::max(a->low, b->low);
    out.high = both ? std::min(a->high, b->high) : std::max(a->high, b->high);
    return out;
  }
  case Op::arith_cmpi:
    return compared(predicate_of(op), *a, *b);
  default:
    return std::nullopt;
  }
}

std::optional<Interval> KnownValues::trips(Operation& op) {
  const auto loop = ttgir::For::of(op);
  if (!loop) return std::nullopt;
  const auto lower = interval(loop->lower()), upper = interval(loop->upper()),
             step = interval(loop->step());
  if (!lower || !upper || !step || step->low <= 0) return std::nullopt;
  // Unsigned bounds are compared as such: equal where none is negative.
  if (loop->is_unsigned() && (lower->low < 0 || upper->low < 0)) return std::nullopt;
  const auto runs = [](std::int64_t from, std::int64_t to, std::int64_t by) {
    return to <= from ? std::int64_t{0} : (to - from - 1) / by + 1;
  };
  std::int64_t span = 0;
  if (__builtin_sub_overflow(upper->high, lower->low, &span)) return std::nullopt;
  Interval out = resting_on_both(*lower, *upper);
  out.arguments.insert(step->arguments.begin(), step->arguments.end());
  out.grid = out.grid || step->grid;
  out.low = runs(lower->high, upper->low, step->high);
  out.high = runs(lower->low, upper->high, step->low);
  return out;
}

void assume(Account& account, const LaunchFacts& facts, const Interval& interval,
            const std::string& why) {
  for (const auto& argument : interval.arguments) account.assume_scalar(facts, argument, why);
  if (interval.grid) account.assume_grid(why);
}

} // namespace hebe::rewrite
