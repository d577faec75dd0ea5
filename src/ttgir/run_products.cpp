// tt.dot and its forms over shared and tensor memory. In: operands as tensors or memdescs; out:
// instructions that add their product to an accumulator. Invariant: every form of one product gives
// the same bits: k ascending, starting from the accumulator.
#include "ttgir/matrix_product.hpp"
#include "ttgir/memory_view.hpp"
#include "ttgir/run_lanewise.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

enum class Precision : std::uint8_t { tf32, tf32x3, ieee, bf16x3, bf16x6 };

std::optional<Precision> precision_of(const Operation& op) {
  const auto text = op.text_of("inputPrecision");
  constexpr std::string_view words[] = {"tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"};
  if (text.empty()) return Precision::ieee; // what tt.dot leaves out
  for (std::size_t i = 0; i < std::size(words); ++i)
    if (text == words[i]) return static_cast<Precision>(i);
  const auto number = integer(text);
  if (number && *number >= 0 && *number <= 4) return static_cast<Precision>(*number);
  return std::nullopt;
}

/// A tensor, or what a memdesc shows.
struct Factor {
  Slot slot = 0;
  bool memory = false;
  MemoryFormat format{};
  std::vector<std::int64_t> shape;

  [[nodiscard]] Lane lane() const { return *lane_of(format.scalar); }
  /// Dense lanes.
  [[nodiscard]] Lanes read(Program& program) const {
    const Lanes& value = program.at(slot);
    if (memory) return read_view(program, value, format);
    if (!value.uniform()) return value;
    std::size_t count = 1;
    for (const auto d : shape) count *= static_cast<std::size_t>(d);
    Lanes out = program.dense(count * format.lane_size);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(out.bytes() + i * format.lane_size, value.bytes(), format.lane_size);
    return out;
  }
};

std::optional<Factor> factor_of(Compiler& compiler, const Value& value) {
  Factor factor;
  factor.slot = compiler.slot(value);
  if (const auto type = memdesc_type(value)) {
    factor.memory = true;
    factor.format = type->format;
    factor.shape = type->shape;
    return factor;
  }
  if (!value.type || !value.type->is(Type::Kind::tensor)) return std::nullopt;
  const auto format = memory_format(value.type->leaf());
  if (!format) return std::nullopt;
  factor.format = *format;
  factor.shape.assign(value.type->shape.begin(), value.type->shape.end());
  return factor;
}

struct Split { // a = high + middle + low, each rounded to a narrower format
  Lanes high, middle, low;
};

Lanes rounded(Program& program, const Lanes& in, std::size_t count, RoundLanes round) {
  Lanes out = program.dense(count * sizeof(float));
  std::memcpy(out.bytes(), in.bytes(), count * sizeof(float));
  round(out.data<float>(), count);
  return out;
}
Lanes difference(Program& program, const Lanes& a, const Lanes& b, std::size_t count) {
  Lanes out = program.dense(count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i)
    out.data<float>()[i] = a.data<float>()[i] - b.data<float>()[i];
  return out;
}

class Product : public Instruction {
public:
  /// `c` (dense, of the accumulator's lane, ours alone) plus the product.
  void add(Program& program, Lanes& c, Lanes left, Lanes right) const {
    const ProductShape s = shape;
    const std::size_t many_a = batch * s.m * s.k, many_b = batch * s.k * s.n;
    const auto each = [&]<class T>(const Lanes& x, const Lanes& y) {
      for (std::size_t i = 0; i < batch; ++i)
        add_product(c.data<T>() + i * s.m * s.n, x.data<T>() + i * s.m * s.k,
                    y.data<T>() + i * s.k * s.n, s);
    };
    if (sum == Lane::f64) return each.template operator()<double>(left, right);
    if (sum == Lane::i32) {
      return each.template operator()<std::int32_t>(widened(program, left, many_a, a.lane()),
                                                    widened(program, right, many_b, b.lane()));
    }
    const auto f32 = [&](const Lanes& x, const Lanes& y) { each.template operator()<float>(x, y); };
    if (a.format.scalar != Scalar::f32) return f32(left, right);
    const auto tf32 = rounding_to(Scalar::tf32, Rounding::toward_zero);
    const auto cut = [&](const Lanes& x, const Lanes& y) {
      f32(rounded(program, x, many_a, tf32), rounded(program, y, many_b, tf32));
    };
    switch (precision) {
    case Precision::ieee:
      return f32(left, right);
    case Precision::tf32:
      return cut(left, right);
    case Precision::tf32x3: {
      const auto nearest = rounding_to(Scalar::tf32, Rounding::nearest_away);
      const Lanes big_a = rounded(program, left, many_a, nearest),
                  big_b = rounded(program, right, many_b, nearest);
      cut(difference(program, left, big_a, many_a), big_b);
      cut(big_a, difference(program, right, big_b, many_b));
      return cut(big_a, big_b);
    }
    case Precision::bf16x3:
    case Precision::bf16x6: {
      const Split x = split(program, left, many_a), y = split(program, right, many_b);
      if (precision == Precision::bf16x6) {
        f32(x.middle, y.middle);
        f32(x.low, y.high);
        f32(x.high, y.low);
      }
      f32(x.middle, y.high);
      f32(x.high, y.middle);
      return f32(x.high, y.high);
    }
    }
  }

  void finish(Lanes& c) const {
    if (round) round(c.data<float>(), batch * shape.m * shape.n);
  }

  Factor a, b;
  Lane sum = Lane::f32;
  RoundLanes round = nullptr; ///< of the accumulator's format, once at the end
  Precision precision = Precision::ieee;
  ProductShape shape{};
  std::size_t batch = 1;

private:
  static Split split(Program& program, const Lanes& in, std::size_t count) {
    const auto bf16 = rounding_to(Scalar::bf16);
    Split s;
    s.high = rounded(program, in, count, bf16);
    const Lanes rest = difference(program, in, s.high, count);
    s.middle = rounded(program, rest, count, bf16);
    s.low = rounded(program, difference(program, rest, s.middle, count), count, bf16);
    return s;
  }
  static Lanes widened(Program& program, const Lanes& in, std::size_t count, Lane lane) {
    if (lane == Lane::i32) return in;
    Lanes out = program.dense(count * sizeof(std::int32_t));
    for (std::size_t i = 0; i < count; ++i)
      out.data<std::int32_t>()[i] =
          lane == Lane::i8 ? in.data<std::int8_t>()[i] : in.data<std::int16_t>()[i];
    return out;
  }
};

/// Dense lanes that only this instruction sees, with the accumulator's elements.
Lanes own_accumulator(Program& program, const Instruction& instruction, Lanes& in,
                      std::size_t operand, std::size_t count, std::size_t size) {
  if ((instruction.dying >> operand & 1) && in.sole()) return in;
  Lanes out = program.dense(count * size);
  if (in.uniform())
    for (std::size_t i = 0; i < count; ++i) std::memcpy(out.bytes() + i * size, in.bytes(), size);
  else
    std::memcpy(out.bytes(), in.bytes(), count * size);
  return out;
}

/// tt.dot and ttng.warp_group_dot.
class Dot final : public Product {
public:
  Status run(Program& program) const override {
    const std::size_t count = batch * shape.m * shape.n;
    const bool from_zero = conditional && program.at(use_c).at<std::uint8_t>(0) == 0;
    Lanes zero;
    Lanes c = from_zero ? own_accumulator(program, *this, zero, 8, count, size_of(sum))
                        : own_accumulator(program, *this, program.at(accumulator), 2, count,
                                          size_of(sum));
    add(program, c, a.read(program), b.read(program));
    finish(c);
    program.set(to, std::move(c));
    return {};
  }
  Slot accumulator = 0, use_c = 0, to = 0;
  bool conditional = false;
};

/// Shapes and types of a product; false after a refusal.
bool describe(Compiler& compiler, const Operation& op, const Value& a, const Value& b,
              const Value& c, Product& made) {
  const auto left = factor_of(compiler, a), right = factor_of(compiler, b),
             into = factor_of(compiler, c);
  if (!left || !right || !into)
    return compiler.unsupported(op, "an operand is not a matrix of numbers") != nullptr;
  const std::size_t rank = into->shape.size();
  if (rank < 2 || left->shape.size() != rank || right->shape.size() != rank)
    return compiler.unsupported(op, "its operands differ in rank") != nullptr;
  const auto at = [](const Factor& f, std::size_t from_end) {
    return static_cast<std::size_t>(f.shape[f.shape.size() - from_end]);
  };
  made.a = *left;
  made.b = *right;
  made.shape = {at(*into, 2), at(*into, 1), at(*left, 1)};
  for (std::size_t d = 0; d + 2 < rank; ++d) made.batch *= static_cast<std::size_t>(into->shape[d]);
  if (at(*left, 2) != made.shape.m || at(*right, 2) != made.shape.k ||
      at(*right, 1) != made.shape.n)
    return compiler.unsupported(op, "the shapes of its operands do not fit") != nullptr;
  made.sum = into->lane();
  if (made.sum == Lane::f32) made.round = rounding_to(into->format.scalar);
  const auto precision = precision_of(op);
  if (!precision)
    return compiler.unsupported(op, fmt::format("its precision '{}' is not known",
                                                op.text_of("inputPrecision"))) != nullptr;
  made.precision = *precision;
  const bool floats =
      left->lane() == Lane::f32 && right->lane() == Lane::f32 && made.sum == Lane::f32;
  const bool doubles =
      left->lane() == Lane::f64 && right->lane() == Lane::f64 && made.sum == Lane::f64;
  const auto whole = [](Lane lane) {
    return lane == Lane::i8 || lane == Lane::i16 || lane == Lane::i32;
  };
  const bool integers = whole(left->lane()) && whole(right->lane()) && made.sum == Lane::i32;
  if (!floats && !doubles && !integers)
    return compiler.unsupported(
               op, fmt::format("no products of {} and {} into {}", spelling(left->format.scalar),
                               spelling(right->format.scalar), spelling(into->format.scalar))) !=
           nullptr;
  made.work = WorkKind::product;
  made.work_type =
      left->format.scalar == right->format.scalar ? spelling(left->format.scalar) : "mixed";
  made.work_elements = made.batch * made.shape.m * made.shape.n * made.shape.k;
  return true;
}

InstructionPtr make_dot(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Dot>();
  if (!describe(compiler, op, *op.operands[0], *op.operands[1], *op.operands[2], *made))
    return nullptr;
  made->accumulator = compiler.slot(*op.operands[2]);
  made->to = compiler.slot(op.result());
  if (op.operands.size() > 3) {
    made->conditional = true;
    made->use_c = compiler.slot(*op.operands[3]);
  }
  return made;
}

/// ttng.tc_gen5_mma: the accumulator is tensor memory, which is written in place.
class TensorMemoryDot final : public Product {
public:
  Status run(Program& program) const override {
    program.set(token, Lanes());
    if (predicated && program.at(predicate).at<std::uint8_t>(0) == 0) return {};
    const std::size_t count = batch * shape.m * shape.n;
    Lanes c;
    if (program.at(use_d).at<std::uint8_t>(0) == 0) {
      c = program.dense(count * size_of(sum));
      std::memset(c.bytes(), 0, count * size_of(sum));
    } else {
      c = read_view(program, program.at(accumulator), into);
    }
    add(program, c, a.read(program), b.read(program));
    finish(c);
    write_view(program, program.at(accumulator), into, c);
    return {};
  }
  MemoryFormat into{};
  Slot accumulator = 0, use_d = 0, predicate = 0, token = 0;
  bool predicated = true;
};

InstructionPtr make_tensor_memory_dot(Compiler& compiler, const Operation& op) {
  const auto segment = [&](std::size_t i) { return op.segment(i); };
  if (segment(2).empty() || segment(4).empty() || segment(5).empty())
    return compiler.unsupported(op, "it is written in another way");
  auto made = std::make_unique<TensorMemoryDot>();
  if (!describe(compiler, op, *segment(0)[0], *segment(1)[0], *segment(2)[0], *made))
    return nullptr;
  made->into = memdesc_type(*segment(2)[0])->format;
  made->accumulator = compiler.slot(*segment(2)[0]);
  made->use_d = compiler.slot(*segment(4)[0]);
  made->predicate = compiler.slot(*segment(5)[0]);
  if (!op.find("inputPrecision"))
    made->precision = Precision::tf32; // the only one the unit has for f32
  if (!op.results.empty())
    made->token = compiler.slot(op.result());
  else
    made->token = compiler.slot_for_nothing();
  return made;
}

} // namespace

void add_products(Makers& makers) {
  makers[static_cast<std::size_t>(Op::tt_dot)] = &make_dot;
  makers[static_cast<std::size_t>(Op::ttng_warp_group_dot)] = &make_dot;
  makers[static_cast<std::size_t>(Op::ttng_tc_gen5_mma)] = &make_tensor_memory_dot;
}

} // namespace hebe::ttgir
