#include "ttgir/view.hpp"

#include <array>

namespace hebe::ttgir {
namespace {

Value* optional_operand(const Operation& op, std::size_t segment) {
  const auto found = op.segment(segment);
  return found.empty() ? nullptr : found[0];
}

// The generic form has numbers where Triton's own syntax has words (enumerations of
// TritonAttrDefs).
constexpr std::array<std::string_view, 8> kCache = {"", "none", "ca", "cg", "wb", "cs", "wt", "cv"};
constexpr std::array<std::string_view, 4> kEviction = {"", "evict_normal", "evict_first",
                                                       "evict_last"};
constexpr std::array<std::string_view, 5> kPrecision = {"tf32", "tf32x3", "ieee", "bf16x3",
                                                        "bf16x6"};

template <std::size_t n>
std::string_view word_of(std::string_view text, const std::array<std::string_view, n>& words,
                         std::string_view absent) {
  if (text.empty()) return absent;
  const auto number = integer(text);
  if (!number) return text;
  return *number >= 0 && *number < static_cast<std::int64_t>(n)
             ? words[static_cast<std::size_t>(*number)]
             : text;
}

bool understood(const Operation& op, Op code) {
  return op.is(code) && op.form != Operation::Form::opaque;
}

} // namespace

std::optional<Load> Load::of(Operation& op) {
  if (!understood(op, Op::tt_load) || op.segment(0).empty()) return std::nullopt;
  return Load{op};
}
Value* Load::mask() const { return optional_operand(op, 1); }
Value* Load::other() const { return optional_operand(op, 2); }
std::string_view Load::cache() const { return word_of(op.text_of("cache"), kCache, "none"); }
std::string_view Load::eviction() const {
  return word_of(op.text_of("evict"), kEviction, "evict_normal");
}
bool Load::is_volatile() const { return boolean(op.text_of("isVolatile")).value_or(false); }

std::optional<Store> Store::of(Operation& op) {
  if (!understood(op, Op::tt_store) || op.segment(1).empty()) return std::nullopt;
  return Store{op};
}
Value* Store::mask() const { return optional_operand(op, 2); }
std::string_view Store::cache() const { return word_of(op.text_of("cache"), kCache, "none"); }
std::string_view Store::eviction() const {
  return word_of(op.text_of("evict"), kEviction, "evict_normal");
}

std::optional<For> For::of(Operation& op) {
  if (!understood(op, Op::scf_for) || op.operands.size() < 3 || op.regions.size() != 1 ||
      op.regions[0]->blocks.size() != 1)
    return std::nullopt;
  return For{op};
}

Operation* For::yield() const {
  auto& operations = body().front().operations;
  return operations.empty() || !operations.back()->is(Op::scf_yield) ? nullptr : operations.back();
}

std::optional<std::int64_t> For::trip_count() const {
  const auto first = constant_integer(lower()), last = constant_integer(upper()),
             by = constant_integer(step());
  if (!first || !last || !by || *by <= 0) return std::nullopt;
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(*last, *first, &distance)) return std::nullopt;
  return distance <= 0 ? 0 : (distance - 1) / *by + 1;
}

std::optional<Reduce> Reduce::of(Operation& op) {
  if (!op.is(Op::tt_reduce) || op.regions.size() != 1 || op.regions[0]->blocks.size() != 1)
    return std::nullopt;
  return Reduce{op};
}

std::optional<Dot> Dot::of(Operation& op) {
  if (!understood(op, Op::tt_dot) || op.segment(2).empty()) return std::nullopt;
  return Dot{op};
}
std::string_view Dot::input_precision() const {
  return word_of(op.text_of("inputPrecision"), kPrecision, "ieee");
}

std::optional<Function> Function::of(Operation& op) {
  if (!understood(op, Op::tt_func) || op.regions.empty() || op.regions[0]->blocks.empty())
    return std::nullopt;
  return Function{op};
}

std::optional<std::int64_t> constant_integer(const Value& value) {
  const Value* at = &value;
  while (at->op &&
         (at->op->is(Op::tt_splat) || at->op->is(Op::tt_broadcast) ||
          at->op->is(Op::ttg_convert_layout) || at->op->is(Op::tt_expand_dims)) &&
         at->op->operands.size() == 1)
    at = at->op->operands[0];
  if (!at->op || !at->op->is(Op::arith_constant)) return std::nullopt;
  const auto text = at->op->text_of("value");
  const auto inside = dense(text);
  return integer(inside ? *inside : text);
}

std::optional<std::int64_t> argument_attribute(const Value& argument, std::string_view name) {
  for (const Attribute& attribute : argument.attributes)
    if (attribute.name == name) return integer(attribute.text);
  return std::nullopt;
}

} // namespace hebe::ttgir
