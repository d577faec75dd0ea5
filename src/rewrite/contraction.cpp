#include "rewrite/contraction.hpp"

#include "rewrite/loop_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace hebe::rewrite {
using ttgir::Block;
using ttgir::Effect;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Scalar;
using ttgir::Value;

bool Variance::varies(const Value& value) {
  if (!loop_) return true;
  if (const auto found = seen_.find(&value); found != seen_.end()) return found->second;
  const Operation* at = value.op;
  const Operation* around = at                                   ? at->parent()
                            : value.block && value.block->region ? value.block->region->parent
                                                                 : nullptr;
  for (const Operation* up = around; up != loop_; up = up->parent())
    if (!up) return seen_[&value] = false; // from outside
  if (!at || at->info().effect != Effect::pure || !at->regions.empty() ||
      at->is(Op::ttg_convert_layout)) // through shared memory and a barrier: it stays where it is
    return seen_[&value] = true;
  const bool found =
      std::ranges::any_of(at->operands, [&](const Value* each) { return varies(*each); });
  return seen_[&value] = found;
}

namespace {

bool is_negative_zero(double x) { return x == 0 && std::signbit(x); }

/// Operations that end LLVM's basic block, or may: one elected thread issues most of ttng's.
bool branches(const Operation& op) {
  const auto effect = op.info().effect;
  if (op.name.starts_with("ttng.") && !op.is(Op::ttng_warp_group_dot_wait) &&
      effect != Effect::pure && effect != Effect::read_shared && effect != Effect::write_shared)
    return true;
  return op.is(Op::scf_for) || op.is(Op::scf_if) || op.is(Op::scf_while) ||
         op.is(Op::ttg_warp_specialize) || op.is(Op::tt_call) || effect == Effect::read_write ||
         effect == Effect::unknown;
}

/// With fastmath flags LLVM may do more than this file foresees.
bool plain(const Operation& op) { return op.text_of("fastmath").empty(); }

/// The constant that a value is everywhere, through splats.
std::optional<double> constant(const Value& value) {
  const Value* at = &value;
  while (at->op && at->op->operands.size() == 1 && at->op->info().effect == Effect::pure &&
         (at->op->name.starts_with("tt.") || at->op->is(Op::ttg_convert_layout)))
    at = at->op->operands[0];
  if (!at->op || !at->op->is(Op::arith_constant)) return std::nullopt;
  const auto text = at->op->text_of("value");
  const auto inside = ttgir::dense(text);
  const auto found = ttgir::floating(inside ? *inside : text);
  return found && !found->bits ? std::optional(found->value) : std::nullopt;
}

/// -x, as made below or by arith.negf: x; null for another operation. LLVM has one negation for
/// both.
const Value* negated(const Operation& op) {
  if (op.is(Op::arith_negf)) return op.operands[0];
  if (!op.is(Op::arith_subf)) return nullptr;
  const auto from = constant(*op.operands[0]);
  return from && is_negative_zero(*from) ? op.operands[1] : nullptr;
}

bool is_sum(const Operation& op) {
  return op.is(Op::arith_addf) || (op.is(Op::arith_subf) && !negated(op));
}

bool adds(const Operation& reduce) {
  bool found = false;
  ttgir::walk(const_cast<Operation&>(reduce), [&](Operation& op) { found = found || is_sum(op); });
  return found;
}

/// What a negation or a change of shape or layout is made of; null for another operation.
const Value* through(const Operation& op) {
  if (const Value* inside = negated(op)) return inside;
  switch (op.code) {
  case Op::tt_splat:
  case Op::tt_unsplat:
  case Op::tt_broadcast:
  case Op::tt_expand_dims:
  case Op::tt_reshape:
  case Op::tt_trans:
  case Op::ttg_convert_layout:
    return op.operands[0];
  default:
    return nullptr;
  }
}

/// LLVM turns such a product into something else first (a copy, a negation, x + x).
bool trivial(const Operation& product) {
  return std::ranges::any_of(product.operands, [](const Value* operand) {
    const auto factor = constant(*operand);
    return factor && (*factor == 1 || *factor == -1 || *factor == 2);
  });
}

struct Places {
  explicit Places(const Block& block) {
    std::size_t segment = 0;
    for (const Operation* op : block.operations) {
      segment_of[op] = segment;
      if (branches(*op)) ++segment;
    }
  }
  [[nodiscard]] bool together(const Operation* a, const Operation* b) const {
    const auto x = segment_of.find(a), y = segment_of.find(b);
    return x != segment_of.end() && y != segment_of.end() && x->second == y->second;
  }
  std::unordered_map<const Operation*, std::size_t> segment_of;
};

std::size_t uses(Work& work, const Value& value) {
  std::size_t found = 0;
  ttgir::walk(work.function, [&](Operation& op) {
    found += static_cast<std::size_t>(std::ranges::count(op.operands, &value));
  });
  return found;
}

Value& made(Work& work, Op code, std::vector<Value*> operands, const Operation& at,
            Operation& before) {
  return work.module
      .create({.code = code,
               .operands = std::move(operands),
               .results = {at.result().type},
               .attributes = {},
               .segments = {},
               .name = std::string(at.result().name),
               .location = at.location},
              *before.block, &before)
      .result();
}

/// Triton has no lowering of arith.negf for tensors; LLVM makes the same of -0.0 - x.
Value& negation(Work& work, Value& of, const Operation& at, Operation& before) {
  using ttgir::Attribute;
  Value& zero =
      work.module
          .create({.code = Op::arith_constant,
                   .operands = {},
                   .results = {of.type},
                   .attributes = {{"value",
                                   of.type->shaped() ? "dense<-0.000000e+00>" : "-0.000000e+00",
                                   Attribute::Place::syntax}},
                   .segments = {},
                   .name = "minus_zero",
                   .location = at.location},
                  *before.block, &before)
          .result();
  return made(work, Op::arith_subf, {&zero, &of}, at, before);
}

/// The loops around a block, inner first: how far out LLVM moves what no trip changes.
class Loops {
public:
  explicit Loops(const Operation* loop) {
    for (const Operation* up = loop; up; up = up->parent())
      if (up->is(Op::scf_for) || up->is(Op::scf_while)) levels_.emplace_back(up);
  }
  /// Whether a product and the sum that it feeds, of one block, still are when both have moved.
  bool keep_together(const Value& product, const Value& sum) {
    for (Variance& level : levels_) {
      if (level.varies(product)) return true;
      if (level.varies(sum)) return false;
    }
    return true;
  }

private:
  std::vector<Variance> levels_;
};

bool contracts(const Value& value, const Operation& sum, const Places& places, Loops& loops) {
  const Operation* product = value.op;
  return product && product->is(Op::arith_mulf) && product->block == sum.block && plain(*product) &&
         places.together(product, &sum) && loops.keep_together(value, sum.result()) &&
         !trivial(*product);
}

} // namespace

std::vector<Contractible> contractible(Block& block) {
  const Places places(block);
  std::vector<Contractible> out;
  for (Operation* sum : block.operations) {
    if (!is_sum(*sum) && !(sum->is(Op::tt_reduce) && adds(*sum))) continue;
    for (const Value* operand : sum->operands) {
      const Value* at = operand;
      while (const Value* inside = at->op ? through(*at->op) : nullptr) at = inside;
      if (at->op && at->op->is(Op::arith_mulf) && places.together(at->op, sum) && !trivial(*at->op))
        out.push_back({at->op, sum, at == operand && is_sum(*sum)});
    }
  }
  return out;
}

void pin_contractions(Work& work, Block& block, const Operation* loop) {
  const Places places(block);
  Loops loops(loop);
  const std::vector<Operation*> operations(block.operations.begin(), block.operations.end());
  for (Operation* sum : operations) {
    if (!is_sum(*sum) || !plain(*sum)) continue;
    const bool first = contracts(*sum->operands[0], *sum, places, loops);
    const bool second = contracts(*sum->operands[1], *sum, places, loops);
    if (!first && !second) continue;
    // Of two products the combiner takes the first, unless it has more uses than the second.
    const bool take_first =
        first && (!second || uses(work, *sum->operands[0]) <= uses(work, *sum->operands[1]));
    Value& product = *sum->operands[take_first ? 0 : 1];
    Value* other = sum->operands[take_first ? 1 : 0];
    Value *a = product.op->operands[0], *b = product.op->operands[1];
    if (sum->is(Op::arith_subf)) {
      if (take_first)
        other = &negation(work, *other, *sum, *sum);
      else
        a = &negation(work, *a, *sum, *sum);
    }
    work.account.changed(*sum, fmt::format("the contraction of %{} = {}(…%{}…) is written down",
                                           sum->result().name, sum->name, product.name));
    Value& fused = made(work, Op::math_fma, {a, b, other}, *sum, *sum);
    work.module.replace_all_uses(sum->result(), fused);
    work.module.erase(*sum);
    if (!work.module.used(product)) work.module.erase(*product.op);
  }
}

bool drops_addend(const Value& addend) {
  const auto found = constant(addend);
  return found && is_negative_zero(*found);
}

void pin_loops_of(Work& work, const std::set<Block*>& blocks) {
  std::vector<std::pair<Block*, const Operation*>> places; // in the order of the text
  const auto visit = [&](const auto& self, Operation& op, const Operation* loop) -> void {
    for (ttgir::Region* region : op.regions)
      for (Block* block : region->blocks) {
        const bool left = loop || (op.is(Op::scf_for) && blocks.contains(block));
        const Operation* around = left && op.is(Op::scf_for) ? &op : loop;
        if (left && (op.is(Op::scf_for) || op.is(Op::scf_if))) places.emplace_back(block, around);
        for (Operation* inner : block->operations) self(self, *inner, around);
      }
  };
  visit(visit, work.function, nullptr);
  for (const auto& [block, loop] : places) pin_contractions(work, *block, loop);
}

Exactness exactness_of_moves(Operation& function) {
  bool products = false;
  ttgir::walk(function, [&](Operation& op) {
    products = products || op.is(Op::arith_mulf) || op.name.starts_with("math.") ||
               op.is(Op::tt_dot) || op.is(Op::tt_dot_scaled) || op.info().effect == Effect::call;
  });
  return products ? Exactness::exact_in_ir : Exactness::exact;
}

void keep_apart(Work& work, const Contractible& pair) {
  const auto& [product, sum, direct] = pair;
  const auto scalar = product->result().type->leaf().scalar;
  const bool cuda = work.module.top().text_of("ttg.target").starts_with("\"cuda");
  if (!direct || !cuda || (scalar != Scalar::f32 && scalar != Scalar::f64)) {
    work.account.changed(
        *sum, fmt::format("the product %{} and {} stand in one block now: the compiler may "
                          "contract them",
                          product->result().name, describe(*sum)));
    return;
  }
  // Neither LLVM nor ptxas looks into it, and PTX says of mul.rn that it is never contracted.
  const bool wide = scalar == Scalar::f64;
  using ttgir::Attribute;
  Operation& rounded = work.module.create(
      {.code = Op::tt_elementwise_inline_asm,
       .operands = {product->operands[0], product->operands[1]},
       .results = {product->result().type},
       .attributes = {{"asm_string",
                       wide ? "\"mul.rn.f64 $0, $1, $2;\"" : "\"mul.rn.f32 $0, $1, $2;\"",
                       Attribute::Place::syntax},
                      {"constraints", wide ? "\"=d,d,d\"" : "\"=f,f,f\"",
                       Attribute::Place::dictionary},
                      {"packed_element", "1 : i32", Attribute::Place::dictionary},
                      {"pure", "true", Attribute::Place::dictionary}},
       .segments = {2},
       .name = std::string(product->result().name),
       .location = product->location},
      *sum->block, sum);
  for (std::size_t i = 0; i < sum->operands.size(); ++i)
    if (sum->operands[i] == &product->result()) work.module.set_operand(*sum, i, rounded.result());
  work.account.changed(*sum, fmt::format("the product %{} is rounded before {}, as it was in "
                                         "another block",
                                         product->result().name, describe(*sum)));
}

void pin_all_contractions(ttgir::Module& module) {
  const LaunchFacts nothing_known;
  Account nobodys;
  for (Operation* function : std::vector(module.body().operations)) {
    Work work{module, *function, nothing_known, nobodys};
    const auto visit = [&](const auto& self, Operation& op, const Operation* loop) -> void {
      const Operation* around = op.is(Op::scf_for) || op.is(Op::scf_while) ? &op : loop;
      for (ttgir::Region* region : op.regions)
        for (Block* block : region->blocks) {
          for (Operation* inner : std::vector(block->operations)) self(self, *inner, around);
          pin_contractions(work, *block, around);
        }
    };
    visit(visit, *function, nullptr);
  }
}

Pass pin_contractions() {
  return {"pin-contractions",
          "what the compiler contracts in the bodies of loops is written down as math.fma",
          {},
          [](Work& work, const Json&) -> Status {
            std::set<Block*> bodies;
            ttgir::walk(work.function, [&](Operation& op) {
              if (ttgir::For::of(op)) bodies.insert(op.regions[0]->blocks.front());
            });
            const auto before = work.account.changes.size();
            pin_loops_of(work, bodies);
            if (work.account.changes.size() > before) work.account.at_best(Exactness::exact_in_ir);
            return {};
          }};
}

} // namespace hebe::rewrite
