#include "ttgir/rounding.hpp"

#include "ttgir/vector_clone.hpp"

#include <array>
#include <cstring>

namespace hebe::ttgir {
namespace {

enum class Special : std::uint8_t {
  ieee,          // infinities and NaNs at the top exponent
  finite_nan,    // no infinity; NaN is all ones (f8E4M3FN)
  unsigned_zero, // no infinity, no -0: its pattern is the NaN (…FNUZ)
};

template <unsigned Bits, unsigned Mantissa, int Bias, Special Kind> struct Format {
  static constexpr unsigned bits = Bits, mantissa = Mantissa;
  static constexpr int bias = Bias, smallest = 1 - Bias; // exponent of the smallest normal
  static constexpr Special special = Kind;
  static constexpr unsigned exponent_bits = Bits - 1 - Mantissa;
  static constexpr unsigned shift = 23 - Mantissa;
  static constexpr std::uint32_t lost = (1U << shift) - 1;
  static constexpr bool wide_exponent = exponent_bits == 8; // that of float: nothing is clipped
  // The largest finite value, as float bits.
  static constexpr std::uint32_t largest() {
    const int top = (1 << exponent_bits) - 1 - Bias - (Kind == Special::ieee ? 1 : 0);
    const std::uint32_t fraction =
        (Kind == Special::finite_nan ? (1U << Mantissa) - 2 : (1U << Mantissa) - 1);
    return static_cast<std::uint32_t>(top + 127) << 23 | fraction << shift;
  }
};
using F16 = Format<16, 10, 15, Special::ieee>;
using BF16 = Format<16, 7, 127, Special::ieee>;
using TF32 = Format<19, 10, 127, Special::ieee>;
using F8E5M2 = Format<8, 2, 15, Special::ieee>;
using F8E4M3 = Format<8, 3, 7, Special::finite_nan>;
using F8E4M3FNUZ = Format<8, 3, 8, Special::unsigned_zero>;
using F8E5M2FNUZ = Format<8, 2, 16, Special::unsigned_zero>;
using F8E4M3B11 = Format<8, 3, 11, Special::unsigned_zero>;

constexpr std::uint32_t kSign = 0x80000000U, kInfinity = 0x7f800000U, kQuiet = 0x00400000U;

template <int Exponent> constexpr float power() {
  static_assert(Exponent >= -126 && Exponent <= 127);
  return std::bit_cast<float>(static_cast<std::uint32_t>(Exponent + 127) << 23);
}

template <class F, Rounding R> struct Round {
  HEBE_LANES float one(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = all & kSign, a = all & ~kSign;
    std::uint32_t r = 0;
    if constexpr (R == Rounding::toward_zero)
      r = a & ~F::lost;
    else if constexpr (R == Rounding::nearest_away)
      r = (a + (F::lost + 1) / 2) & ~F::lost;
    else
      r = (a + F::lost / 2 + ((a >> F::shift) & 1)) & ~F::lost;
    if constexpr (!F::wide_exponent) {
      // Below the smallest normal the grid is even: steps of 2^(smallest - mantissa).
      constexpr int step = F::smallest - static_cast<int>(F::mantissa);
      const float magnitude = std::bit_cast<float>(a);
      float small = 0;
      if constexpr (R == Rounding::toward_zero) {
        const float clipped = a < kInfinity && magnitude < 1.0F ? magnitude : 0.0F;
        small =
            static_cast<float>(static_cast<std::int32_t>(clipped * power<-step>())) * power<step>();
      } else {
        small = (magnitude + power<step + 23>()) - power<step + 23>();
      }
      r = a < std::bit_cast<std::uint32_t>(power<F::smallest>())
              ? std::bit_cast<std::uint32_t>(small)
              : r;
    }
    constexpr std::uint32_t beyond = F::special == Special::ieee ? kInfinity : kInfinity | kQuiet;
    if constexpr (R == Rounding::saturate)
      r = r > F::largest() ? F::largest() : r;
    else if constexpr (R == Rounding::toward_zero)
      r = a == kInfinity ? beyond : r > F::largest() ? F::largest() : r;
    else
      r = r > F::largest() ? beyond : r;
    r = a > kInfinity ? ((a | kQuiet) & ~F::lost) : r;
    std::uint32_t result = sign | r;
    if constexpr (F::special == Special::unsigned_zero) result = r == 0 ? 0 : result;
    return std::bit_cast<float>(result);
  }
  HEBE_LANES void run(float* lanes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) lanes[i] = one(lanes[i]);
  }
};

// From a float that the format can represent to its bits.
template <class F> HEBE_LANES std::uint32_t bits_of_value(float value) {
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t a = all & ~kSign, sign = (all & kSign) >> (32 - F::bits);
  constexpr std::uint32_t top = (1U << F::exponent_bits) - 1;
  std::uint32_t r = (a >> F::shift) - (static_cast<std::uint32_t>(127 - F::bias) << F::mantissa);
  if constexpr (!F::wide_exponent) {
    constexpr int step = F::smallest - static_cast<int>(F::mantissa);
    const float magnitude = std::bit_cast<float>(a);
    const float clipped = magnitude < 1.0F ? magnitude : 0.0F; // what is not small is not used
    const auto small =
        static_cast<std::uint32_t>(static_cast<std::int32_t>(clipped * power<-step>()));
    r = a < std::bit_cast<std::uint32_t>(power<F::smallest>()) ? small : r;
  }
  if constexpr (F::special == Special::ieee) {
    const std::uint32_t payload = (a >> F::shift) & ((1U << F::mantissa) - 1);
    const std::uint32_t nan =
        top << F::mantissa | (payload == 0 ? 1U << (F::mantissa - 1) : payload);
    r = a > kInfinity ? nan : a == kInfinity ? top << F::mantissa : r;
    return sign | r;
  } else if constexpr (F::special == Special::finite_nan) {
    return sign | (a >= kInfinity ? (1U << (F::bits - 1)) - 1 : r);
  } else {
    return a >= kInfinity ? 1U << (F::bits - 1) : (r == 0 ? 0 : sign | r);
  }
}

template <class F>
HEBE_LANES std::uint32_t narrow_exponent(std::uint32_t all, std::uint32_t sign, std::uint32_t a) {
  constexpr std::uint32_t first_normal = 1U << F::mantissa;
  std::uint32_t r = (a << F::shift) + (static_cast<std::uint32_t>(127 - F::bias) << 23);
  // Exact: an integer below 2^mantissa times a power of two.
  const float small = static_cast<float>(static_cast<std::int32_t>(a)) *
                      power<F::smallest - static_cast<int>(F::mantissa)>();
  r = a < first_normal ? std::bit_cast<std::uint32_t>(small) : r;
  if constexpr (F::special == Special::ieee) {
    constexpr std::uint32_t top = ((1U << F::exponent_bits) - 1) << F::mantissa;
    r = a >= top ? kInfinity | (a - top) << F::shift : r;
    return sign | r;
  } else if constexpr (F::special == Special::finite_nan) {
    r = a == (1U << (F::bits - 1)) - 1 ? kInfinity | kQuiet : r;
    return sign | r;
  } else {
    r = all == 1U << (F::bits - 1) ? kInfinity | kQuiet : sign | r;
    return r;
  }
}

// From bits to the float of that value.
template <class F> HEBE_LANES float value_of_bits(std::uint32_t all) {
  const std::uint32_t sign = (all >> (F::bits - 1)) << 31;
  const std::uint32_t a = all & ((1U << (F::bits - 1)) - 1);
  if constexpr (F::wide_exponent) {
    return std::bit_cast<float>(sign | a << F::shift);
  } else {
    return std::bit_cast<float>(narrow_exponent<F>(all, sign, a));
  }
}
template <class F, class Word> struct Coding {
  struct In {
    HEBE_LANES void run(const std::byte* memory, void* lanes, std::size_t count) {
      auto* out = static_cast<float*>(lanes);
#pragma GCC ivdep
      for (std::size_t i = 0; i < count; ++i) {
        Word word;
        std::memcpy(&word, memory + i * sizeof(Word), sizeof word);
        out[i] = value_of_bits<F>(word);
      }
    }
  };
  struct Out {
    HEBE_LANES void run(const void* lanes, std::byte* memory, std::size_t count) {
      const auto* in = static_cast<const float*>(lanes);
#pragma GCC ivdep
      for (std::size_t i = 0; i < count; ++i) {
        const Word word = static_cast<Word>(bits_of_value<F>(in[i]));
        std::memcpy(memory + i * sizeof(Word), &word, sizeof word);
      }
    }
  };
};

// Exponents alone: 2^(bits - 127), 255 is NaN. Zero does not exist; encode gives 2^-127 for it.
struct ScaleIn {
  HEBE_LANES void run(const std::byte* memory, void* lanes, std::size_t count) {
    auto* out = static_cast<float*>(lanes);
    for (std::size_t i = 0; i < count; ++i) {
      const auto e = std::to_integer<std::uint32_t>(memory[i]);
      out[i] = std::bit_cast<float>(e == 255 ? kInfinity | kQuiet : e == 0 ? 1U << 22 : e << 23);
    }
  }
};
struct ScaleOut {
  HEBE_LANES void run(const void* lanes, std::byte* memory, std::size_t count) {
    const auto* in = static_cast<const float*>(lanes);
    for (std::size_t i = 0; i < count; ++i)
      memory[i] = static_cast<std::byte>((std::bit_cast<std::uint32_t>(in[i]) >> 23) & 255U);
  }
};

template <std::size_t Size> void copy_in(const std::byte* memory, void* lanes, std::size_t count) {
  std::memcpy(lanes, memory, count * Size);
}
template <std::size_t Size> void copy_out(const void* lanes, std::byte* memory, std::size_t count) {
  std::memcpy(memory, lanes, count * Size);
}
void truth_in(const std::byte* memory, void* lanes, std::size_t count) {
  auto* out = static_cast<std::uint8_t*>(lanes);
  for (std::size_t i = 0; i < count; ++i) out[i] = memory[i] != std::byte{0};
}

template <class F> RoundLanes rounding_in(Rounding rounding) {
  switch (rounding) {
  case Rounding::nearest_even:
    return fitting<Round<F, Rounding::nearest_even>>();
  case Rounding::saturate:
    return fitting<Round<F, Rounding::saturate>>();
  case Rounding::toward_zero:
    return fitting<Round<F, Rounding::toward_zero>>();
  case Rounding::nearest_away:
    break;
  }
  if constexpr (F::wide_exponent) return fitting<Round<F, Rounding::nearest_away>>();
  return nullptr;
}

} // namespace

std::optional<Lane> lane_of(Scalar scalar) {
  switch (scalar) {
  case Scalar::i1:
    return Lane::b1;
  case Scalar::i8:
    return Lane::i8;
  case Scalar::i16:
    return Lane::i16;
  case Scalar::i32:
    return Lane::i32;
  case Scalar::i64:
  case Scalar::index:
    return Lane::i64;
  case Scalar::f64:
    return Lane::f64;
  case Scalar::none:
  case Scalar::i4:
  case Scalar::i128:
  case Scalar::f4e2m1:
    return std::nullopt;
  default:
    return Lane::f32;
  }
}

bool narrow(Scalar scalar) {
  return scalar != Scalar::f32 && scalar != Scalar::f64 && is_float(scalar);
}

Decode decoder(Scalar scalar) {
  switch (scalar) {
  case Scalar::i1:
    return &truth_in;
  case Scalar::i8:
    return &copy_in<1>;
  case Scalar::i16:
    return &copy_in<2>;
  case Scalar::i32:
  case Scalar::tf32:
  case Scalar::f32:
    return &copy_in<4>;
  case Scalar::i64:
  case Scalar::index:
  case Scalar::f64:
    return &copy_in<8>;
  case Scalar::f16:
    return fitting<Coding<F16, std::uint16_t>::In>();
  case Scalar::bf16:
    return fitting<Coding<BF16, std::uint16_t>::In>();
  case Scalar::f8e5m2:
    return fitting<Coding<F8E5M2, std::uint8_t>::In>();
  case Scalar::f8e4m3:
    return fitting<Coding<F8E4M3, std::uint8_t>::In>();
  case Scalar::f8e4m3fnuz:
    return fitting<Coding<F8E4M3FNUZ, std::uint8_t>::In>();
  case Scalar::f8e5m2fnuz:
    return fitting<Coding<F8E5M2FNUZ, std::uint8_t>::In>();
  case Scalar::f8e4m3b11fnuz:
    return fitting<Coding<F8E4M3B11, std::uint8_t>::In>();
  case Scalar::f8e8m0:
    return &ScaleIn::run;
  default:
    return nullptr;
  }
}

Encode encoder(Scalar scalar) {
  switch (scalar) {
  case Scalar::i1:
  case Scalar::i8:
    return &copy_out<1>;
  case Scalar::i16:
    return &copy_out<2>;
  case Scalar::i32:
  case Scalar::tf32:
  case Scalar::f32:
    return &copy_out<4>;
  case Scalar::i64:
  case Scalar::index:
  case Scalar::f64:
    return &copy_out<8>;
  case Scalar::f16:
    return fitting<Coding<F16, std::uint16_t>::Out>();
  case Scalar::bf16:
    return fitting<Coding<BF16, std::uint16_t>::Out>();
  case Scalar::f8e5m2:
    return fitting<Coding<F8E5M2, std::uint8_t>::Out>();
  case Scalar::f8e4m3:
    return fitting<Coding<F8E4M3, std::uint8_t>::Out>();
  case Scalar::f8e4m3fnuz:
    return fitting<Coding<F8E4M3FNUZ, std::uint8_t>::Out>();
  case Scalar::f8e5m2fnuz:
    return fitting<Coding<F8E5M2FNUZ, std::uint8_t>::Out>();
  case Scalar::f8e4m3b11fnuz:
    return fitting<Coding<F8E4M3B11, std::uint8_t>::Out>();
  case Scalar::f8e8m0:
    return &ScaleOut::run;
  default:
    return nullptr;
  }
}

RoundLanes rounding_to(Scalar scalar, Rounding rounding) {
  switch (scalar) {
  case Scalar::f16:
    return rounding_in<F16>(rounding);
  case Scalar::bf16:
    return rounding_in<BF16>(rounding);
  case Scalar::tf32:
    return rounding_in<TF32>(rounding);
  case Scalar::f8e5m2:
    return rounding_in<F8E5M2>(rounding);
  case Scalar::f8e4m3:
    return rounding_in<F8E4M3>(rounding);
  case Scalar::f8e4m3fnuz:
    return rounding_in<F8E4M3FNUZ>(rounding);
  case Scalar::f8e5m2fnuz:
    return rounding_in<F8E5M2FNUZ>(rounding);
  case Scalar::f8e4m3b11fnuz:
    return rounding_in<F8E4M3B11>(rounding);
  default:
    return nullptr;
  }
}

} // namespace hebe::ttgir
