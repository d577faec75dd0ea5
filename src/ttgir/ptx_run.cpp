#include "ttgir/elementary.hpp"
#include "ttgir/ptx.hpp"
#include "ttgir/rounding.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace hebe::ttgir {
namespace {

using Type = Ptx::Type;
using Do = Ptx::Do;
using U64 = std::uint64_t;

unsigned width_of(Type type) {
  switch (type) {
  case Type::b16:
  case Type::s16:
  case Type::u16:
  case Type::f16:
  case Type::bf16:
  case Type::e4m3x2:
  case Type::e5m2x2:
    return 16;
  case Type::b64:
  case Type::s64:
  case Type::u64:
  case Type::f64:
    return 64;
  case Type::pred:
    return 1;
  default:
    return 32;
  }
}
U64 cut(U64 value, unsigned width) { return width == 64 ? value : value & ((U64{1} << width) - 1); }
std::int64_t extended(U64 value, unsigned width) {
  return static_cast<std::int64_t>(value << (64 - width)) >> (64 - width);
}
bool is_signed(Type t) { return t == Type::s16 || t == Type::s32 || t == Type::s64; }
bool pair(Type t) { return t == Type::f16x2 || t == Type::bf16x2; }
bool floating(Type t) {
  return t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64 || t == Type::tf32;
}
Type half_of(Type t) { return t == Type::f16x2 ? Type::f16 : Type::bf16; }
Scalar scalar_of(Type t) {
  switch (t) {
  case Type::f16:
    return Scalar::f16;
  case Type::bf16:
    return Scalar::bf16;
  case Type::tf32:
    return Scalar::tf32;
  default:
    return Scalar::f32;
  }
}

double value_of(U64 bits, Type type) {
  if (type == Type::f64) return std::bit_cast<double>(bits);
  float lane = 0;
  std::byte memory[8];
  std::memcpy(memory, &bits, 8);
  decoder(scalar_of(type))(memory, &lane, 1);
  return static_cast<double>(lane);
}
U64 bits_of_value(double value, Type type, Rounding rounding = Rounding::nearest_even) {
  if (type == Type::f64) return std::bit_cast<U64>(value);
  float lane = type == Type::f32 ? static_cast<float>(value) : to_odd(value);
  if (const auto round = rounding_to(scalar_of(type), rounding)) round(&lane, 1);
  U64 bits = 0;
  std::byte memory[8] = {};
  encoder(scalar_of(type))(&lane, memory, 1);
  std::memcpy(&bits, memory, 8);
  return bits;
}

double float_result(Do what, double a, double b, double c) {
  switch (what) {
  case Do::add:
    return a + b;
  case Do::sub:
    return a - b;
  case Do::mul:
    return a * b;
  case Do::fma:
  case Do::mad:
    return std::fma(a, b, c);
  case Do::div:
    return a / b;
  case Do::min:
    return a != a ? b : b != b ? a : a < b || (a == b && std::signbit(a)) ? a : b;
  case Do::max:
    return a != a ? b : b != b ? a : a > b || (a == b && std::signbit(b)) ? a : b;
  case Do::neg:
    return -a;
  case Do::abs:
    return std::abs(a);
  case Do::ex2:
    return std::exp2(a);
  case Do::lg2:
    return std::log2(a);
  case Do::sin:
    return std::sin(a);
  case Do::cos:
    return std::cos(a);
  case Do::tanh:
    return std::tanh(a);
  case Do::rcp:
    return 1 / a;
  case Do::sqrt:
    return std::sqrt(a);
  case Do::rsqrt:
    return 1 / std::sqrt(a);
  default:
    return a;
  }
}
/// f32's own rounding of a sum: double would round twice.
U64 float_bits(Do what, Type type, U64 a, U64 b, U64 c) {
  const double x = value_of(a, type), y = value_of(b, type), z = value_of(c, type);
  if (type == Type::f32 && (what == Do::fma || what == Do::mad))
    return std::bit_cast<std::uint32_t>(
        std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
  return bits_of_value(float_result(what, x, y, z), type);
}

U64 permuted(U64 a, U64 b, U64 selector) {
  const U64 bytes = cut(b, 32) << 32 | cut(a, 32);
  U64 r = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const U64 choice = selector >> (4 * i) & 0xf, byte = bytes >> (8 * (choice & 7)) & 0xff;
    r |= ((choice & 8) ? ((byte & 0x80) ? U64{0xff} : U64{0}) : byte) << (8 * i);
  }
  return r;
}
U64 logic(U64 a, U64 b, U64 c, U64 table) {
  U64 r = 0;
  for (unsigned i = 0; i < 32; ++i) {
    const U64 row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
    r |= (table >> row & 1) << i;
  }
  return r;
}

U64 integer_bits(Do what, Type type, U64 a, U64 b, U64 c) {
  const unsigned width = width_of(type);
  a = cut(a, width);
  const std::int64_t sa = extended(a, width), sb = extended(cut(b, width), width);
  const U64 ub = cut(b, width);
  __extension__ using Wide = __int128;
  switch (what) {
  case Do::mov:
    return a;
  case Do::add:
    return a + b;
  case Do::sub:
    return a - b;
  case Do::mul:
    return a * b;
  case Do::mul_hi:
    return static_cast<U64>((is_signed(type) ? static_cast<Wide>(sa) * sb
                                             : static_cast<Wide>(a) * static_cast<Wide>(ub)) >>
                            width);
  case Do::mad:
    return a * b + c;
  case Do::div:
    if (ub == 0) return ~U64{0};
    return is_signed(type) ? (sb == -1 ? 0 - a : static_cast<U64>(sa / sb)) : a / ub;
  case Do::min:
    return is_signed(type) ? (sa < sb ? a : ub) : std::min(a, ub);
  case Do::max:
    return is_signed(type) ? (sa > sb ? a : ub) : std::max(a, ub);
  case Do::neg:
    return 0 - a;
  case Do::abs:
    return sa < 0 ? 0 - a : a;
  case Do::and_:
    return a & b;
  case Do::or_:
    return a | b;
  case Do::xor_:
    return a ^ b;
  case Do::not_:
    return ~a;
  case Do::shl:
    return cut(b, 32) >= width ? 0 : a << cut(b, 32);
  case Do::shr:
    if (is_signed(type)) return static_cast<U64>(sa >> std::min<U64>(cut(b, 32), width - 1));
    return cut(b, 32) >= width ? 0 : a >> cut(b, 32);
  case Do::prmt:
    return permuted(a, b, c);
  default:
    return a;
  }
}

bool compared(Ptx::Compare compare, Type type, U64 a, U64 b) {
  const auto decide = [&](auto x, auto y) {
    switch (compare) {
    case Ptx::Compare::eq:
      return x == y;
    case Ptx::Compare::ne:
      return x != y && x == x && y == y;
    case Ptx::Compare::lt:
      return x < y;
    case Ptx::Compare::le:
      return x <= y;
    case Ptx::Compare::gt:
      return x > y;
    case Ptx::Compare::ge:
      return x >= y;
    }
    return false;
  };
  if (floating(type)) return decide(value_of(a, type), value_of(b, type));
  const unsigned width = width_of(type);
  if (is_signed(type))
    return decide(extended(cut(a, width), width), extended(cut(b, width), width));
  return decide(cut(a, width), cut(b, width));
}

U64 eight_bits(Type type, U64 bits, bool decode) { // one f8 value to f32 bits, or back (saturating)
  const Scalar scalar = type == Type::e4m3x2 ? Scalar::f8e4m3 : Scalar::f8e5m2;
  std::byte memory[8] = {};
  if (decode) {
    std::memcpy(memory, &bits, 8);
    float lane = 0;
    decoder(scalar)(memory, &lane, 1);
    return std::bit_cast<std::uint32_t>(lane);
  }
  float lane = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  rounding_to(scalar, Rounding::saturate)(&lane, 1);
  encoder(scalar)(&lane, memory, 1);
  std::memcpy(&bits, memory, 8);
  return bits;
}

U64 converted(const Ptx::Instruction& i, U64 a, U64 b) {
  const bool to_f8 = i.type == Type::e4m3x2 || i.type == Type::e5m2x2,
             from_f8 = i.from == Type::e4m3x2 || i.from == Type::e5m2x2;
  const auto f32_of = [](U64 bits, Type type) {
    return U64{std::bit_cast<std::uint32_t>(static_cast<float>(value_of(bits, type)))};
  };
  if (from_f8)
    return bits_of_value(value_of(eight_bits(i.from, a & 0xff, true), Type::f32), Type::f16) |
           bits_of_value(value_of(eight_bits(i.from, a >> 8 & 0xff, true), Type::f32), Type::f16)
               << 16;
  if (to_f8 && i.from == Type::f16x2)
    return eight_bits(i.type, f32_of(a & 0xffff, Type::f16), false) |
           eight_bits(i.type, f32_of(a >> 16 & 0xffff, Type::f16), false) << 8;
  if (to_f8)
    return eight_bits(i.type, b, false) | eight_bits(i.type, a, false)
                                              << 8; // the first operand is the high half
  if (pair(i.type))
    return bits_of_value(value_of(b, i.from), half_of(i.type)) |
           bits_of_value(value_of(a, i.from), half_of(i.type)) << 16;
  const Rounding rounding = i.rounding == "rz"    ? Rounding::toward_zero
                            : i.rounding == "rna" ? Rounding::nearest_away
                                                  : Rounding::nearest_even;
  return bits_of_value(value_of(a, i.from), i.type, rounding);
}

U64 result_of(const Ptx::Instruction& i, U64 a, U64 b, U64 c, U64 d) {
  switch (i.what) {
  case Do::lop3:
    return logic(a, b, c, d);
  case Do::selp:
    return (c & 1) ? a : b;
  case Do::cvt:
    return converted(i, a, b);
  default:
    break;
  }
  const bool moves = i.what == Do::mov;
  if (pair(i.type) && !moves) {
    const Type half = half_of(i.type);
    return float_bits(i.what, half, a & 0xffff, b & 0xffff, c & 0xffff) |
           float_bits(i.what, half, a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff) << 16;
  }
  if (floating(i.type) && !moves) return float_bits(i.what, i.type, a, b, c);
  return integer_bits(i.what, i.type, a, b, c);
}

} // namespace

void Ptx::run(std::uint64_t* registers) const {
  const auto value = [&](const Operand& o) { return o.reg < 0 ? o.bits : registers[o.reg]; };
  for (const Instruction& i : instructions_) {
    if (i.guard >= 0 && ((registers[i.guard] & 1) != 0) == i.negated) continue;
    const auto in = [&](std::size_t k) { return k < i.in.size() ? value(i.in[k]) : U64{0}; };
    switch (i.what) {
    case Do::setp:
      if (i.to.size() == 2) {
        const Type half = half_of(i.type);
        registers[i.to[0].reg] = compared(i.compare, half, in(0) & 0xffff, in(1) & 0xffff);
        registers[i.to[1].reg] =
            compared(i.compare, half, in(0) >> 16 & 0xffff, in(1) >> 16 & 0xffff);
      } else {
        registers[i.to[0].reg] = compared(i.compare, i.type, in(0), in(1));
      }
      break;
    case Do::pack: {
      const unsigned width = width_of(i.type) / static_cast<unsigned>(i.in.size());
      U64 all = 0;
      for (std::size_t k = 0; k < i.in.size(); ++k) all |= cut(in(k), width) << (width * k);
      registers[i.to[0].reg] = all;
      break;
    }
    case Do::unpack: {
      const unsigned width = width_of(i.type) / static_cast<unsigned>(i.to.size());
      const U64 all = in(0);
      for (std::size_t k = 0; k < i.to.size(); ++k)
        registers[i.to[k].reg] = cut(all >> (width * k), width);
      break;
    }
    default:
      registers[i.to[0].reg] = cut(result_of(i, in(0), in(1), in(2), in(3)), width_of(i.type));
      break;
    }
  }
}

} // namespace hebe::ttgir
