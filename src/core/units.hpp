// Physical quantities as types. In: raw doubles, explicitly; out: arithmetic that only type-checks
// when the units do. Invariant: adding joules to watts does not compile (tests/compile_fail).
#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>

namespace hebe {

template <class Unit> class Quantity {
public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity o) { return value_ += o.value_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value_ -= o.value_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return a * k; }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value_ / k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

private:
  double value_ = 0.0;
};

using Joules = Quantity<struct JouleUnit>;
using Watts = Quantity<struct WattUnit>;
using Seconds = Quantity<struct SecondUnit>;
using Hertz = Quantity<struct HertzUnit>;
using Celsius = Quantity<struct CelsiusUnit>;

constexpr Joules operator*(Watts p, Seconds t) { return Joules(p.value() * t.value()); }
constexpr Joules operator*(Seconds t, Watts p) { return p * t; }
constexpr Watts operator/(Joules e, Seconds t) { return Watts(e.value() / t.value()); }
constexpr Seconds operator/(Joules e, Watts p) { return Seconds(e.value() / p.value()); }

/// A size in bytes. Integral: sizes are exact.
struct Bytes {
  std::uint64_t count = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
};

/// Device counters stay in the device's own integer unit until these one-line conversions.
constexpr Watts from_milliwatts(std::int64_t mw) { return Watts(static_cast<double>(mw) * 1e-3); }
constexpr Joules from_millijoules(std::int64_t mj) {
  return Joules(static_cast<double>(mj) * 1e-3);
}

using Nanos = std::chrono::nanoseconds;
constexpr Seconds to_seconds(Nanos d) { return Seconds(static_cast<double>(d.count()) * 1e-9); }
inline Nanos to_nanos(Seconds s) { return Nanos(std::llround(s.value() * 1e9)); }

} // namespace hebe
