#include "ttgir/functions.hpp"

#include "ttgir/elementary.hpp"

#include <cmath>
#include <unordered_map>

namespace hebe::ttgir {
namespace {

namespace e = elementary;

template <class F> struct Rounded {
  template <class... T> HEBE_LANES float of(T... a) {
    return static_cast<float>(F::of(static_cast<double>(a)...));
  }
};
template <class F> struct RoundedOdd {
  template <class... T> HEBE_LANES float of(T... a) {
    return to_odd(F::of(static_cast<double>(a)...));
  }
};
/// The form for f64, where the fast form is not exact enough.
template <class F> struct Full {
  template <class... T> HEBE_LANES double of(T... a) {
    if constexpr (requires { F::full(a...); })
      return F::full(a...);
    else
      return F::of(a...);
  }
};

using MakeLoop = LaneKernel (*)(const Operand& result);
template <template <class, class, class> class Shape, class F>
LaneKernel loop_of(const Operand& result) {
  if (result.lane == Lane::f64) return fitting<Shape<double, double, Full<F>>>();
  if (result.lane != Lane::f32) return nullptr;
  return narrow(result.scalar) ? fitting<Shape<float, float, RoundedOdd<F>>>()
                               : fitting<Shape<float, float, Rounded<F>>>();
}

#define HEBE_ONE(name, expression)                                                                 \
  struct name {                                                                                    \
    HEBE_LANES double of(double x) { return expression; }                                          \
  };
#define HEBE_ONE_FULL(name, expression, whole)                                                     \
  struct name {                                                                                    \
    HEBE_LANES double of(double x) { return expression; }                                          \
    HEBE_LANES double full(double x) { return whole; }                                             \
  };
#define HEBE_TWO(name, expression)                                                                 \
  struct name {                                                                                    \
    HEBE_LANES double of(double x, double y) { return expression; }                                \
  };
HEBE_ONE_FULL(Exp, e::exponential(x), std::exp(x))
HEBE_ONE_FULL(Exp2, e::exponential2(x), std::exp2(x))
HEBE_ONE_FULL(Log, e::logarithm(x), std::log(x))
HEBE_ONE_FULL(Log2, e::logarithm2(x), std::log2(x))
HEBE_ONE(Exp10, std::pow(10.0, x))
HEBE_ONE(Expm1, std::expm1(x))
HEBE_ONE(Log10, std::log10(x))
HEBE_ONE(Log1p, std::log1p(x))
HEBE_ONE(Logb, std::logb(x))
HEBE_ONE(Sin, std::sin(x))
HEBE_ONE(Cos, std::cos(x))
HEBE_ONE(Tan, std::tan(x))
HEBE_ONE(Asin, std::asin(x))
HEBE_ONE(Acos, std::acos(x))
HEBE_ONE(Atan, std::atan(x))
HEBE_ONE(Sinh, std::sinh(x))
HEBE_ONE(Cosh, std::cosh(x))
HEBE_ONE(Tanh, std::tanh(x))
HEBE_ONE(Asinh, std::asinh(x))
HEBE_ONE(Acosh, std::acosh(x))
HEBE_ONE(Atanh, std::atanh(x))
HEBE_ONE(Sinpi, e::sine_of_pi_times(x))
HEBE_ONE(Cospi, e::cosine_of_pi_times(x))
HEBE_ONE(Erf, std::erf(x))
HEBE_ONE(Erfc, std::erfc(x))
HEBE_ONE(Erfcx, e::scaled_complementary_error_function(x))
HEBE_ONE(Erfinv, e::inverse_error_function(x))
HEBE_ONE(Erfcinv, e::inverse_complementary_error_function(x))
HEBE_ONE(Normcdf, 0.5 * std::erfc(-x * 0.70710678118654752440))
HEBE_ONE(Normcdfinv, -1.41421356237309504880 * e::inverse_complementary_error_function(2 * x))
HEBE_ONE(Lgamma, std::lgamma(x))
HEBE_ONE(Tgamma, std::tgamma(x))
HEBE_ONE(BesselI0, std::cyl_bessel_i(0.0, std::abs(x)))
HEBE_ONE(BesselI1, std::copysign(std::cyl_bessel_i(1.0, std::abs(x)), x))
HEBE_ONE(J0, ::j0(x))
HEBE_ONE(J1, ::j1(x))
HEBE_ONE(Y0, ::y0(x))
HEBE_ONE(Y1, ::y1(x))
HEBE_ONE(Sqrt, std::sqrt(x))
HEBE_ONE(Rsqrt, 1 / std::sqrt(x))
HEBE_ONE(Cbrt, std::cbrt(x))
HEBE_ONE(Rcbrt, 1 / std::cbrt(x))
HEBE_ONE(Reciprocal, 1 / x)
HEBE_ONE(Abs, std::abs(x))
HEBE_ONE(Ceil, std::ceil(x))
HEBE_ONE(Floor, std::floor(x))
HEBE_ONE(Trunc, std::trunc(x))
HEBE_ONE(Round, std::round(x))
HEBE_ONE(RoundEven, std::nearbyint(x))
HEBE_ONE(Saturate, x > 1 ? 1.0 : x > 0 ? x : 0.0) // NaN to 0
HEBE_TWO(Pow, std::pow(x, y))
HEBE_TWO(Atan2, std::atan2(x, y))
HEBE_TWO(Copysign, std::copysign(x, y))
HEBE_TWO(Fdim, std::fdim(x, y))
HEBE_TWO(Fmod, std::fmod(x, y))
HEBE_TWO(Remainder, std::remainder(x, y))
HEBE_TWO(Hypot, std::hypot(x, y))
HEBE_TWO(Rhypot, 1 / std::hypot(x, y))
HEBE_TWO(Divide, x / y)
HEBE_TWO(Multiply, x* y) // exact in double for two floats
struct Norm3 {
  HEBE_LANES double of(double x, double y, double z) { return std::sqrt(x * x + y * y + z * z); }
};
struct Rnorm3 {
  HEBE_LANES double of(double x, double y, double z) { return 1 / Norm3::of(x, y, z); }
};

struct NextAfter {
  template <class T> HEBE_LANES T of(T a, T b) { return std::nextafter(a, b); }
};
LaneKernel next_after(const Operand& result) {
  if (result.lane == Lane::f64) return fitting<Binary<double, double, NextAfter>>();
  return result.scalar == Scalar::f32 ? fitting<Binary<float, float, NextAfter>>() : nullptr;
}

struct Fma {
  template <class T> HEBE_LANES T of(T a, T b, T c) { return std::fma(a, b, c); }
};
/// The product of two narrow values is exact in double; what the sum loses marks its last bit.
struct FmaOdd {
  HEBE_LANES float of(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b),
                 addend = static_cast<double>(c);
    const double sum = product + addend;
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part);
    const auto bits = std::bit_cast<std::uint64_t>(sum);
    const bool inexact = lost != 0 && lost == lost;
    const bool further = (lost > 0) == (sum > 0); // the exact value lies further from zero
    const std::uint64_t odd = (bits & 1) != 0 ? bits : further ? bits + 1 : bits - 1;
    return to_odd(std::bit_cast<double>(inexact ? odd : bits));
  }
};

struct Row {
  MakeLoop make;
  WorkKind work;
};

const std::unordered_map<std::string_view, Row>& rows() {
  using K = WorkKind;
  static const std::unordered_map<std::string_view, Row> all = {
#define HEBE_UNARY(name, F, kind)                                                                  \
  {                                                                                                \
    name, { &loop_of<Unary, F>, kind }                                                             \
  }
#define HEBE_BINARY(name, F, kind)                                                                 \
  {                                                                                                \
    name, { &loop_of<Binary, F>, kind }                                                            \
  }
      HEBE_UNARY("exp", Exp, K::exponential),
      HEBE_UNARY("exp2", Exp2, K::exponential),
      HEBE_UNARY("exp10", Exp10, K::exponential),
      HEBE_UNARY("expm1", Expm1, K::exponential),
      HEBE_UNARY("log", Log, K::logarithm),
      HEBE_UNARY("log2", Log2, K::logarithm),
      HEBE_UNARY("log10", Log10, K::logarithm),
      HEBE_UNARY("log1p", Log1p, K::logarithm),
      HEBE_UNARY("logb", Logb, K::logarithm),
      HEBE_UNARY("sin", Sin, K::trigonometric),
      HEBE_UNARY("cos", Cos, K::trigonometric),
      HEBE_UNARY("tan", Tan, K::trigonometric),
      HEBE_UNARY("asin", Asin, K::trigonometric),
      HEBE_UNARY("acos", Acos, K::trigonometric),
      HEBE_UNARY("atan", Atan, K::trigonometric),
      HEBE_UNARY("sinpi", Sinpi, K::trigonometric),
      HEBE_UNARY("cospi", Cospi, K::trigonometric),
      HEBE_UNARY("sinh", Sinh, K::exponential),
      HEBE_UNARY("cosh", Cosh, K::exponential),
      HEBE_UNARY("tanh", Tanh, K::exponential),
      HEBE_UNARY("asinh", Asinh, K::logarithm),
      HEBE_UNARY("acosh", Acosh, K::logarithm),
      HEBE_UNARY("atanh", Atanh, K::logarithm),
      HEBE_UNARY("erf", Erf, K::other_math),
      HEBE_UNARY("erfc", Erfc, K::other_math),
      HEBE_UNARY("erfcx", Erfcx, K::other_math),
      HEBE_UNARY("erfinv", Erfinv, K::other_math),
      HEBE_UNARY("erfcinv", Erfcinv, K::other_math),
      HEBE_UNARY("normcdf", Normcdf, K::other_math),
      HEBE_UNARY("normcdfinv", Normcdfinv, K::other_math),
      HEBE_UNARY("lgamma", Lgamma, K::other_math),
      HEBE_UNARY("tgamma", Tgamma, K::other_math),
      HEBE_UNARY("cyl_bessel_i0", BesselI0, K::other_math),
      HEBE_UNARY("cyl_bessel_i1", BesselI1, K::other_math),
      HEBE_UNARY("j0", J0, K::other_math),
      HEBE_UNARY("j1", J1, K::other_math),
      HEBE_UNARY("y0", Y0, K::other_math),
      HEBE_UNARY("y1", Y1, K::other_math),
      HEBE_UNARY("sqrt", Sqrt, K::sqrt),
      HEBE_UNARY("rsqrt", Rsqrt, K::sqrt),
      HEBE_UNARY("cbrt", Cbrt, K::sqrt),
      HEBE_UNARY("rcbrt", Rcbrt, K::sqrt),
      HEBE_UNARY("rcp", Reciprocal, K::divide),
      HEBE_UNARY("absf", Abs, K::other_math),
      HEBE_UNARY("fabs", Abs, K::other_math),
      HEBE_UNARY("ceil", Ceil, K::other_math),
      HEBE_UNARY("floor", Floor, K::other_math),
      HEBE_UNARY("trunc", Trunc, K::other_math),
      HEBE_UNARY("round", Round, K::other_math),
      HEBE_UNARY("roundeven", RoundEven, K::other_math),
      HEBE_UNARY("rint", RoundEven, K::other_math),
      HEBE_UNARY("nearbyint", RoundEven, K::other_math),
      HEBE_UNARY("saturate", Saturate, K::minimum_maximum),
      HEBE_BINARY("powf", Pow, K::exponential),
      HEBE_BINARY("pow", Pow, K::exponential),
      HEBE_BINARY("atan2", Atan2, K::trigonometric),
      HEBE_BINARY("copysign", Copysign, K::other_math),
      HEBE_BINARY("fdim", Fdim, K::minimum_maximum),
      HEBE_BINARY("fmod", Fmod, K::remainder),
      HEBE_BINARY("remainder", Remainder, K::remainder),
      HEBE_BINARY("hypot", Hypot, K::sqrt),
      HEBE_BINARY("rhypot", Rhypot, K::sqrt),
      HEBE_BINARY("div", Divide, K::divide),
      HEBE_BINARY("mul", Multiply, K::multiply),
      {"norm3d", {&loop_of<Ternary, Norm3>, K::sqrt}},
      {"rnorm3d", {&loop_of<Ternary, Rnorm3>, K::sqrt}},
      {"nextafter", {&next_after, K::other_math}},
      {"fma", {&fma_kernel, K::fma}},
#undef HEBE_UNARY
#undef HEBE_BINARY
  };
  return all;
}

template <class R, class F> struct WithInteger {
  HEBE_LANES void run(const void* const* in, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<R*>(out)[i] =
          static_cast<R>(F::of(static_cast<double>(static_cast<const R*>(in[0])[i]),
                               static_cast<const std::int32_t*>(in[1])[i]));
  }
};
template <class R, class F> struct OfInteger {
  HEBE_LANES void run(const void* const* in, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<R*>(out)[i] =
          static_cast<R>(F::of(static_cast<const std::int32_t*>(in[0])[i],
                               static_cast<double>(static_cast<const R*>(in[1])[i])));
  }
};
struct PowerOfInteger {
  HEBE_LANES double of(double x, int n) { return std::pow(x, n); }
};
struct TimesPower {
  HEBE_LANES double of(double x, int n) { return std::ldexp(x, n); }
};
struct Jn {
  HEBE_LANES double of(int n, double x) { return ::jn(n, x); }
};
struct Yn {
  HEBE_LANES double of(int n, double x) { return ::yn(n, x); }
};
template <template <class, class> class Shape, class F>
LaneKernel mixed_loop(const Operand& result) {
  if (result.lane == Lane::f64) return &Shape<double, F>::run;
  return result.scalar == Scalar::f32 ? &Shape<float, F>::run : nullptr;
}

} // namespace

LaneKernel fma_kernel(const Operand& result) {
  if (result.lane == Lane::f64) return fitting<Ternary<double, double, Fma>>();
  if (result.lane != Lane::f32) return nullptr;
  return narrow(result.scalar) ? fitting<Ternary<float, float, FmaOdd>>()
                               : fitting<Ternary<float, float, Fma>>();
}

FunctionLoop function_loop(std::string_view name, const Operand& result) {
  const auto found = rows().find(name);
  if (found == rows().end()) return {};
  return {found->second.make(result), found->second.work};
}

FunctionLoop mixed_function_loop(std::string_view name, const Operand& result) {
  if (name == "powi" || name == "fpowi")
    return {mixed_loop<WithInteger, PowerOfInteger>(result), WorkKind::exponential};
  if (name == "ldexp" || name == "scalbn")
    return {mixed_loop<WithInteger, TimesPower>(result), WorkKind::other_math};
  if (name == "jn") return {mixed_loop<OfInteger, Jn>(result), WorkKind::other_math};
  if (name == "yn") return {mixed_loop<OfInteger, Yn>(result), WorkKind::other_math};
  return {};
}

} // namespace hebe::ttgir
