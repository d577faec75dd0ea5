#include "rewrite/fold.hpp"

#include "rewrite/products.hpp"
#include "ttgir/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hebe::rewrite {
namespace {

using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

/// Of an integer type, scalar or tensor; 0 for another one and for what 64 bits do not hold.
unsigned width(const Value& value) {
  if (!value.type) return 0;
  const auto& leaf = value.type->leaf();
  if (!leaf.is(ttgir::Type::Kind::scalar) || !ttgir::is_integer(leaf.scalar)) return 0;
  const unsigned bits = leaf.scalar == ttgir::Scalar::index ? 64 : ttgir::bits_of(leaf.scalar);
  return bits <= 64 ? bits : 0;
}

std::int64_t sign_extended(std::int64_t value, unsigned bits) {
  const unsigned shift = 64 - bits;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << shift) >> shift;
}

std::uint64_t zero_extended(std::int64_t value, unsigned bits) {
  const unsigned shift = 64 - bits;
  return static_cast<std::uint64_t>(value) << shift >> shift;
}

/// What the value is everywhere, sign-extended from its width: true is -1.
std::optional<std::int64_t> fixed(const Value& value) {
  const unsigned bits = width(value);
  const auto found = bits ? ttgir::constant_integer(value) : std::nullopt;
  return found ? std::optional(sign_extended(*found, bits)) : std::nullopt;
}

constexpr std::array<std::string_view, 10> kPredicates = {"eq",  "ne",  "slt", "sle", "sgt",
                                                          "sge", "ult", "ule", "ugt", "uge"};

std::optional<bool> compared(const Operation& op, std::int64_t a, std::int64_t b, unsigned bits) {
  auto predicate = op.text_of("predicate");
  if (const auto number = ttgir::integer(predicate); number && *number >= 0 && *number < 10)
    predicate = kPredicates[static_cast<std::size_t>(*number)];
  const auto by = [&](auto x, auto y) -> std::optional<bool> {
    const auto kind = predicate.substr(1);
    if (kind == "lt") return x < y;
    if (kind == "le") return x <= y;
    if (kind == "gt") return x > y;
    if (kind == "ge") return x >= y;
    return std::nullopt;
  };
  if (predicate == "eq") return a == b;
  if (predicate == "ne") return a != b;
  if (predicate.starts_with('s')) return by(a, b);
  if (predicate.starts_with('u')) return by(zero_extended(a, bits), zero_extended(b, bits));
  return std::nullopt;
}

bool splat_constant(const Operation& op) {
  if (!op.is(Op::arith_constant)) return false;
  const auto inside = ttgir::dense(op.text_of("value"));
  return inside && !inside->empty() && inside->front() != '[' && inside->front() != '"';
}

struct Folder {
  ttgir::Module& module;
  Operation& op;
  std::span<const std::uint32_t> uses;

  [[nodiscard]] Value& operand(std::size_t i) const { return *op.operands[i]; }

  Value& make(Op code, std::vector<Value*> operands, std::vector<ttgir::Attribute> attributes,
              ttgir::TypeRef type) const {
    return module
        .create({.code = code,
                 .operands = std::move(operands),
                 .results = {type},
                 .attributes = std::move(attributes),
                 .segments = {},
                 .name = std::string(op.result().name),
                 .location = op.location},
                *op.block, &op)
        .result();
  }
  Value& make_constant(std::string_view text, ttgir::TypeRef type) const {
    return make(Op::arith_constant, {}, {{"value", text, ttgir::Attribute::Place::syntax}}, type);
  }
  /// A constant of the result's type.
  std::optional<Folded> number(std::int64_t value) const {
    const auto& type = *op.result().type;
    const unsigned bits = width(op.result());
    if (bits == 0 || (type.shaped() && !type.is(ttgir::Type::Kind::tensor))) return std::nullopt;
    auto text = bits == 1 ? std::string((value & 1) ? "true" : "false")
                          : fmt::format("{}", sign_extended(value, bits));
    if (type.shaped()) text = "dense<" + text + ">";
    return Folded{&make_constant(text, &type), "constants"};
  }
  /// The same, where the exact value is in the type's range.
  template <class F>
  std::optional<Folded> unwrapped(std::int64_t a, std::int64_t b, F overflows) const {
    std::int64_t value = 0;
    if (overflows(a, b, value) || sign_extended(value, width(op.result())) != value)
      return std::nullopt;
    return number(value);
  }

  std::optional<Folded> arithmetic() const {
    const unsigned bits = width(op.result());
    if (bits == 0) return std::nullopt;
    const auto a = fixed(operand(0)), b = fixed(operand(1));
    const auto side = [&](std::size_t i, const char* why) { return Folded{&operand(i), why}; };
    switch (op.code) {
    case Op::arith_addi:
      if (b == 0) return side(0, "x + 0");
      if (a == 0) return side(1, "0 + x");
      if (!a || !b || bits == 1) return std::nullopt;
      return unwrapped(*a, *b,
                       [](auto x, auto y, auto& z) { return __builtin_add_overflow(x, y, &z); });
    case Op::arith_subi:
      if (b == 0) return side(0, "x - 0");
      if (!a || !b || bits == 1) return std::nullopt;
      return unwrapped(*a, *b,
                       [](auto x, auto y, auto& z) { return __builtin_sub_overflow(x, y, &z); });
    case Op::arith_muli:
      if (bits == 1) return std::nullopt;
      if (b == 1) return side(0, "x * 1");
      if (a == 1) return side(1, "1 * x");
      if (b == 0) return side(1, "x * 0");
      if (a == 0) return side(0, "0 * x");
      if (!a || !b) return std::nullopt;
      return unwrapped(*a, *b,
                       [](auto x, auto y, auto& z) { return __builtin_mul_overflow(x, y, &z); });
    case Op::arith_andi:
      if (a == -1) return side(1, "true and x");
      if (b == -1) return side(0, "x and true");
      if (a == 0 || b == 0) return side(a == 0 ? 0 : 1, "false and x");
      return std::nullopt;
    case Op::arith_ori:
      if (a == 0) return side(1, "false or x");
      if (b == 0) return side(0, "x or false");
      if (a == -1 || b == -1) return side(a == -1 ? 0 : 1, "true or x");
      return std::nullopt;
    default:
      return std::nullopt;
    }
  }

  std::optional<Folded> comparison() const {
    const auto a = fixed(operand(0)), b = fixed(operand(1));
    if (!a || !b) return std::nullopt;
    const auto holds = compared(op, *a, *b, width(operand(0)));
    return holds ? number(*holds ? 1 : 0) : std::nullopt;
  }

  std::optional<Folded> selection() const {
    const auto side = [&](std::size_t i, const char* why) {
      return Folded{&operand(i), why, may_be_product(operand(i))};
    };
    if (const auto condition = fixed(operand(0)))
      return *condition ? side(1, "its condition is true") : side(2, "its condition is false");
    if (&operand(1) == &operand(2)) return side(1, "both sides are one value");
    return std::nullopt;
  }

  std::optional<Folded> cast() const {
    const auto a = fixed(operand(0));
    if (!a) return std::nullopt;
    return number(op.is(Op::arith_extui)
                      ? static_cast<std::int64_t>(zero_extended(*a, width(operand(0))))
                      : *a);
  }

  std::optional<Folded> pointer() const {
    const auto offset = fixed(operand(1));
    if (!offset) return std::nullopt;
    if (*offset == 0) return Folded{&operand(0), "an offset of 0"};
    const Operation* inner = operand(0).op;
    if (!inner || !inner->is(Op::tt_addptr) || inner->form == Operation::Form::opaque ||
        !inner->attributes.empty())
      return std::nullopt;
    const auto first = fixed(*inner->operands[1]);
    if (!first) return std::nullopt;
    const auto type = operand(1).type;
    if (inner->operands[1]->type != type)
      return Folded{nullptr, "the offsets of two steps have different types"};
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*first, *offset, &sum) ||
        sign_extended(sum, width(operand(1))) != sum)
      return Folded{nullptr, "the offsets of two steps may wrap when added"};
    const auto text = type->shaped() ? fmt::format("dense<{}>", sum) : fmt::format("{}", sum);
    auto& both = make_constant(text, type);
    return Folded{&make(Op::tt_addptr, {inner->operands[0], &both}, {}, op.result().type),
                  "two constant steps are one"};
  }

  std::optional<Folded> conversion() const {
    Value& from = operand(0);
    const auto to = op.result().type;
    if (from.type == to) return Folded{&from, "a layout to itself"};
    const Operation* inner = from.op;
    if (!inner || inner->form == Operation::Form::opaque) return std::nullopt;
    if (splat_constant(*inner) && inner->attributes.size() == 1)
      return Folded{&make_constant(inner->text_of("value"), to), "a constant in any layout"};
    if (!inner->attributes.empty()) return std::nullopt;
    if (inner->is(Op::tt_splat))
      return Folded{&make(Op::tt_splat, {inner->operands[0]}, {}, to), "a splat in any layout",
                    may_be_product(from)};
    if (!inner->is(Op::ttg_convert_layout)) return std::nullopt;
    Value& source = *inner->operands[0];
    if (source.type == to) return Folded{&source, "there and back", may_be_product(source)};
    // Triton keeps a step between a product's result and an operand of the next one on purpose.
    for (const auto* type : {source.type, to})
      if (!type || module.resolve(type->encoding).starts_with("#ttg.dot_op"))
        return Folded{nullptr, "a chain of layouts that ends at the operand of a product"};
    if (from.id >= uses.size() || uses[from.id] != 1)
      return Folded{nullptr, "the layout between is used elsewhere too"};
    return Folded{&make(Op::ttg_convert_layout, {&source}, {}, to), "two layouts are one",
                  may_be_product(source)};
  }
};

} // namespace

std::optional<Folded> fold(ttgir::Module& module, Operation& op,
                           std::span<const std::uint32_t> uses) {
  if (op.form == Operation::Form::opaque || op.results.size() != 1 || !op.result().type)
    return std::nullopt;
  // What was noted of a value (tt.divisibility) would be lost with it.
  if (std::ranges::any_of(op.attributes, [](const ttgir::Attribute& each) {
        return each.place == ttgir::Attribute::Place::dictionary;
      }))
    return std::nullopt;
  const Folder folder{module, op, uses};
  switch (op.code) {
  case Op::arith_addi:
  case Op::arith_subi:
  case Op::arith_muli:
  case Op::arith_andi:
  case Op::arith_ori:
    return folder.arithmetic();
  case Op::arith_cmpi:
    return folder.comparison();
  case Op::arith_select:
    return folder.selection();
  case Op::arith_extsi:
  case Op::arith_extui:
  case Op::arith_trunci:
    return folder.cast();
  case Op::tt_addptr:
    return folder.pointer();
  case Op::ttg_convert_layout:
    return folder.conversion();
  default:
    return std::nullopt;
  }
}

} // namespace hebe::rewrite
