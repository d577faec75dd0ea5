#include "ttgir/lane_casts.hpp"
#include "ttgir/libdevice.hpp"

#include <bit>
#include <cmath>
#include <unordered_map>

namespace hebe::ttgir {
namespace {

using I32 = std::int32_t;
using U32 = std::uint32_t;
using I64 = std::int64_t;
using U64 = std::uint64_t;

#define HEBE_OF1(name, A, R, expression)                                                           \
  struct name {                                                                                    \
    HEBE_LANES R of(A a) { return static_cast<R>(expression); }                                    \
  };
#define HEBE_OF2(name, A, R, expression)                                                           \
  struct name {                                                                                    \
    HEBE_LANES R of(A a, A b) { return static_cast<R>(expression); }                               \
  };
#define HEBE_OF3(name, A, R, expression)                                                           \
  struct name {                                                                                    \
    HEBE_LANES R of(A a, A b, A c) { return static_cast<R>(expression); }                          \
  };
__extension__ using Wide = __int128;
__extension__ using WideU = unsigned __int128;

HEBE_LANES U64 reversed(U64 a, int bits) {
  U64 r = 0;
  for (int i = 0; i < bits; ++i) r = r << 1 | (a >> i & 1);
  return r;
}
HEBE_LANES U64 low24(U32 a) { return a & 0xffffffU; }
HEBE_LANES I64 low24(I32 a) { return static_cast<I32>(static_cast<U32>(a) << 8) >> 8; }
/// PTX prmt: byte i of the result is byte selector[i] of {b, a}; bit 3 repeats its sign.
HEBE_LANES U32 permuted(U32 a, U32 b, U32 selector) {
  const U64 bytes = static_cast<U64>(b) << 32 | a;
  U32 r = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const U32 choice = selector >> (4 * i) & 0xf;
    const auto byte = static_cast<U32>(bytes >> (8 * (choice & 7)) & 0xff);
    r |= ((choice & 8) ? ((byte & 0x80) ? 0xffU : 0U) : byte) << (8 * i);
  }
  return r;
}
HEBE_OF1(Clz, U32, I32, std::countl_zero(a))
HEBE_OF1(Clzll, U64, I32, std::countl_zero(a))
HEBE_OF1(Popc, U32, I32, std::popcount(a))
HEBE_OF1(Popcll, U64, I32, std::popcount(a))
HEBE_OF1(Ffs, U32, I32, a == 0 ? 0 : std::countr_zero(a) + 1)
HEBE_OF1(Ffsll, U64, I32, a == 0 ? 0 : std::countr_zero(a) + 1)
HEBE_OF1(Brev, U32, U32, reversed(a, 32))
HEBE_OF1(Brevll, U64, U64, reversed(a, 64))
HEBE_OF1(AbsI, U32, U32, a >> 31 ? 0 - a : a)
HEBE_OF1(AbsLl, U64, U64, a >> 63 ? 0 - a : a)
HEBE_OF2(Mulhi, I32, I32, static_cast<I64>(a) * b >> 32)
HEBE_OF2(Umulhi, U32, U32, static_cast<U64>(a) * b >> 32)
HEBE_OF2(Mul64hi, I64, I64, static_cast<Wide>(a) * b >> 64)
HEBE_OF2(Umul64hi, U64, U64, static_cast<WideU>(a) * b >> 64)
HEBE_OF2(Mul24, I32, I32, low24(a) * low24(b))
HEBE_OF2(Umul24, U32, U32, low24(a) * low24(b))
HEBE_OF2(Hadd, I32, I32, (static_cast<I64>(a) + b) >> 1)
HEBE_OF2(Rhadd, I32, I32, (static_cast<I64>(a) + b + 1) >> 1)
HEBE_OF2(Uhadd, U32, U32, (static_cast<U64>(a) + b) >> 1)
HEBE_OF2(Urhadd, U32, U32, (static_cast<U64>(a) + b + 1) >> 1)
HEBE_OF3(Sad, I32, I32,
         static_cast<I64>(c) + (a > b ? static_cast<I64>(a) - b : static_cast<I64>(b) - a))
HEBE_OF3(Usad, U32, U32, static_cast<U64>(c) + (a > b ? a - b : b - a))
HEBE_OF3(BytePerm, U32, U32, permuted(a, b, c))
HEBE_OF1(High, double, I32, std::bit_cast<U64>(a) >> 32)
HEBE_OF1(Low, double, I32, std::bit_cast<U64>(a))
HEBE_OF2(HighLow, U32, double, std::bit_cast<double>(static_cast<U64>(a) << 32 | b))
template <class T> struct IsNan {
  HEBE_LANES I32 of(T a) { return a != a; }
};
template <class T> struct IsInf {
  HEBE_LANES I32 of(T a) { return std::abs(a) == static_cast<T>(HUGE_VAL); }
};
template <class T> struct IsFinite {
  HEBE_LANES I32 of(T a) { return std::abs(a) < static_cast<T>(HUGE_VAL); }
};
template <class T> struct Sign {
  HEBE_LANES I32 of(T a) { return std::signbit(a); }
};
template <class T> struct Exponent {
  HEBE_LANES I32 of(T a) {
    if (a == 0 || a != a) return std::numeric_limits<I32>::min();
    return std::abs(a) == static_cast<T>(HUGE_VAL) ? std::numeric_limits<I32>::max()
                                                   : std::ilogb(a);
  }
};
template <class T> struct RoundEvenLl {
  HEBE_LANES I64 of(T a) { return ToInteger<I64>::of(std::nearbyint(a)); }
};
template <class T> struct RoundLl {
  HEBE_LANES I64 of(T a) { return ToInteger<I64>::of(std::round(a)); }
};

struct Row {
  LaneKernel (*make)();
  WorkKind work;
};
template <class Loop> LaneKernel made() { return fitting<Loop>(); }

const std::unordered_map<std::string_view, Row>& rows() {
  using K = WorkKind;
  static const std::unordered_map<std::string_view, Row> all = {
#define HEBE_ROW1(name, A, R, F, kind)                                                             \
  {                                                                                                \
    name, { &made<Unary<A, R, F>>, kind }                                                          \
  }
#define HEBE_ROW2(name, A, R, F, kind)                                                             \
  {                                                                                                \
    name, { &made<Binary<A, R, F>>, kind }                                                         \
  }
#define HEBE_ROW3(name, A, R, F, kind)                                                             \
  {                                                                                                \
    name, { &made<Ternary<A, R, F>>, kind }                                                        \
  }
      HEBE_ROW1("clz", U32, I32, Clz, K::integer),
      HEBE_ROW1("clzll", U64, I32, Clzll, K::integer),
      HEBE_ROW1("popc", U32, I32, Popc, K::integer),
      HEBE_ROW1("popcll", U64, I32, Popcll, K::integer),
      HEBE_ROW1("ffs", U32, I32, Ffs, K::integer),
      HEBE_ROW1("ffsll", U64, I32, Ffsll, K::integer),
      HEBE_ROW1("brev", U32, U32, Brev, K::integer),
      HEBE_ROW1("brevll", U64, U64, Brevll, K::integer),
      HEBE_ROW1("abs", U32, U32, AbsI, K::integer),
      HEBE_ROW1("llabs", U64, U64, AbsLl, K::integer),
      HEBE_ROW2("mulhi", I32, I32, Mulhi, K::integer),
      HEBE_ROW2("umulhi", U32, U32, Umulhi, K::integer),
      HEBE_ROW2("mul64hi", I64, I64, Mul64hi, K::integer),
      HEBE_ROW2("umul64hi", U64, U64, Umul64hi, K::integer),
      HEBE_ROW2("mul24", I32, I32, Mul24, K::integer),
      HEBE_ROW2("umul24", U32, U32, Umul24, K::integer),
      HEBE_ROW2("hadd", I32, I32, Hadd, K::integer),
      HEBE_ROW2("rhadd", I32, I32, Rhadd, K::integer),
      HEBE_ROW2("uhadd", U32, U32, Uhadd, K::integer),
      HEBE_ROW2("urhadd", U32, U32, Urhadd, K::integer),
      HEBE_ROW3("sad", I32, I32, Sad, K::integer),
      HEBE_ROW3("usad", U32, U32, Usad, K::integer),
      HEBE_ROW3("byte_perm", U32, U32, BytePerm, K::integer),
      HEBE_ROW1("double2hiint", double, I32, High, K::convert),
      HEBE_ROW1("double2loint", double, I32, Low, K::convert),
      HEBE_ROW2("hiloint2double", U32, double, HighLow, K::convert),
      HEBE_ROW1("isnanf", float, I32, IsNan<float>, K::compare),
      HEBE_ROW1("isnand", double, I32, IsNan<double>, K::compare),
      HEBE_ROW1("isinff", float, I32, IsInf<float>, K::compare),
      HEBE_ROW1("isinfd", double, I32, IsInf<double>, K::compare),
      HEBE_ROW1("finitef", float, I32, IsFinite<float>, K::compare),
      HEBE_ROW1("isfinited", double, I32, IsFinite<double>, K::compare),
      HEBE_ROW1("signbitf", float, I32, Sign<float>, K::compare),
      HEBE_ROW1("signbitd", double, I32, Sign<double>, K::compare),
      HEBE_ROW1("ilogbf", float, I32, Exponent<float>, K::other_math),
      HEBE_ROW1("ilogb", double, I32, Exponent<double>, K::other_math),
      HEBE_ROW1("llrintf", float, I64, RoundEvenLl<float>, K::convert),
      HEBE_ROW1("llrint", double, I64, RoundEvenLl<double>, K::convert),
      HEBE_ROW1("llroundf", float, I64, RoundLl<float>, K::convert),
      HEBE_ROW1("llround", double, I64, RoundLl<double>, K::convert),
#undef HEBE_ROW1
#undef HEBE_ROW2
#undef HEBE_ROW3
  };
  return all;
}

// Directed rounding. An odd double (exact, or with its last bit set) rounds to float in any
// direction as the exact value would.
enum class Toward : std::uint8_t { nearest, zero, down, up };
std::optional<Toward> toward(std::string_view mode) {
  if (mode == "rn") return Toward::nearest;
  if (mode == "rz") return Toward::zero;
  if (mode == "rd") return Toward::down;
  if (mode == "ru") return Toward::up;
  return std::nullopt;
}
template <Toward T> HEBE_LANES float directed(double a) {
  const float f = static_cast<float>(a);
  const double back = static_cast<double>(f);
  if constexpr (T == Toward::nearest) return f;
  if (back == a || a != a) return f;
  const bool over = T == Toward::zero   ? std::abs(back) > std::abs(a)
                    : T == Toward::down ? back > a
                                        : back < a;
  return over ? std::nextafter(f, T == Toward::zero   ? 0.0F
                                  : T == Toward::down ? -HUGE_VALF
                                                      : HUGE_VALF)
              : f;
}
HEBE_LANES double odd_if(double a, double lost) { // a is rounded; `lost` is what is missing
  const auto bits = std::bit_cast<U64>(a);
  if (!(lost != 0) || (bits & 1) != 0 || !std::isfinite(a)) return a;
  return std::bit_cast<double>((lost > 0) == (a > 0) ? bits + 1 : bits - 1);
}
HEBE_LANES double odd_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return odd_if(sum, (a - (sum - part)) + (b - part));
}
struct OddAdd {
  HEBE_LANES double of(double a, double b) { return odd_sum(a, b); }
};
struct OddSub {
  HEBE_LANES double of(double a, double b) { return odd_sum(a, -b); }
};
struct OddMul {
  HEBE_LANES double of(double a, double b) { return a * b; }
}; // exact for floats
struct OddDiv {
  HEBE_LANES double of(double a, double b) {
    const double q = a / b, rest = std::fma(-q, b, a);
    return odd_if(q, b > 0 ? rest : -rest);
  }
};
struct OddSqrt {
  HEBE_LANES double of(double a) {
    const double q = std::sqrt(a);
    return odd_if(q, std::fma(-q, q, a));
  }
};
struct OddRcp {
  HEBE_LANES double of(double a) { return OddDiv::of(1.0, a); }
};
struct OddRsqrt {
  HEBE_LANES double of(double a) { return 1.0 / std::sqrt(a); }
};
struct OddFma {
  HEBE_LANES double of(double a, double b, double c) { return odd_sum(a * b, c); }
};
struct Itself {
  HEBE_LANES double of(double a) { return a; }
};
template <class F, Toward T> struct Directed {
  template <class... A> HEBE_LANES float of(A... a) {
    return directed<T>(F::of(static_cast<double>(a)...));
  }
};
template <class F> struct Plain {
  template <class... A> HEBE_LANES double of(A... a) { return F::of(a...); }
};
struct AddD {
  HEBE_LANES double of(double a, double b) { return a + b; }
};
struct SubD {
  HEBE_LANES double of(double a, double b) { return a - b; }
};
struct DivD {
  HEBE_LANES double of(double a, double b) { return a / b; }
};
struct FmaD {
  HEBE_LANES double of(double a, double b, double c) { return std::fma(a, b, c); }
};
struct SqrtD {
  HEBE_LANES double of(double a) { return std::sqrt(a); }
};
struct RcpD {
  HEBE_LANES double of(double a) { return 1 / a; }
};

template <class A, class F> LaneKernel directed_unary(Toward t) {
  switch (t) {
  case Toward::nearest:
    return &Unary<A, float, Directed<F, Toward::nearest>>::run;
  case Toward::zero:
    return &Unary<A, float, Directed<F, Toward::zero>>::run;
  case Toward::down:
    return &Unary<A, float, Directed<F, Toward::down>>::run;
  case Toward::up:
    return &Unary<A, float, Directed<F, Toward::up>>::run;
  }
  return nullptr;
}
template <template <class, class, class> class Shape, class F> LaneKernel directed_loop(Toward t) {
  switch (t) {
  case Toward::nearest:
    return &Shape<float, float, Directed<F, Toward::nearest>>::run;
  case Toward::zero:
    return &Shape<float, float, Directed<F, Toward::zero>>::run;
  case Toward::down:
    return &Shape<float, float, Directed<F, Toward::down>>::run;
  case Toward::up:
    return &Shape<float, float, Directed<F, Toward::up>>::run;
  }
  return nullptr;
}

/// fadd_rz, fma's fmaf_rn, dadd_rn (doubles: to nearest only).
LaneKernel arithmetic_loop(std::string_view name, Toward t) {
  if (name == "fadd") return directed_loop<Binary, OddAdd>(t);
  if (name == "fsub") return directed_loop<Binary, OddSub>(t);
  if (name == "fmul") return directed_loop<Binary, OddMul>(t);
  if (name == "fdiv") return directed_loop<Binary, OddDiv>(t);
  if (name == "fsqrt") return directed_loop<Unary, OddSqrt>(t);
  if (name == "frcp") return directed_loop<Unary, OddRcp>(t);
  if (name == "fmaf") return directed_loop<Ternary, OddFma>(t);
  if (t != Toward::nearest) return nullptr;
  if (name == "frsqrt") return directed_loop<Unary, OddRsqrt>(t);
  if (name == "dadd") return fitting<Binary<double, double, AddD>>();
  if (name == "dsub") return fitting<Binary<double, double, SubD>>();
  if (name == "dmul") return fitting<Binary<double, double, OddMul>>();
  if (name == "ddiv") return fitting<Binary<double, double, DivD>>();
  if (name == "dsqrt") return fitting<Unary<double, double, SqrtD>>();
  if (name == "drcp") return fitting<Unary<double, double, RcpD>>();
  if (name == "fma") return fitting<Ternary<double, double, FmaD>>();
  return nullptr;
}

template <class From, class To, Toward T> struct RoundedToInteger {
  HEBE_LANES To of(From a) {
    return ToInteger<To>::of(T == Toward::zero      ? a
                             : T == Toward::nearest ? std::nearbyint(a)
                             : T == Toward::down    ? std::floor(a)
                                                    : std::ceil(a));
  }
};
template <class From, class To> LaneKernel to_integer_loop(Toward t) {
  switch (t) {
  case Toward::nearest:
    return &Unary<From, To, RoundedToInteger<From, To, Toward::nearest>>::run;
  case Toward::zero:
    return &Unary<From, To, RoundedToInteger<From, To, Toward::zero>>::run;
  case Toward::down:
    return &Unary<From, To, RoundedToInteger<From, To, Toward::down>>::run;
  case Toward::up:
    return &Unary<From, To, RoundedToInteger<From, To, Toward::up>>::run;
  }
  return nullptr;
}
template <class From, class To> struct Cast {
  HEBE_LANES To of(From a) { return static_cast<To>(a); }
};

/// "float2int" and its like.
LaneKernel conversion_loop(std::string_view from, std::string_view to, Toward t) {
  const auto integer = [&]<class F>(F) -> LaneKernel {
    if (to == "int") return to_integer_loop<F, I32>(t);
    if (to == "uint") return to_integer_loop<F, U32>(t);
    if (to == "ll") return to_integer_loop<F, I64>(t);
    if (to == "ull") return to_integer_loop<F, U64>(t);
    return nullptr;
  };
  if (from == "float") return integer(0.0F);
  if (from == "double") return to == "float" ? directed_unary<double, Itself>(t) : integer(0.0);
  const auto real = [&]<class I>(I) -> LaneKernel {
    if (to == "float" && sizeof(I) == 4) return directed_unary<I, Itself>(t); // exact in double
    if (t != Toward::nearest) return nullptr;
    if (to == "float") return &Unary<I, float, Cast<I, float>>::run;
    return to == "double" ? &Unary<I, double, Cast<I, double>>::run : nullptr;
  };
  if (from == "int") return real(I32{});
  if (from == "uint") return real(U32{});
  if (from == "ll") return real(I64{});
  if (from == "ull") return real(U64{});
  return nullptr;
}

} // namespace

LibdeviceLoop libdevice_loop(std::string_view symbol, std::span<const Operand> operands,
                             const Operand& result) {
  if (!symbol.starts_with("__nv_") || operands.empty()) return {};
  auto name = symbol.substr(5);
  for (const std::string_view cast : {"float_as_int", "float_as_uint", "int_as_float",
                                      "uint_as_float", "double_as_longlong", "longlong_as_double"})
    if (name == cast) return {nullptr, WorkKind::none, true};
  if (const auto row = rows().find(name); row != rows().end())
    return {row->second.make(), row->second.work};
  if (const auto underscore = name.rfind('_'); underscore != name.npos)
    if (const auto t = toward(name.substr(underscore + 1))) {
      const auto head = name.substr(0, underscore);
      if (const auto two = head.find('2'); two != head.npos && two > 0)
        return {conversion_loop(head.substr(0, two), head.substr(two + 1), *t), WorkKind::convert};
      return {arithmetic_loop(head, *t), WorkKind::other_math};
    }
  if (name == "fast_fdividef") name = "divf";
  if (name.starts_with("fast_")) name.remove_prefix(5); // the accurate one
  if (result.scalar == Scalar::f32 && name.ends_with('f')) name.remove_suffix(1);
  const bool mixed = operands.size() == 2 && operands[0].lane != operands[1].lane;
  const FunctionLoop loop = mixed ? mixed_function_loop(name, result) : function_loop(name, result);
  return {loop.kernel, loop.work};
}

} // namespace hebe::ttgir
