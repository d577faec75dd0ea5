#include "rewrite/loop_bodies.hpp"

#include "rewrite/contraction.hpp"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

namespace hebe::rewrite {
using ttgir::Block;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

std::optional<std::string> holds_together(Operation& loop) {
  std::optional<std::string> why;
  ttgir::walk(loop, [&](Operation& op) {
    if (op.is(Op::ttg_warp_specialize) || op.is(Op::ttg_warp_specialize_partitions))
      why = "it holds ttg.warp_specialize, whose warps wait for each other";
  });
  for (const Operation* up = loop.parent(); up && !why; up = up->parent())
    if (up->is(Op::ttg_warp_specialize) || up->is(Op::ttg_warp_specialize_partitions))
      why = "it stands in ttg.warp_specialize, whose warps wait for each other";
  return why;
}

namespace {

/// The arguments and other starting points that a value is computed from and that have no value.
void unknowns(KnownValues& known, const Value& value, std::set<std::string>& names, int depth) {
  if (depth > 32 || known.interval(value)) return;
  const bool end = !value.op || value.op->operands.empty() || !value.op->regions.empty() ||
                   value.op->info().effect != ttgir::Effect::pure;
  if (end) {
    names.insert("%" + std::string(value.name));
    return;
  }
  for (const Value* each : value.op->operands) unknowns(known, *each, names, depth + 1);
}

} // namespace

std::string says_trips(KnownValues& known, Operation& loop) {
  if (const auto trips = known.trips(loop)) {
    if (trips->single())
      return fmt::format("it runs {} {}", trips->low, trips->low == 1 ? "time" : "times");
    return fmt::format("it runs {} to {} times", trips->low, trips->high);
  }
  std::set<std::string> names;
  const auto view = ttgir::For::of(loop);
  if (!view) return "its form is not understood";
  for (const Value* each : {&view->lower(), &view->upper(), &view->step()})
    unknowns(known, *each, names, 0);
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "how often it runs is not known"
                      : fmt::format("how often it runs depends on {}, which is not fixed", list);
}

std::string says_attributes(const Operation& loop) {
  std::string list;
  for (const auto& each : loop.attributes)
    if (each.place != ttgir::Attribute::Place::syntax)
      list += (list.empty() ? ", with its " : ", ") + std::string(each.name);
  return list;
}

bool ends_in_range(KnownValues& known, Operation& op) {
  const auto loop = ttgir::For::of(op);
  const auto lower = known.interval(loop->lower()), step = known.interval(loop->step()),
             trips = known.trips(op);
  if (!lower || !step || !trips || !loop->step().type) return false;
  const auto scalar = loop->step().type->scalar;
  const unsigned bits = scalar == ttgir::Scalar::index ? 64 : ttgir::bits_of(scalar);
  std::int64_t past = 0;
  if (__builtin_mul_overflow(trips->high, step->high, &past) ||
      __builtin_add_overflow(past, lower->high, &past))
    return false;
  return bits >= 64 || past < (std::int64_t{1} << (bits - 1));
}

namespace {

/// Replaces the loop by its bodies, and remembers which copy of what each operation is.
class Expansion {
public:
  Expansion(Work& work, Operation& loop, std::int64_t trips)
      : work_(work), loop_(loop), view_(*ttgir::For::of(loop)), trips_(trips) {}

  void run() {
    KnownValues known(work_.facts);
    const auto lower = known.constant(view_.lower()), step = known.constant(view_.step());
    std::vector<Value*> carried(view_.initial().begin(), view_.initial().end());
    Value* induction = &view_.lower();
    const Operation* yield = view_.yield();
    const std::vector<Operation*> body(view_.body().front().operations.begin(),
                                       view_.body().front().operations.end());
    for (std::int64_t k = 0; k < trips_; ++k) {
      round_ = k;
      if (k > 0) induction = &next(*induction, k, lower, step);
      copies_.clear();
      copies_[&view_.induction()] = induction;
      for (std::size_t i = 0; i < carried.size(); ++i) copies_[&view_.carried()[i]] = carried[i];
      const bool last = k + 1 == trips_;
      if (last) // the body itself moves, so its operations keep their lines
        for (const auto& [from, to] : copies_) work_.module.replace_all_uses(*from, *to);
      for (Operation* op : body) {
        if (op == yield) continue;
        if (last)
          work_.module.move(*op, *loop_.block, &loop_);
        else
          copy(*op);
        if (last) origin_[op] = {op, k};
      }
      for (std::size_t i = 0; yield && i < carried.size(); ++i)
        carried[i] = last ? yield->operands[i] : mapped(yield->operands[i]);
    }
    for (std::size_t i = 0; i < loop_.results.size(); ++i)
      work_.module.replace_all_uses(loop_.result(i), *carried[i]);
    work_.module.erase(loop_);
  }

  /// Both of one copy of the body, and contracted there already.
  [[nodiscard]] bool was(const Contractible& pair, const std::set<Contractible>& before) const {
    const auto product = origin_.find(pair.product), sum = origin_.find(pair.sum);
    if (product == origin_.end() || sum == origin_.end()) return before.contains(pair);
    return product->second.second == sum->second.second &&
           before.contains({product->second.first, sum->second.first, pair.direct});
  }

private:
  Value* mapped(Value* value) const {
    const auto found = copies_.find(value);
    return found == copies_.end() ? value : found->second;
  }

  void copy(Operation& op) {
    Operation& made = work_.module.clone(op, *loop_.block, &loop_);
    ttgir::walk(made, [&](Operation& each) {
      for (std::size_t i = 0; i < each.operands.size(); ++i)
        each.operands[i] = mapped(each.operands[i]);
    });
    for (std::size_t i = 0; i < op.results.size(); ++i) copies_[&op.result(i)] = &made.result(i);
    origin_[&made] = {&op, round_};
  }

  Value& next(Value& induction, std::int64_t k, const std::optional<Interval>& lower,
              const std::optional<Interval>& step) {
    const auto name = std::string(view_.induction().name);
    if (lower && step) {
      if (!lower->arguments.empty() || !step->arguments.empty() || lower->grid || step->grid) {
        assume(work_.account, work_.facts, *lower, "a loop's induction variable is a constant");
        assume(work_.account, work_.facts, *step, "a loop's induction variable is a constant");
      }
      return work_.module
          .create({.code = Op::arith_constant,
                   .operands = {},
                   .results = {induction.type},
                   .attributes = {{"value", std::to_string(lower->low + k * step->low),
                                   ttgir::Attribute::Place::syntax}},
                   .segments = {},
                   .name = name,
                   .location = loop_.location},
                  *loop_.block, &loop_)
          .result();
    }
    return work_.module
        .create({.code = Op::arith_addi,
                 .operands = {&induction, &view_.step()},
                 .results = {induction.type},
                 .attributes = {},
                 .segments = {},
                 .name = name,
                 .location = loop_.location},
                *loop_.block, &loop_)
        .result();
  }

  Work& work_;
  Operation& loop_;
  ttgir::For view_;
  std::int64_t trips_, round_ = 0;
  std::unordered_map<Value*, Value*> copies_;
  std::unordered_map<const Operation*, std::pair<Operation*, std::int64_t>> origin_;
};

} // namespace

void expand(Work& work, Operation& loop, std::int64_t trips, bool pin) {
  Block& body = loop.regions[0]->front();
  Block& around = *loop.block;
  if (pin) {
    pin_contractions(work, body, &loop);
    for (const Value* initial : ttgir::For::of(loop)->initial())
      if (drops_addend(*initial))
        work.account.changed(loop, fmt::format("it begins at %{} = -0.0: LLVM drops such an addend "
                                               "of an fma and may contract the product anew",
                                               initial->name));
  }
  // What may be contracted before; an invariant product of the body stands ahead of the loop.
  std::set<Contractible> before;
  Variance variance(&loop);
  for (const auto& pair : contractible(body))
    if (variance.varies(pair.product->result())) before.insert(pair);
  for (const auto& pair : contractible(around)) before.insert(pair);
  Expansion expansion(work, loop, trips);
  expansion.run();
  if (pin)
    for (const auto& pair : contractible(around))
      if (!expansion.was(pair, before)) keep_apart(work, pair);
}

} // namespace hebe::rewrite
