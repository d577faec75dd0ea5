// Number formats: bytes in memory, values in lanes, rounding. In: one of the two; out: the other. A
// lane is a float for every format up to f32 (so f16 lanes hold floats that f16 can represent), the
// C++ type of the width for integers and f64, and one byte for i1. Invariant: decode and encode
// give every bit pattern of every format back, NaNs too.
#pragma once

#include "ttgir/type.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hebe::ttgir {

/// What a lane is in C++: uint8 (0 or 1), signed integers, float, double. Pointers are i64.
enum class Lane : std::uint8_t { b1, i8, i16, i32, i64, f32, f64 };

/// Nothing for formats that are only ever carried packed (i4, f4) or not at all (i128).
[[nodiscard]] std::optional<Lane> lane_of(Scalar scalar);
[[nodiscard]] constexpr std::size_t size_of(Lane lane) {
  constexpr std::size_t sizes[] = {1, 1, 2, 4, 8, 4, 8};
  return sizes[static_cast<std::size_t>(lane)];
}
/// A float format with lanes wider than it is: results are rounded on every write.
[[nodiscard]] bool narrow(Scalar scalar);

/// Memory to lanes and back, `count` elements. encode expects values that the format can represent.
using Decode = void (*)(const std::byte* memory, void* lanes, std::size_t count);
using Encode = void (*)(const void* lanes, std::byte* memory, std::size_t count);
[[nodiscard]] Decode decoder(Scalar scalar); ///< null where lane_of gives nothing
[[nodiscard]] Encode encoder(Scalar scalar);

/// Overflow goes to infinity, or to NaN in formats without one; `saturate` is PTX's
/// cvt.rn.satfinite: to the largest finite value, infinities too. Towards zero a finite value stays
/// finite. `nearest_away` is cvt.rna, which PTX has for tf32 only.
enum class Rounding : std::uint8_t { nearest_even, saturate, toward_zero, nearest_away };

/// Rounds lanes in place to what the format can represent; null for f32, which holds them already.
using RoundLanes = void (*)(float* lanes, std::size_t count);
[[nodiscard]] RoundLanes rounding_to(Scalar scalar, Rounding rounding = Rounding::nearest_even);

/// To float, to odd: what is lost leaves a mark in the last bit, so that rounding the result to a
/// format of at most 22 bits gives what one rounding of `value` would have given.
[[gnu::always_inline]] inline float to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double back = static_cast<double>(nearest);
  const bool exact = back == value || value != value;
  const bool over = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  return exact ? nearest : std::bit_cast<float>((over ? bits - 1 : bits) | 1U);
}

} // namespace hebe::ttgir
