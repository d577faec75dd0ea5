// Conversions of one element between floats and integers. In: any value; out: what NVIDIA's cvt
// gives. Invariant: defined for every input; out of range goes to the nearest end, NaN to 0.
#pragma once

#include "ttgir/vector_clone.hpp"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace hebe::ttgir {

// PTX's cvt.rzi. There is no cvt to 8 bits: i8 is the low half of the conversion to 16.
template <class T> struct ToInteger {
  template <class F> HEBE_LANES T of(F a) {
    if constexpr (sizeof(T) == 1) {
      using Wider = std::conditional_t<std::is_signed_v<T>, std::int16_t, std::uint16_t>;
      return static_cast<T>(ToInteger<Wider>::of(a));
    } else {
      // The first value beyond: a power of two, which every float type has.
      constexpr F beyond = static_cast<F>(std::numeric_limits<T>::max() / 2 + 1) * 2;
      constexpr F least = static_cast<F>(std::numeric_limits<T>::min());
      const bool inside = a < beyond && a > least - 1; // false for NaN
      const T whole = static_cast<T>(inside ? a : F(0));
      const T end = a >= beyond ? std::numeric_limits<T>::max()
                                : (a <= least ? std::numeric_limits<T>::min() : T(0));
      return inside ? whole : end;
    }
  }
};

} // namespace hebe::ttgir
