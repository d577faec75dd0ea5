// Block-scaled products and packed 4-bit floats. In: tt.dot_scaled, ttg.fp4_to_fp; out:
// instructions. Invariant: an element times its scale is taken in f32, exact for scales that are
// powers of two; the products are added as in tt.dot.
#include "ttgir/matrix_product.hpp"
#include "ttgir/run_lanewise.hpp"
#include "ttgir/run_memory.hpp"
#include "ttgir/strided_copy.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

float four_bits(std::uint8_t bits) { // e2m1
  constexpr float values[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  return (bits & 8) ? -values[bits & 7] : values[bits & 7];
}

/// One factor: elements of its own format, and a scale for every group along k.
struct ScaledFactor {
  Operand elements{}, scales{};
  bool scaled = false, packed = false, packed_along_k = true;
  Decode decode = nullptr; ///< of elements that are carried as i8; null: the lanes are the values

  [[nodiscard]] bool take(Compiler& compiler, const Operation& op, const Value& value,
                          std::span<Value* const> scale, std::string_view kind,
                          std::string_view k_pack) {
    const auto given = compiler.operand(value, op);
    if (!given) return false;
    elements = *given;
    packed = kind == "e2m1";
    packed_along_k = boolean(op.text_of(k_pack)).value_or(true);
    const bool bytes = elements.lane == Lane::i8;
    if (bytes && kind == "e4m3") decode = decoder(Scalar::f8e4m3);
    if (bytes && kind == "e5m2") decode = decoder(Scalar::f8e5m2);
    if ((bytes && !decode && !packed) || (!bytes && elements.lane != Lane::f32) ||
        elements.shape.size() != 2) {
      compiler.unsupported(op, fmt::format("no elements '{}' in {}", kind, value.type->text));
      return false;
    }
    if (scale.empty()) return true;
    const auto factor = compiler.operand(*scale[0], op);
    if (!factor) return false;
    scales = *factor;
    scaled = true;
    if (scales.shape.size() != 2 || (scales.lane != Lane::i8 && scales.lane != Lane::f32)) {
      compiler.unsupported(op, fmt::format("no scales of {}", scale[0]->type->text));
      return false;
    }
    return true;
  }

  /// Value of the element at (outer, k); `k_first`: the tensor is k × outer.
  [[nodiscard]] float element(const Lanes& lanes, std::size_t outer, std::size_t k,
                              bool k_first) const {
    bool high = false;
    if (packed) {
      std::size_t& half = packed_along_k ? k : outer;
      high = half % 2 != 0;
      half /= 2;
    }
    const auto width = static_cast<std::size_t>(elements.shape[1]);
    const std::size_t at = k_first ? k * width + outer : outer * width + k;
    if (packed) {
      const auto byte = lanes.at<std::uint8_t>(at);
      return four_bits(high ? byte >> 4 : byte & 0xf);
    }
    if (!decode) return lanes.at<float>(at);
    float value = 0;
    decode(lanes.bytes() + (lanes.uniform() ? 0 : at), &value, 1);
    return value;
  }
  [[nodiscard]] float scale(const Lanes& lanes, std::size_t outer, std::size_t group) const {
    const std::size_t at = outer * static_cast<std::size_t>(scales.shape[1]) + group;
    if (scales.lane == Lane::f32) return lanes.at<float>(at);
    float value = 0;
    const auto byte = static_cast<std::byte>(lanes.at<std::uint8_t>(at));
    decoder(Scalar::f8e8m0)(&byte, &value, 1);
    return value;
  }
  /// All values, scaled, in the tensor's own order.
  [[nodiscard]] Lanes values(Program& program, std::size_t outer, std::size_t k,
                             bool k_first) const {
    const Lanes in = program.at(elements.slot);
    const Lanes factors = scaled ? program.at(scales.slot) : Lanes();
    const std::size_t groups = scaled ? static_cast<std::size_t>(scales.shape[1]) : 1,
                      size = k / groups;
    Lanes out = program.dense(outer * k * sizeof(float));
    auto* to = out.data<float>();
    for (std::size_t o = 0; o < outer; ++o)
      for (std::size_t g = 0; g < groups; ++g) {
        const float by = scaled ? scale(factors, o, g) : 1.0F;
        for (std::size_t i = g * size; i < (g + 1) * size; ++i)
          to[k_first ? i * outer + o : o * k + i] = element(in, o, i, k_first) * by;
      }
    return out;
  }
};

class ScaledDot final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes left = a.values(program, shape.m, shape.k, false),
                right = b.values(program, shape.n, shape.k, true);
    const Lanes& in = program.at(c.slot);
    Lanes out = program.dense(c.elements * sizeof(float));
    for (std::size_t i = 0; i < c.elements; ++i) out.data<float>()[i] = in.at<float>(i);
    add_product(out.data<float>(), left.data<float>(), right.data<float>(), shape);
    if (round) round(out.data<float>(), c.elements);
    program.set(to, std::move(out));
    return {};
  }
  ScaledFactor a, b;
  Operand c{};
  RoundLanes round = nullptr;
  ProductShape shape{};
  Slot to = 0;
};

InstructionPtr make_scaled_dot(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<ScaledDot>();
  if (op.segment(0).empty() || op.segment(2).empty() || op.segment(4).empty())
    return compiler.unsupported(op, "it is written in another way");
  if (!made->a.take(compiler, op, *op.segment(0)[0], op.segment(1), op.text_of("a_elem_type"),
                    "lhs_k_pack") ||
      !made->b.take(compiler, op, *op.segment(2)[0], op.segment(3), op.text_of("b_elem_type"),
                    "rhs_k_pack"))
    return nullptr;
  const auto c = compiler.operand(*op.segment(4)[0], op);
  if (!c) return nullptr;
  if (c->lane != Lane::f32 || c->shape.size() != 2)
    return compiler.unsupported(op, "its accumulator is not a matrix of floats");
  made->c = *c;
  made->round = rounding_to(c->scalar);
  const auto m = static_cast<std::size_t>(c->shape[0]), n = static_cast<std::size_t>(c->shape[1]);
  const auto k = static_cast<std::size_t>(made->a.elements.shape[1]) *
                 (made->a.packed && made->a.packed_along_k ? 2 : 1);
  const auto k_of_b = static_cast<std::size_t>(made->b.elements.shape[0]) *
                      (made->b.packed && made->b.packed_along_k ? 2 : 1);
  const auto groups = [&](const ScaledFactor& f, std::size_t outer) {
    return !f.scaled || (static_cast<std::size_t>(f.scales.shape[0]) == outer &&
                         k % static_cast<std::size_t>(f.scales.shape[1]) == 0);
  };
  if (k != k_of_b || made->a.elements.elements * (made->a.packed ? 2 : 1) != m * k ||
      made->b.elements.elements * (made->b.packed ? 2 : 1) != n * k || !groups(made->a, m) ||
      !groups(made->b, n))
    return compiler.unsupported(op, "the shapes of its operands do not fit");
  made->shape = {m, n, k};
  made->to = compiler.slot(op.result());
  made->work = WorkKind::product;
  made->work_type =
      op.text_of("a_elem_type") == op.text_of("b_elem_type") ? op.text_of("a_elem_type") : "mixed";
  made->work_elements = m * n * k;
  return made;
}

/// Two elements of every byte, the low half first, along an axis.
class Unpack final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& in = program.at(from.slot);
    Lanes out = program.dense(to.elements * sizeof(float));
    for (std::size_t i = 0; i < from.elements; ++i) {
      const auto byte = in.at<std::uint8_t>(i);
      const std::size_t low = i / inner * 2 * inner + i % inner;
      out.data<float>()[low] = four_bits(byte & 0xf);
      out.data<float>()[low + inner] = four_bits(byte >> 4);
    }
    program.set(to.slot, std::move(out));
    return {};
  }
  Operand from{}, to{};
  std::size_t inner = 1; ///< elements behind the axis
};

InstructionPtr make_unpack(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  const auto axis = integer(op.text_of("axis"));
  if (!axis || *axis < 0 || static_cast<std::size_t>(*axis) >= from->shape.size() ||
      from->lane != Lane::i8 || to->lane != Lane::f32 || to->elements != from->elements * 2)
    return compiler.unsupported(op, "its axis or its types are not as they should be");
  auto made = std::make_unique<Unpack>();
  made->from = *from;
  made->to = *to;
  for (std::size_t d = static_cast<std::size_t>(*axis) + 1; d < from->shape.size(); ++d)
    made->inner *= static_cast<std::size_t>(from->shape[d]);
  made->work = WorkKind::convert;
  made->work_type = work_type_of(*to);
  made->work_elements = to->elements;
  return made;
}

} // namespace

void add_scaled_products(Makers& makers) {
  makers[static_cast<std::size_t>(Op::tt_dot_scaled)] = &make_scaled_dot;
  makers[static_cast<std::size_t>(Op::ttg_fp4_to_fp)] = &make_unpack;
}

} // namespace hebe::ttgir
