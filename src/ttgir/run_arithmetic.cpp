// arith.* on integers and floats. In: operations; out: instructions whose
// loops the compiler vectorises. Invariant: no element's result depends on another's.
#include "ttgir/run_lanewise.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;
template <class T> using Wide = std::conditional_t<sizeof(T) == 8, Int128, std::int64_t>;
template <class T> using WideUnsigned = std::conditional_t<sizeof(T) == 8, UInt128, std::uint64_t>;

#define HEBE_INTEGER(name, expression)                                                             \
  struct name {                                                                                    \
    template <class T> HEBE_LANES T of(T a, T b) {                                                 \
      [[maybe_unused]] const auto ua = static_cast<Unsigned<T>>(a),                                \
                                  ub = static_cast<Unsigned<T>>(b);                                \
      [[maybe_unused]] constexpr unsigned width = sizeof(T) * 8;                                   \
      return static_cast<T>(expression);                                                           \
    }                                                                                              \
  };
// Through 64 bits: arithmetic on narrower types would be done in int, which may overflow.
#define HEBE_WRAP(operation) static_cast<std::uint64_t>(ua) operation static_cast<std::uint64_t>(ub)
HEBE_INTEGER(Add, HEBE_WRAP(+))
HEBE_INTEGER(Subtract, HEBE_WRAP(-))
HEBE_INTEGER(Multiply, HEBE_WRAP(*))
HEBE_INTEGER(And, ua& ub)
HEBE_INTEGER(Or, ua | ub)
HEBE_INTEGER(Xor, ua ^ ub)
HEBE_INTEGER(ShiftLeft, ub >= width ? 0 : static_cast<std::uint64_t>(ua) << (ub % width))
HEBE_INTEGER(ShiftRight, ub >= width ? 0 : ua >> (ub % width))
HEBE_INTEGER(ShiftRightSigned, a >> (ub >= width ? width - 1 : ub))
HEBE_INTEGER(Minimum, a < b ? a : b)
HEBE_INTEGER(Maximum, a > b ? a : b)
HEBE_INTEGER(MinimumUnsigned, ua < ub ? ua : ub)
HEBE_INTEGER(MaximumUnsigned, ua > ub ? ua : ub)
HEBE_INTEGER(MultiplyHigh,
             (static_cast<WideUnsigned<T>>(ua) * static_cast<WideUnsigned<T>>(ub)) >> width)
HEBE_INTEGER(MultiplyHighSigned, (static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> width)
HEBE_INTEGER(DivideUnsigned, ub == 0 ? std::numeric_limits<Unsigned<T>>::max() : ua / ub)
HEBE_INTEGER(RemainderUnsigned, ub == 0 ? ua : ua % ub)
HEBE_INTEGER(CeilUnsigned,
             ub == 0 ? std::numeric_limits<Unsigned<T>>::max() : ua / ub + (ua % ub != 0))
#undef HEBE_WRAP
#undef HEBE_INTEGER

struct Divide {
  template <class T> HEBE_LANES T of(T a, T b) {
    if (b == 0) return T(-1);
    if (b == T(-1)) return Subtract::of(T(0), a); // the smallest integer has no positive: itself
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T> HEBE_LANES T of(T a, T b) {
    if (b == 0) return a;
    if (b == T(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct CeilDivide {
  template <class T> HEBE_LANES T of(T a, T b) {
    const T quotient = Divide::of(a, b), rest = Remainder::of(a, b);
    return b != 0 && rest != 0 && (rest < 0) == (b < 0) ? static_cast<T>(quotient + 1) : quotient;
  }
};
struct FloorDivide {
  template <class T> HEBE_LANES T of(T a, T b) {
    const T quotient = Divide::of(a, b), rest = Remainder::of(a, b);
    return b != 0 && rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
  }
};

struct AddFloat {
  template <class T> HEBE_LANES T of(T a, T b) { return a + b; }
};
struct SubtractFloat {
  template <class T> HEBE_LANES T of(T a, T b) { return a - b; }
};
struct MultiplyFloat {
  template <class T> HEBE_LANES T of(T a, T b) { return a * b; }
};
struct DivideFloat {
  template <class T> HEBE_LANES T of(T a, T b) { return a / b; }
};
struct RemainderFloat {
  template <class T> HEBE_LANES T of(T a, T b) { return std::fmod(a, b); }
};
template <class T> HEBE_LANES bool negative(T a) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  return std::bit_cast<Bits>(a) < 0;
}
// PTX min and max: -0 is less than +0. maxnum: the number where the other is NaN.
template <class T> HEBE_LANES T larger(T a, T b) {
  return a > b ? a : b > a ? b : negative(a) ? b : a;
}
template <class T> HEBE_LANES T smaller(T a, T b) {
  return a < b ? a : b < a ? b : negative(a) ? a : b;
}
struct MaximumNumber {
  template <class T> HEBE_LANES T of(T a, T b) { return a != a ? b : b != b ? a : larger(a, b); }
};
struct MinimumNumber {
  template <class T> HEBE_LANES T of(T a, T b) { return a != a ? b : b != b ? a : smaller(a, b); }
};
struct MaximumFloat {
  template <class T> HEBE_LANES T of(T a, T b) { return a != a ? a : b != b ? b : larger(a, b); }
};
struct MinimumFloat {
  template <class T> HEBE_LANES T of(T a, T b) { return a != a ? a : b != b ? b : smaller(a, b); }
};
struct Negate {
  template <class T> HEBE_LANES T of(T a) { return -a; }
};
// min(max(x, low), high): NaN in x gives NaN, or low.
struct ClampAll {
  template <class T> HEBE_LANES T of(T x, T low, T high) {
    return MinimumFloat::of(MaximumFloat::of(x, low), high);
  }
};
struct ClampNumber {
  template <class T> HEBE_LANES T of(T x, T low, T high) {
    return MinimumNumber::of(MaximumNumber::of(x, low), high);
  }
};

template <class T> LaneKernel integer_kernel(Op op) {
  switch (op) {
  case Op::arith_addi:
    return fitting<Binary<T, T, Add>>();
  case Op::arith_subi:
    return fitting<Binary<T, T, Subtract>>();
  case Op::arith_muli:
    return fitting<Binary<T, T, Multiply>>();
  case Op::arith_shli:
    return fitting<Binary<T, T, ShiftLeft>>();
  case Op::arith_shrsi:
    return fitting<Binary<T, T, ShiftRightSigned>>();
  case Op::arith_shrui:
    return fitting<Binary<T, T, ShiftRight>>();
  case Op::arith_divsi:
    return fitting<Binary<T, T, Divide>>();
  case Op::arith_divui:
    return fitting<Binary<T, T, DivideUnsigned>>();
  case Op::arith_remsi:
    return fitting<Binary<T, T, Remainder>>();
  case Op::arith_remui:
    return fitting<Binary<T, T, RemainderUnsigned>>();
  case Op::arith_ceildivsi:
    return fitting<Binary<T, T, CeilDivide>>();
  case Op::arith_ceildivui:
    return fitting<Binary<T, T, CeilUnsigned>>();
  case Op::arith_floordivsi:
    return fitting<Binary<T, T, FloorDivide>>();
  case Op::arith_andi:
    return fitting<Binary<T, T, And>>();
  case Op::arith_ori:
    return fitting<Binary<T, T, Or>>();
  case Op::arith_xori:
    return fitting<Binary<T, T, Xor>>();
  case Op::arith_minsi:
    return fitting<Binary<T, T, Minimum>>();
  case Op::arith_maxsi:
    return fitting<Binary<T, T, Maximum>>();
  case Op::arith_minui:
    return fitting<Binary<T, T, MinimumUnsigned>>();
  case Op::arith_maxui:
    return fitting<Binary<T, T, MaximumUnsigned>>();
  case Op::tt_mulhiui:
    return fitting<Binary<T, T, MultiplyHigh>>();
  default:
    return nullptr;
  }
}

// i1: true is -1 to signed operations.
LaneKernel truth_kernel(Op op) {
  using T = std::uint8_t;
  switch (op) {
  case Op::arith_andi:
  case Op::arith_muli:
  case Op::arith_maxsi:
  case Op::arith_minui:
    return fitting<Binary<T, T, MinimumUnsigned>>();
  case Op::arith_ori:
  case Op::arith_minsi:
  case Op::arith_maxui:
    return fitting<Binary<T, T, MaximumUnsigned>>();
  case Op::arith_addi:
  case Op::arith_subi:
  case Op::arith_xori:
    return fitting<Binary<T, T, Xor>>();
  default:
    return nullptr;
  }
}

template <class T> LaneKernel float_kernel(const Operation& op) {
  switch (op.code) {
  case Op::arith_addf:
    return fitting<Binary<T, T, AddFloat>>();
  case Op::arith_subf:
    return fitting<Binary<T, T, SubtractFloat>>();
  case Op::arith_mulf:
    return fitting<Binary<T, T, MultiplyFloat>>();
  case Op::arith_divf:
  case Op::tt_precise_divf:
  case Op::tt_approx_divf:
    return fitting<Binary<T, T, DivideFloat>>();
  case Op::arith_remf:
    return fitting<Binary<T, T, RemainderFloat>>();
  case Op::arith_maxnumf:
    return fitting<Binary<T, T, MaximumNumber>>();
  case Op::arith_minnumf:
    return fitting<Binary<T, T, MinimumNumber>>();
  case Op::arith_maximumf:
    return fitting<Binary<T, T, MaximumFloat>>();
  case Op::arith_minimumf:
    return fitting<Binary<T, T, MinimumFloat>>();
  case Op::arith_negf:
    return fitting<Unary<T, T, Negate>>();
  case Op::tt_clampf:
    return op.text_of("propagateNan") == "all" ? fitting<Ternary<T, T, ClampAll>>()
                                               : fitting<Ternary<T, T, ClampNumber>>();
  default:
    return nullptr;
  }
}

WorkKind work_of(Op op) {
  switch (op) {
  case Op::arith_addf:
  case Op::arith_subf:
  case Op::arith_negf:
    return WorkKind::add;
  case Op::arith_mulf:
    return WorkKind::multiply;
  case Op::arith_divf:
  case Op::tt_precise_divf:
  case Op::tt_approx_divf:
  case Op::arith_divsi:
  case Op::arith_divui:
  case Op::arith_ceildivsi:
  case Op::arith_ceildivui:
  case Op::arith_floordivsi:
    return WorkKind::divide;
  case Op::arith_remf:
  case Op::arith_remsi:
  case Op::arith_remui:
    return WorkKind::remainder;
  case Op::arith_maxnumf:
  case Op::arith_minnumf:
  case Op::arith_maximumf:
  case Op::arith_minimumf:
  case Op::arith_minsi:
  case Op::arith_maxsi:
  case Op::arith_minui:
  case Op::arith_maxui:
  case Op::tt_clampf:
    return WorkKind::minimum_maximum;
  default:
    return WorkKind::integer;
  }
}

InstructionPtr make_arithmetic(Compiler& compiler, const Operation& op) {
  const auto first = compiler.operand(*op.operands[0], op);
  if (!first) return nullptr;
  LaneKernel kernel = nullptr;
  switch (first->lane) {
  case Lane::b1:
    kernel = truth_kernel(op.code);
    break;
  case Lane::i8:
    kernel = integer_kernel<std::int8_t>(op.code);
    break;
  case Lane::i16:
    kernel = integer_kernel<std::int16_t>(op.code);
    break;
  case Lane::i32:
    kernel = integer_kernel<std::int32_t>(op.code);
    break;
  case Lane::i64:
    kernel = integer_kernel<std::int64_t>(op.code);
    break;
  case Lane::f32:
    kernel = float_kernel<float>(op);
    break;
  case Lane::f64:
    kernel = float_kernel<double>(op);
    break;
  }
  return make_lanewise(compiler, op, kernel, work_of(op.code));
}

/// Two results of one pair of operands: the low and the high half of a product, a sum and its
/// carry.
class Pair final : public Instruction {
public:
  Status run(Program& program) const override {
    // Not in place: both halves read both operands.
    HEBE_CHECK(low->run(program));
    return high->run(program);
  }
  bool lanewise() const override { return true; }
  InstructionPtr low, high;
};

struct Carry {
  template <class T> HEBE_LANES std::uint8_t of(T a, T b) {
    return static_cast<Unsigned<T>>(Add::of(a, b)) < static_cast<Unsigned<T>>(a);
  }
};

template <class T> std::pair<LaneKernel, LaneKernel> pair_kernels(Op op) {
  switch (op) {
  case Op::arith_mulsi_extended:
    return {fitting<Binary<T, T, Multiply>>(), fitting<Binary<T, T, MultiplyHighSigned>>()};
  case Op::arith_mului_extended:
    return {fitting<Binary<T, T, Multiply>>(), fitting<Binary<T, T, MultiplyHigh>>()};
  default:
    return {fitting<Binary<T, T, Add>>(), fitting<Binary<T, std::uint8_t, Carry>>()};
  }
}

InstructionPtr make_pair_of_results(Compiler& compiler, const Operation& op) {
  const auto first = compiler.operand(*op.operands[0], op);
  const auto second_result = compiler.operand(op.result(1), op);
  if (!first || !second_result) return nullptr;
  std::pair<LaneKernel, LaneKernel> kernels{};
  switch (first->lane) {
  case Lane::i8:
    kernels = pair_kernels<std::int8_t>(op.code);
    break;
  case Lane::i16:
    kernels = pair_kernels<std::int16_t>(op.code);
    break;
  case Lane::i32:
    kernels = pair_kernels<std::int32_t>(op.code);
    break;
  case Lane::i64:
    kernels = pair_kernels<std::int64_t>(op.code);
    break;
  default:
    break;
  }
  auto made = std::make_unique<Pair>();
  made->low = make_lanewise(compiler, op, kernels.first, WorkKind::integer);
  made->high = made->low ? make_lanewise(compiler, op, kernels.second, WorkKind::integer) : nullptr;
  if (!made->high) return nullptr;
  static_cast<Lanewise&>(*made->high).result = *second_result;
  made->work = WorkKind::integer;
  made->work_type = made->low->work_type;
  made->work_elements = made->low->work_elements;
  return made;
}

} // namespace

void add_arithmetic(Makers& makers) {
  for (const Op op :
       {Op::arith_addi,       Op::arith_subi,      Op::arith_muli,      Op::arith_shli,
        Op::arith_shrsi,      Op::arith_shrui,     Op::arith_divsi,     Op::arith_divui,
        Op::arith_remsi,      Op::arith_remui,     Op::arith_ceildivsi, Op::arith_ceildivui,
        Op::arith_floordivsi, Op::arith_andi,      Op::arith_ori,       Op::arith_xori,
        Op::arith_minsi,      Op::arith_maxsi,     Op::arith_minui,     Op::arith_maxui,
        Op::tt_mulhiui,       Op::arith_addf,      Op::arith_subf,      Op::arith_mulf,
        Op::arith_divf,       Op::tt_precise_divf, Op::tt_approx_divf,  Op::arith_remf,
        Op::arith_maxnumf,    Op::arith_minnumf,   Op::arith_maximumf,  Op::arith_minimumf,
        Op::arith_negf,       Op::tt_clampf})
    makers[static_cast<std::size_t>(op)] = &make_arithmetic;
  for (const Op op : {Op::arith_mulsi_extended, Op::arith_mului_extended, Op::arith_addui_extended})
    makers[static_cast<std::size_t>(op)] = &make_pair_of_results;
}

} // namespace hebe::ttgir
