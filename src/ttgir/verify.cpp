#include "ttgir/verify.hpp"

#include "ttgir/dominance.hpp"
#include "ttgir/printer.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

std::string_view text_of(TypeRef type) { return type ? type->text : "an unknown type"; }

struct Verifier {
  const Module& module;
  Dominance dominance;
  std::vector<Finding> findings;
  std::unordered_set<const Operation*> seen;

  void add(const Operation& op, std::string what) {
    findings.push_back({op.line, to_text(op), std::move(what)});
  }

  void same(const Operation& op, TypeRef a, TypeRef b, std::string_view what) {
    if (a && b && a != b) add(op, fmt::format("{}: {} and {}", what, text_of(a), text_of(b)));
  }

  /// `mask` must have i1 elements and the shape and layout of `pointer`.
  void mask(const Operation& op, const Value* pointer, const Value* mask) {
    if (!pointer->type || !mask->type) return;
    const bool shaped = pointer->type->shaped();
    if (mask->type->scalar != Scalar::i1 || mask->type->shaped() != shaped ||
        (shaped && !std::ranges::equal(mask->type->shape, pointer->type->shape)) ||
        mask->type->encoding != pointer->type->encoding)
      add(op, fmt::format("the mask is {}, the pointer {}", text_of(mask->type),
                          text_of(pointer->type)));
  }

  /// `with`: pointer's pointees must be of this type.
  void points_to(const Operation& op, const Value* pointer, TypeRef with, std::string_view what) {
    const TypeRef pointer_type = pointer->type;
    if (!pointer_type || !with || !pointer_type->leaf().is(Type::Kind::pointer)) return;
    const Type& pointee = *pointer_type->leaf().element;
    if (pointee.is(Type::Kind::tensor)) return same(op, &pointee, with, what); // a block pointer
    const bool fits = pointer_type->shaped() == with->shaped() && &with->leaf() == &pointee &&
                      std::ranges::equal(pointer_type->shape, with->shape) &&
                      pointer_type->encoding == with->encoding;
    if (!fits)
      add(op, fmt::format("{} is {}, the pointer {}", what, text_of(with), text_of(pointer_type)));
  }

  void check_types(const Operation& op) {
    switch (op.code) {
    case Op::tt_load:
      if (op.segment(0).empty()) break;
      if (!op.segment(1).empty()) mask(op, op.segment(0)[0], op.segment(1)[0]);
      points_to(op, op.segment(0)[0], op.result().type, "the result");
      if (!op.segment(2).empty())
        same(op, op.segment(2)[0]->type, op.result().type, "`other` and the result differ");
      break;
    case Op::tt_store:
      if (op.segment(1).empty()) break;
      points_to(op, op.segment(0)[0], op.segment(1)[0]->type, "the stored value");
      if (!op.segment(2).empty()) mask(op, op.segment(0)[0], op.segment(2)[0]);
      break;
    case Op::scf_for: {
      const Block& body = op.regions[0]->front();
      if (op.operands.size() != op.results.size() + 3 ||
          body.arguments.size() != op.results.size() + 1) {
        add(op, "initial values, arguments and results are not equal in number");
        break;
      }
      for (std::size_t i = 0; i < 3; ++i)
        same(op, op.operands[i]->type, body.arguments[0].type,
             "bounds and induction variable differ");
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        same(op, op.operands[i + 3]->type, op.result(i).type,
             "an initial value and its result differ");
        same(op, body.arguments[i + 1].type, op.result(i).type,
             "an argument and its result differ");
      }
      break;
    }
    case Op::scf_if:
      if (!op.operands[0]->type || op.operands[0]->type->scalar != Scalar::i1 ||
          op.operands[0]->type->shaped())
        add(op, fmt::format("the condition is {}, not i1", text_of(op.operands[0]->type)));
      if (op.regions.size() == 1 && !op.results.empty()) add(op, "results, and no `else`");
      break;
    case Op::scf_yield:
    case Op::ttg_warp_yield: {
      const Operation* around = op.parent();
      if (!around || around->is(Op::scf_while))
        break; // its second region feeds the first one's arguments
      if (op.operands.size() != around->results.size()) {
        add(op,
            fmt::format("{} values for {} results", op.operands.size(), around->results.size()));
        break;
      }
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        same(op, op.operands[i]->type, around->result(i).type, "a value and its result differ");
      break;
    }
    case Op::tt_call:
      call(op);
      break;
    case Op::tt_dot:
      if (op.segment(2).size() == 1)
        same(op, op.segment(2)[0]->type, op.result().type, "accumulator and result differ");
      break;
    default:
      typing(op);
      break;
    }
    for (const Successor& next : op.successors) {
      if (next.count != next.block->arguments.size()) {
        add(op, fmt::format("{} values for {} arguments of ^{}", next.count,
                            next.block->arguments.size(), next.block->label));
        continue;
      }
      for (std::uint32_t i = 0; i < next.count; ++i)
        same(op, op.operands[next.first + i]->type, next.block->arguments[i].type,
             "a value and the block's argument differ");
    }
  }

  void typing(const Operation& op) {
    const auto typing = op.info().typing;
    if (typing == Typing::same)
      for (const Value* value : op.operands)
        same(op, value->type, op.result().type, "operand and result differ");
    if ((typing == Typing::compare || typing == Typing::powi) && op.operands.size() == 2 &&
        typing == Typing::compare)
      same(op, op.operands[0]->type, op.operands[1]->type, "the operands differ");
    if (typing == Typing::select) {
      same(op, op.operands[1]->type, op.result().type, "an alternative and the result differ");
      same(op, op.operands[2]->type, op.result().type, "an alternative and the result differ");
    }
  }

  void call(const Operation& op) {
    auto callee = op.text_of("callee");
    if (callee.starts_with('@')) callee.remove_prefix(1);
    const Operation* function = callee.empty() ? nullptr : module.function(callee);
    if (!function) return add(op, fmt::format("there is no function @{}", callee));
    if (function->regions[0]->blocks.empty()) return;
    const auto arguments = function->regions[0]->front().arguments;
    if (arguments.size() != op.operands.size())
      return add(op,
                 fmt::format("{} operands for {} arguments", op.operands.size(), arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i)
      same(op, op.operands[i]->type, arguments[i].type,
           "an operand and the function's argument differ");
  }

  void operation(const Operation& op) {
    if (!seen.insert(&op).second) return add(op, "it stands in two places");
    bool whole = true;
    for (const Value* value : op.operands) {
      if (!value) {
        add(op, "an operand is missing");
        whole = false;
      } else if (!dominance.dominates(*value, op)) {
        add(op, fmt::format("%{} is not defined on every path that leads here", value->name));
      }
    }
    for (const Value& value : op.results)
      if (value.op != &op)
        add(op, fmt::format("%{} says that another operation defines it", value.name));
    if (whole && op.form != Operation::Form::opaque) check_types(op);
    for (const Region* region : op.regions) {
      for (const Block* block : region->blocks) {
        if (block->operations.empty() && !op.is(Op::module) && !op.is(Op::scf_if))
          add(op, "a block without a terminator");
        for (const Operation* inner : block->operations) {
          if (inner->block != block) add(*inner, "it says that it stands in another block");
          const bool last = inner == block->operations.back();
          if (inner->info().effect == Effect::terminator && !last)
            add(*inner, "operations follow in its block");
          operation(*inner);
        }
        const Operation* last = block->operations.empty() ? nullptr : block->operations.back();
        const bool needs = op.is(Op::tt_func) || (op.is(Op::scf_for) && !op.results.empty()) ||
                           (op.is(Op::scf_if) && !op.results.empty()) || op.is(Op::scf_while) ||
                           op.is(Op::tt_reduce) || op.is(Op::tt_scan);
        if (last && needs && last->code != Op::unknown &&
            last->info().effect != Effect::terminator && last->successors.empty())
          add(*last, fmt::format("it ends a block of {}, and is no terminator", op.name));
      }
    }
  }
};

} // namespace

std::vector<Finding> verify(const Module& module) {
  Verifier verifier{module, Dominance(module), {}, {}};
  verifier.operation(module.top());
  std::ranges::stable_sort(verifier.findings, {}, &Finding::line);
  return std::move(verifier.findings);
}

} // namespace hebe::ttgir
