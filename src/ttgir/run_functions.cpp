// math.*, libdevice calls and inline assembly. In: operations that name a function; out: instructions.
// Invariant: a symbol or an assembly text that is not known exactly is refused by its name.
#include "ttgir/libdevice.hpp"

#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

InstructionPtr make_function(Compiler& compiler, const Operation& op) {
  const auto result = compiler.operand(op.result(), op);
  if (!result) return nullptr;
  auto name = op.name.substr(op.name.find('.') + 1); // "math.exp", "tt.precise_sqrt"
  if (name == "precise_sqrt") name = "sqrt";
  FunctionLoop loop = op.is(Op::math_fpowi) ? mixed_function_loop(name, *result) : function_loop(name, *result);
  return make_lanewise(compiler, op, loop.kernel, loop.work);
}

template <class T> struct Absolute { HEBE_LANES T of(T a) { return a >> (sizeof(T) * 8 - 1) ? static_cast<T>(0 - a) : a; } };
template <class T> struct Ones { HEBE_LANES T of(T a) { return static_cast<T>(std::popcount(a)); } };
template <class T> struct LeadingZeros { HEBE_LANES T of(T a) { return static_cast<T>(std::countl_zero(a)); } };
template <class T> struct TrailingZeros { HEBE_LANES T of(T a) { return static_cast<T>(std::countr_zero(a)); } };
template <class T> struct Power {
  HEBE_LANES T of(T base, T exponent) { // a negative exponent gives 0 but for ±1
    if (exponent >> (sizeof(T) * 8 - 1)) return base == 1 ? T(1) : static_cast<T>(base + 1) == 0 ? ((exponent & 1) ? base : T(1)) : T(0);
    std::uint64_t r = 1, b = base;
    for (T e = exponent; e; e = static_cast<T>(e >> 1), b *= b)
      if (e & 1) r *= b;
    return static_cast<T>(r);
  }
};

template <class T> LaneKernel bits_kernel(Op op) {
  switch (op) {
  case Op::math_absi: return fitting<Unary<T, T, Absolute<T>>>();
  case Op::math_ctpop: return fitting<Unary<T, T, Ones<T>>>();
  case Op::math_ctlz: return fitting<Unary<T, T, LeadingZeros<T>>>();
  case Op::math_cttz: return fitting<Unary<T, T, TrailingZeros<T>>>();
  default: return fitting<Binary<T, T, Power<T>>>();
  }
}

InstructionPtr make_bits(Compiler& compiler, const Operation& op) {
  const auto result = compiler.operand(op.result(), op);
  if (!result) return nullptr;
  LaneKernel kernel = nullptr;
  switch (result->lane) {
  case Lane::i8: kernel = bits_kernel<std::uint8_t>(op.code); break;
  case Lane::i16: kernel = bits_kernel<std::uint16_t>(op.code); break;
  case Lane::i32: kernel = bits_kernel<std::uint32_t>(op.code); break;
  case Lane::i64: kernel = bits_kernel<std::uint64_t>(op.code); break;
  default: break;
  }
  return make_lanewise(compiler, op, kernel, WorkKind::integer);
}

struct IsNan { template <class T> HEBE_LANES std::uint8_t of(T a) { return a != a; } };
struct IsInf { template <class T> HEBE_LANES std::uint8_t of(T a) { return std::abs(a) == static_cast<T>(HUGE_VAL); } };
struct IsFinite { template <class T> HEBE_LANES std::uint8_t of(T a) { return std::abs(a) < static_cast<T>(HUGE_VAL); } };

template <class T> LaneKernel class_kernel(Op op) {
  switch (op) {
  case Op::math_isnan: return fitting<Unary<T, std::uint8_t, IsNan>>();
  case Op::math_isinf: return fitting<Unary<T, std::uint8_t, IsInf>>();
  case Op::math_isfinite: return fitting<Unary<T, std::uint8_t, IsFinite>>();
  default: return nullptr; // what is normal depends on the format
  }
}

InstructionPtr make_class(Compiler& compiler, const Operation& op) {
  const auto operand = compiler.operand(*op.operands[0], op);
  if (!operand) return nullptr;
  const LaneKernel kernel = operand->lane == Lane::f64   ? class_kernel<double>(op.code)
                            : operand->lane == Lane::f32 ? class_kernel<float>(op.code)
                                                         : nullptr;
  return make_lanewise(compiler, op, kernel, WorkKind::compare);
}

InstructionPtr make_extern(Compiler& compiler, const Operation& op) {
  const auto symbol = string(op.text_of("symbol")).value_or("");
  std::vector<Operand> operands;
  for (const Value* value : op.operands) {
    const auto operand = compiler.operand(*value, op);
    if (!operand) return nullptr;
    operands.push_back(*operand);
  }
  const auto result = compiler.operand(op.result(), op);
  if (!result) return nullptr;
  const LibdeviceLoop loop = libdevice_loop(symbol, operands, *result);
  if (loop.same_bits) return make_alias(compiler, op);
  if (!loop.kernel) return compiler.unsupported(op, fmt::format("the function {} is not known", symbol));
  return make_lanewise(compiler, op, loop.kernel, loop.work);
}

/// The assembly without comments, line ends and doubled blanks.
std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

struct Copy { HEBE_LANES float of(float a) { return a; } };
// Triton's fp8e4b15 (stored as i8): f8E4M3 with a bias of 15 and without NaN, by way of f16.
struct FromB15 {
  HEBE_LANES float of(std::int8_t a) {
    const auto bits = static_cast<std::uint8_t>(a);
    const unsigned magnitude = bits & 0x7f;
    const float value = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-17F
                                      : std::bit_cast<float>((magnitude << 20) + (112U << 23));
    return (bits & 0x80) ? -value : value;
  }
};

InstructionPtr make_assembly(Compiler& compiler, const Operation& op) {
  const auto text = string(op.text_of("asm_string")).value_or(std::string(op.text_of("asm_string")));
  const auto known = squeezed(text);
  const auto refuse_it = [&] { return compiler.unsupported(op, fmt::format("the assembly \"{}\" is not known", known.substr(0, 120))); };
  if (op.operands.size() != 1 || op.results.size() != 1) return refuse_it();
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  if (known == "cvt.rna.tf32.f32 $0, $1;" && from->scalar == Scalar::f32) {
    auto made = make_lanewise(compiler, op, fitting<Unary<float, float, Copy>>(), WorkKind::convert);
    if (made) static_cast<Lanewise&>(*made).round = rounding_to(Scalar::tf32, Rounding::nearest_away);
    return made;
  }
  constexpr std::string_view from_b15 =
      "{ .reg .b32 a<2>, b<2>; prmt.b32 a0, 0, $2, 0x5746; and.b32 b0, a0, 0x7f007f00; and.b32 b1, a0, 0x00ff00ff; "
      "and.b32 a1, a0, 0x00800080; shr.b32 b0, b0, 1; add.u32 b1, b1, a1; lop3.b32 $0, b0, 0x80008000, a0, 0xf8; "
      "shl.b32 $1, b1, 7; }";
  if (known == from_b15 && from->scalar == Scalar::i8 && to->scalar == Scalar::f16)
    return make_lanewise(compiler, op, fitting<Unary<std::int8_t, float, FromB15>>(), WorkKind::convert, false);
  return refuse_it();
}

} // namespace

void add_functions(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  for (const Op op :
       {Op::math_absf, Op::math_ceil, Op::math_floor, Op::math_round, Op::math_roundeven, Op::math_trunc,
        Op::math_sqrt, Op::math_rsqrt, Op::math_cbrt, Op::math_exp, Op::math_exp2, Op::math_expm1, Op::math_log,
        Op::math_log2, Op::math_log10, Op::math_log1p, Op::math_sin, Op::math_cos, Op::math_tan, Op::math_asin,
        Op::math_acos, Op::math_atan, Op::math_sinh, Op::math_cosh, Op::math_tanh, Op::math_asinh, Op::math_acosh,
        Op::math_atanh, Op::math_erf, Op::math_erfc, Op::math_fma, Op::math_powf, Op::math_copysign, Op::math_atan2,
        Op::math_fpowi, Op::tt_precise_sqrt})
    add(op, &make_function);
  for (const Op op : {Op::math_absi, Op::math_ctpop, Op::math_ctlz, Op::math_cttz, Op::math_ipowi}) add(op, &make_bits);
  for (const Op op : {Op::math_isnan, Op::math_isinf, Op::math_isfinite}) add(op, &make_class);
  add(Op::tt_extern_elementwise, &make_extern);
  add(Op::tt_elementwise_inline_asm, &make_assembly);
}

} // namespace hebe::ttgir
