// Masks that cut nothing. In: what is known of integers in a launch; out: accesses without a mask
// that is all true, selects replaced by the side that they always give, conjunctions by the side
// that decides. Invariant: exact (in the IR only, where a select stood between a product and its
// sum: products.hpp): a lane that is masked in some launch that keeps the facts keeps its mask.
#include "rewrite/access_passes.hpp"
#include "rewrite/known_values.hpp"
#include "rewrite/products.hpp"

#include <fmt/format.h>

#include <optional>
#include <unordered_set>

namespace hebe::rewrite {
namespace {

using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

/// Where an access has its mask: numbers of segments of its format in ops.def.
struct MaskPlace {
  std::size_t mask = 0;
  std::optional<std::size_t> other; ///< what masked lanes get
};

std::optional<MaskPlace> mask_place(const Operation& op) {
  switch (op.code) {
  case Op::tt_load:
    return MaskPlace{1, 2};
  case Op::tt_store:
    return MaskPlace{2, {}};
  case Op::tt_atomic_rmw:
    return MaskPlace{2, {}};
  case Op::ttg_async_copy_global_to_local:
    return MaskPlace{2, 3};
  default:
    return std::nullopt;
  }
}

/// What the mask depends on that no fact says: "%N, the grid"; empty where all of it is known.
std::string unknown_behind(const Value& mask, const LaunchFacts& facts) {
  std::string out;
  const auto add = [&](std::string_view what) {
    if (out.find(what) == std::string::npos) out += (out.empty() ? "" : ", ") + std::string(what);
  };
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> open{&mask};
  while (!open.empty()) {
    const Value& at = *open.back();
    open.pop_back();
    if (!seen.insert(&at).second) continue;
    if (at.op) {
      if (at.op->is(Op::tt_get_program_id) && facts.grid[0] == 0) add("the grid");
      if (at.op->is(Op::tt_load))
        add("what is loaded");
      else
        open.insert(open.end(), at.op->operands.begin(), at.op->operands.end());
      continue;
    }
    const Operation* around = at.block && at.block->region ? at.block->region->parent : nullptr;
    if (!around) continue;
    if (around->is(Op::tt_func)) {
      if (!facts.scalars.contains(std::string(at.name))) add("%" + std::string(at.name));
    } else { // a loop's: its bounds and what it begins with
      open.insert(open.end(), around->operands.begin(), around->operands.end());
    }
  }
  return out;
}

class Masks {
public:
  explicit Masks(Work& work) : work_(work), known_(work.facts) {}

  void run() {
    std::vector<Operation*> all;
    ttgir::walk(work_.function, [&](Operation& op) { all.push_back(&op); });
    for (Operation* op : all) {
      if (op->form == Operation::Form::opaque) continue;
      if (op->is(Op::arith_select))
        select(*op);
      else if (op->is(Op::arith_andi))
        conjunction(*op);
      else if (const auto place = mask_place(*op); place && !op->segment(place->mask).empty())
        access(*op, *place);
    }
  }

private:
  /// 0 or 1, everywhere in the condition; what it rests on becomes a contract once it is used.
  [[nodiscard]] std::optional<Interval> decided(const Value& condition) {
    if (!condition.type || condition.type->leaf().scalar != ttgir::Scalar::i1) return std::nullopt;
    return known_.constant(condition);
  }

  void select(Operation& op) {
    const auto condition = decided(*op.operands[0]);
    if (!condition) return;
    Value& side = *op.operands[condition->low == 1 ? 1 : 2];
    // The other side loses a use, which may be what kept it from being contracted.
    if (may_be_product(*op.operands[1]) || may_be_product(*op.operands[2]))
      work_.account.at_best(Exactness::exact_in_ir);
    replace(op, side, *condition,
            fmt::format("its condition is all {}", condition->low == 1 ? "true" : "false"));
  }

  void conjunction(Operation& op) {
    for (const std::size_t side : {0U, 1U}) {
      const auto known = decided(*op.operands[side]);
      if (!known || known->low != 1) continue;
      return replace(op, *op.operands[1 - side], *known, "its other side is all true");
    }
  }

  void replace(Operation& op, Value& with, const Interval& rests_on, const std::string& why) {
    const auto what = fmt::format("{} is %{}: {}", describe(op), with.name, why);
    assume(work_.account, work_.facts, rests_on, what);
    work_.account.changed(op, what);
    work_.module.replace_all_uses(op.result(), with);
    work_.module.erase(op);
  }

  void access(Operation& op, const MaskPlace& place) {
    const Value& mask = *op.segment(place.mask)[0];
    const auto known = known_.interval(mask);
    if (!known || known->low != 1) {
      const auto unknown = unknown_behind(mask, work_.facts);
      return work_.account.refuse(
          op, known && known->high == 0 ? "its mask is all false, so it does nothing"
              : known || unknown.empty()
                  ? fmt::format("its mask %{} may be false in a lane", mask.name)
                  : fmt::format("its mask %{} is not known: no fact says {}", mask.name, unknown));
    }
    if (op.form != Operation::Form::table)
      return work_.account.refuse(op, "it is written in the generic form");
    const auto what =
        fmt::format("{} without its mask %{}, which is all true", describe(op), mask.name);
    assume(work_.account, work_.facts, *known, what);
    work_.account.changed(op, what);
    if (place.other && !op.segment(*place.other).empty() &&
        may_be_product(*op.segment(*place.other)[0]))
      work_.account.at_best(Exactness::exact_in_ir);
    unmask(op, place);
  }

  /// The same operation without mask and `other`, in its place and under its name.
  void unmask(Operation& op, const MaskPlace& place) {
    ttgir::Module::Draft draft{.code = op.code,
                               .operands = {},
                               .results = {},
                               .attributes = {op.attributes.begin(), op.attributes.end()},
                               .segments = {},
                               .name = {},
                               .location = op.location};
    for (std::size_t i = 0; i < op.segments.size(); ++i) {
      const bool goes = i == place.mask || i == place.other;
      const auto values = op.segment(i);
      draft.segments.push_back(goes ? std::uint16_t{0} : op.segments[i]);
      if (!goes) draft.operands.insert(draft.operands.end(), values.begin(), values.end());
    }
    for (const Value& value : op.results) draft.results.push_back(value.type);
    if (!op.results.empty()) draft.name = op.result().name;
    Operation& made = work_.module.create(draft, *op.block, &op);
    made.format = op.format;
    made.spacing = op.spacing;
    made.line = op.line; // it still stands for that line of the text
    for (std::size_t i = 0; i < op.results.size(); ++i)
      work_.module.replace_all_uses(op.result(i), made.result(i));
    work_.module.erase(op);
  }

  Work& work_;
  KnownValues known_;
};

Status run(Work& work, const Json& /*options*/) {
  Masks(work).run();
  return {};
}

} // namespace

Pass drop_masks() {
  return {"drop-masks", "masks that are all true under the launch's facts, gone", {}, run};
}

} // namespace hebe::rewrite
