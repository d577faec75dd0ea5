// arith.cmpi, arith.cmpf and arith.select. In: operations; out: instructions. Invariant: a
// condition that is the same for all elements costs nothing: one of the alternatives is taken as it
// is.
#include "ttgir/run_lanewise.hpp"

#include <type_traits>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

#define HEBE_COMPARE(name, expression)                                                             \
  struct name {                                                                                    \
    template <class T> HEBE_LANES std::uint8_t of(T a, T b) { return expression; }                 \
  };
HEBE_COMPARE(Equal, a == b)
HEBE_COMPARE(Different, a != b)
HEBE_COMPARE(Less, a < b)
HEBE_COMPARE(LessEqual, a <= b)
HEBE_COMPARE(Greater, a > b)
HEBE_COMPARE(GreaterEqual, a >= b)
HEBE_COMPARE(Never, (static_cast<void>(a), static_cast<void>(b), false))
HEBE_COMPARE(Always, (static_cast<void>(a), static_cast<void>(b), true))
HEBE_COMPARE(OrderedDifferent, (a < b) | (a > b))
HEBE_COMPARE(Ordered, (a == a) & (b == b))
HEBE_COMPARE(Unordered, (a != a) | (b != b))
HEBE_COMPARE(UnorderedEqual, !((a < b) | (a > b)))
HEBE_COMPARE(UnorderedLess, !(a >= b))
HEBE_COMPARE(UnorderedLessEqual, !(a > b))
HEBE_COMPARE(UnorderedGreater, !(a <= b))
HEBE_COMPARE(UnorderedGreaterEqual, !(a < b))
#undef HEBE_COMPARE

template <class S, class U> LaneKernel integer_comparison(std::string_view predicate) {
  using R = std::uint8_t;
  if (predicate == "eq") return fitting<Binary<U, R, Equal>>();
  if (predicate == "ne") return fitting<Binary<U, R, Different>>();
  if (predicate == "slt") return fitting<Binary<S, R, Less>>();
  if (predicate == "sle") return fitting<Binary<S, R, LessEqual>>();
  if (predicate == "sgt") return fitting<Binary<S, R, Greater>>();
  if (predicate == "sge") return fitting<Binary<S, R, GreaterEqual>>();
  if (predicate == "ult") return fitting<Binary<U, R, Less>>();
  if (predicate == "ule") return fitting<Binary<U, R, LessEqual>>();
  if (predicate == "ugt") return fitting<Binary<U, R, Greater>>();
  if (predicate == "uge") return fitting<Binary<U, R, GreaterEqual>>();
  return nullptr;
}
template <class T> LaneKernel integer_comparison(std::string_view predicate) {
  return integer_comparison<T, std::make_unsigned_t<T>>(predicate);
}
// Signed comparisons of i1 are those of its negative: turned round.
LaneKernel truth_comparison(std::string_view predicate) {
  using U = std::uint8_t;
  if (predicate == "slt") return fitting<Binary<U, U, Greater>>();
  if (predicate == "sle") return fitting<Binary<U, U, GreaterEqual>>();
  if (predicate == "sgt") return fitting<Binary<U, U, Less>>();
  if (predicate == "sge") return fitting<Binary<U, U, LessEqual>>();
  return integer_comparison<U, U>(predicate);
}

template <class T> LaneKernel float_comparison(std::string_view predicate) {
  using R = std::uint8_t;
  if (predicate == "false") return fitting<Binary<T, R, Never>>();
  if (predicate == "true") return fitting<Binary<T, R, Always>>();
  if (predicate == "oeq") return fitting<Binary<T, R, Equal>>();
  if (predicate == "ogt") return fitting<Binary<T, R, Greater>>();
  if (predicate == "oge") return fitting<Binary<T, R, GreaterEqual>>();
  if (predicate == "olt") return fitting<Binary<T, R, Less>>();
  if (predicate == "ole") return fitting<Binary<T, R, LessEqual>>();
  if (predicate == "one") return fitting<Binary<T, R, OrderedDifferent>>();
  if (predicate == "ord") return fitting<Binary<T, R, Ordered>>();
  if (predicate == "uno") return fitting<Binary<T, R, Unordered>>();
  if (predicate == "ueq") return fitting<Binary<T, R, UnorderedEqual>>();
  if (predicate == "ult") return fitting<Binary<T, R, UnorderedLess>>();
  if (predicate == "ule") return fitting<Binary<T, R, UnorderedLessEqual>>();
  if (predicate == "ugt") return fitting<Binary<T, R, UnorderedGreater>>();
  if (predicate == "uge") return fitting<Binary<T, R, UnorderedGreaterEqual>>();
  if (predicate == "une") return fitting<Binary<T, R, Different>>();
  return nullptr;
}

InstructionPtr make_comparison(Compiler& compiler, const Operation& op) {
  const auto first = compiler.operand(*op.operands[0], op);
  if (!first) return nullptr;
  const auto predicate = op.text_of("predicate");
  LaneKernel kernel = nullptr;
  switch (first->lane) {
  case Lane::b1:
    kernel = truth_comparison(predicate);
    break;
  case Lane::i8:
    kernel = integer_comparison<std::int8_t>(predicate);
    break;
  case Lane::i16:
    kernel = integer_comparison<std::int16_t>(predicate);
    break;
  case Lane::i32:
    kernel = integer_comparison<std::int32_t>(predicate);
    break;
  case Lane::i64:
    kernel = integer_comparison<std::int64_t>(predicate);
    break;
  case Lane::f32:
    kernel = float_comparison<float>(predicate);
    break;
  case Lane::f64:
    kernel = float_comparison<double>(predicate);
    break;
  }
  if (!kernel)
    return compiler.unsupported(op, fmt::format("the predicate '{}' is not known", predicate));
  auto made = make_lanewise(compiler, op, kernel, WorkKind::compare);
  if (made) made->work_type = work_type_of(*first);
  return made;
}

template <class T> struct Choose {
  HEBE_LANES void run(const void* const* in, void* out, std::size_t count) {
    const auto* condition = static_cast<const std::uint8_t*>(in[0]);
    const auto* a = static_cast<const T*>(in[1]);
    const auto* b = static_cast<const T*>(in[2]);
    auto* r = static_cast<T*>(out);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) r[i] = condition[i] ? a[i] : b[i];
  }
};

/// A condition that is the same for all elements takes one of the alternatives as it is, be it a
/// tensor or not even a number.
class Select final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& condition = program.at(where);
    if (condition.uniform()) {
      program.set(result, program.at(condition.at<std::uint8_t>(0) ? first : second));
      return {};
    }
    return lanes->run(program);
  }
  bool lanewise() const override { return true; }
  Slot where = 0, first = 0, second = 0, result = 0;
  InstructionPtr lanes; ///< null where the alternatives are no tensors
};

InstructionPtr make_select(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Select>();
  made->where = compiler.slot(*op.operands[0]);
  made->first = compiler.slot(*op.operands[1]);
  made->second = compiler.slot(*op.operands[2]);
  made->result = compiler.slot(op.result());
  if (!compiler.numeric(op.result())) return made; // a block pointer, a descriptor
  const auto result = compiler.operand(op.result(), op);
  LaneKernel kernel = nullptr;
  switch (result->size()) {
  case 1:
    kernel = fitting<Choose<std::uint8_t>>();
    break;
  case 2:
    kernel = fitting<Choose<std::uint16_t>>();
    break;
  case 4:
    kernel = fitting<Choose<std::uint32_t>>();
    break;
  default:
    kernel = fitting<Choose<std::uint64_t>>();
    break;
  }
  made->lanes = make_lanewise(compiler, op, kernel, WorkKind::select, false);
  if (!made->lanes) return nullptr;
  made->lanes->op = &op;
  made->work = WorkKind::select;
  made->work_type = made->lanes->work_type;
  made->work_elements = made->lanes->work_elements;
  return made;
}

} // namespace

void add_comparisons(Makers& makers) {
  for (const Op op : {Op::arith_cmpi, Op::arith_cmpf})
    makers[static_cast<std::size_t>(op)] = &make_comparison;
  makers[static_cast<std::size_t>(Op::arith_select)] = &make_select;
}

} // namespace hebe::ttgir
