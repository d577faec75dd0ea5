// Elementary functions in double, for results that are rounded to f32 or less. In: any double; out:
// the function's value within a few units of the 53rd bit, so that one rounding to 24 bits is right
// but for one value in millions. Invariant: only + - * / and bits, so that every processor and
// vector width gives the same.
#pragma once

#include "ttgir/vector_clone.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace hebe::ttgir::elementary {

/// e^(r + k ln 2), |r| <= 0.35; `shifted` holds k in its low bits (see below).
HEBE_LANES double scaled_exponential(double r, double shifted) {
  double sum = 1.0 / 6227020800.0; // 1/13!
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  const double value = sum * r * r + r + 1.0;
  const auto scale = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  return value * std::bit_cast<double>(scale);
}
// Adding this leaves a double's integer part in its low bits, rounded to nearest.
inline constexpr double kShift = 0x1.8p52;

HEBE_LANES double clipped(double x, double limit) {
  x = x > limit ? limit : x;
  return x < -limit ? -limit : x; // NaN stays
}

/// Beyond ±600 as at ±600: both are infinity or zero to a float.
HEBE_LANES double exponential(double x) {
  x = clipped(x, 600.0);
  const double shifted = x * 0x1.71547652b82fep+0 + kShift;
  const double k = shifted - kShift;
  const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  return scaled_exponential(r, shifted);
}

HEBE_LANES double exponential2(double x) {
  x = clipped(x, 900.0);
  const double shifted = x + kShift;
  return scaled_exponential((x - (shifted - kShift)) * 0x1.62e42fefa39efp-1, shifted);
}

struct Logarithm {
  double exponent, fraction; ///< ln x = exponent * ln 2 + fraction
};
/// Of a positive, normal, finite x.
HEBE_LANES Logarithm logarithm_parts(double x) {
  auto bits = std::bit_cast<std::uint64_t>(x);
  // The exponent after which the fraction lies in [sqrt(1/2), sqrt(2)).
  const std::uint64_t offset = bits - 0x3fe6a09e667f3bcdULL;
  const auto exponent = static_cast<std::int64_t>(offset) >> 52;
  bits -= static_cast<std::uint64_t>(exponent) << 52;
  const double f = std::bit_cast<double>(bits) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  double sum = 1.0 / 23.0;
  sum = sum * z + 1.0 / 21.0;
  sum = sum * z + 1.0 / 19.0;
  sum = sum * z + 1.0 / 17.0;
  sum = sum * z + 1.0 / 15.0;
  sum = sum * z + 1.0 / 13.0;
  sum = sum * z + 1.0 / 11.0;
  sum = sum * z + 1.0 / 9.0;
  sum = sum * z + 1.0 / 7.0;
  sum = sum * z + 1.0 / 5.0;
  sum = sum * z + 1.0 / 3.0;
  // Through the low bits of a shifted double: there is no vector conversion from 64-bit integers.
  const double e = std::bit_cast<double>(std::bit_cast<std::uint64_t>(kShift) +
                                         static_cast<std::uint64_t>(exponent)) -
                   kShift;
  return {e, 2.0 * s + 2.0 * s * z * sum};
}
HEBE_LANES double logarithm_ends(double x, double value) {
  value = x == 0 ? -HUGE_VAL : value;
  value = x == HUGE_VAL ? x : value;
  return x >= 0 ? value : std::bit_cast<double>(0x7ff8000000000000ULL); // negative or NaN
}
HEBE_LANES double logarithm(double x) {
  const Logarithm l = logarithm_parts(x);
  return logarithm_ends(x, l.exponent * 0x1.62e42fee00000p-1 +
                               (l.exponent * 0x1.a39ef35793c76p-33 + l.fraction));
}
HEBE_LANES double logarithm2(double x) {
  const Logarithm l = logarithm_parts(x);
  return logarithm_ends(x, l.exponent + l.fraction * 0x1.71547652b82fep+0);
}

/// Of finite arguments, by Halley's steps from an estimate.
inline double inverse_error_function(double y) {
  if (!(y > -1 && y < 1))
    return y == 1 ? HUGE_VAL : y == -1 ? -HUGE_VAL : std::bit_cast<double>(0x7ff8000000000000ULL);
  const double w = -std::log((1 - y) * (1 + y));
  const double t = 2 / (3.14159265358979323846 * 0.147) - w / 2; // Winitzki's approximation
  double x = std::copysign(std::sqrt(std::sqrt(t * t + w / 0.147) - t), y);
  for (int i = 0; i < 4; ++i) {
    // Near the ends 1 - erf is exact where erf is not.
    const double error = std::abs(y) < 0.5 ? std::erf(x) - y
                         : y > 0           ? (1 - y) - std::erfc(x)
                                           : std::erfc(-x) - (1 + y);
    const double step = error / (1.12837916709551257390 * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return x;
}
inline double inverse_complementary_error_function(double y) {
  if (y >= 0.5 || !(y > 0)) return y == 0 ? HUGE_VAL : inverse_error_function(1 - y);
  double x = std::sqrt(-std::log(y * 1.77245385090551602730 * std::sqrt(-std::log(y))));
  if (!(x > 0.3)) x = 0.5;
  for (int i = 0; i < 8; ++i) {
    const double step = (y - std::erfc(x)) / (1.12837916709551257390 * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return x;
}
/// exp(x * x) * erfc(x)
inline double scaled_complementary_error_function(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  const double z = 1 / (2 * x * x); // asymptotic
  return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z)))) / (x * 1.77245385090551602730);
}
inline double sine_of_pi_times(double x) {
  const double r = x - 2 * std::nearbyint(x / 2); // exact, in [-1, 1]
  if (r == 0 || r == 1 || r == -1) return std::copysign(0.0, x);
  return std::sin(3.14159265358979323846 * r);
}
inline double cosine_of_pi_times(double x) {
  const double r = std::abs(x - 2 * std::nearbyint(x / 2));
  if (r == 0.5) return 0;
  return std::cos(3.14159265358979323846 * r);
}

} // namespace hebe::ttgir::elementary
