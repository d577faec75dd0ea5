// From one element type to another. In: arith's and Triton's casts; out: instructions. Invariant: a
// conversion between floats rounds once, from the exact value; what a wider format can hold is not
// touched at all.
#include "ttgir/lane_casts.hpp"
#include "ttgir/run_lanewise.hpp"

#include <limits>
#include <type_traits>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

struct Same {
  HEBE_LANES float of(float a) { return a; }
};
struct Widen {
  HEBE_LANES double of(float a) { return static_cast<double>(a); }
};
struct Shorten {
  HEBE_LANES float of(double a) { return static_cast<float>(a); }
};
struct ShortenOdd {
  HEBE_LANES float of(double a) { return to_odd(a); }
};

template <class R> struct FromSigned {
  template <class T> HEBE_LANES R of(T a) { return static_cast<R>(a); }
};
template <class R> struct FromUnsigned {
  template <class T> HEBE_LANES R of(T a) {
    return static_cast<R>(static_cast<std::make_unsigned_t<T>>(a));
  }
};
struct TruthIsOne {
  HEBE_LANES float of(std::uint8_t a) { return static_cast<float>(a); }
};
struct TruthIsMinusOne {
  HEBE_LANES float of(std::uint8_t a) { return -static_cast<float>(a); }
};
// To formats of at most 22 bits: rounded to odd on the way, first to what a double holds.
HEBE_LANES std::uint64_t fifty_two_bits(std::uint64_t a) {
  constexpr std::uint64_t lost = 0xfff;
  return a >> 53 ? (a & ~lost) | ((a & lost) ? lost + 1 : 0) : a;
}
struct OddFromSigned {
  template <class T> HEBE_LANES float of(T a) {
    if constexpr (sizeof(T) < 8) return to_odd(static_cast<double>(a));
    const auto magnitude =
        a < 0 ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
    const auto value = static_cast<double>(fifty_two_bits(magnitude));
    return to_odd(a < 0 ? -value : value);
  }
};
struct OddFromUnsigned {
  template <class T> HEBE_LANES float of(T a) {
    return to_odd(static_cast<double>(fifty_two_bits(static_cast<std::make_unsigned_t<T>>(a))));
  }
};

template <class From> LaneKernel float_to_integer(Lane to, bool is_signed) {
  switch (to) {
  case Lane::i8:
    return is_signed ? fitting<Unary<From, std::int8_t, ToInteger<std::int8_t>>>()
                     : fitting<Unary<From, std::uint8_t, ToInteger<std::uint8_t>>>();
  case Lane::i16:
    return is_signed ? fitting<Unary<From, std::int16_t, ToInteger<std::int16_t>>>()
                     : fitting<Unary<From, std::uint16_t, ToInteger<std::uint16_t>>>();
  case Lane::i32:
    return is_signed ? fitting<Unary<From, std::int32_t, ToInteger<std::int32_t>>>()
                     : fitting<Unary<From, std::uint32_t, ToInteger<std::uint32_t>>>();
  case Lane::i64:
    return is_signed ? fitting<Unary<From, std::int64_t, ToInteger<std::int64_t>>>()
                     : fitting<Unary<From, std::uint64_t, ToInteger<std::uint64_t>>>();
  default:
    return nullptr;
  }
}

template <class From> LaneKernel integer_to_float(const Operand& to, bool is_signed) {
  if (to.lane == Lane::f64)
    return is_signed ? fitting<Unary<From, double, FromSigned<double>>>()
                     : fitting<Unary<From, double, FromUnsigned<double>>>();
  if (to.scalar == Scalar::f32)
    return is_signed ? fitting<Unary<From, float, FromSigned<float>>>()
                     : fitting<Unary<From, float, FromUnsigned<float>>>();
  return is_signed ? fitting<Unary<From, float, OddFromSigned>>()
                   : fitting<Unary<From, float, OddFromUnsigned>>();
}

struct LowestBit {
  template <class T> HEBE_LANES std::uint8_t of(T a) { return static_cast<std::uint8_t>(a & 1); }
};
template <class T> struct Minus {
  HEBE_LANES T of(std::uint8_t a) { return static_cast<T>(-static_cast<int>(a)); }
};

template <class From, template <class> class F> LaneKernel integer_to(Lane to) {
  switch (to) {
  case Lane::b1:
    return fitting<Unary<From, std::uint8_t, LowestBit>>();
  case Lane::i8:
    return fitting<Unary<From, std::int8_t, F<std::int8_t>>>();
  case Lane::i16:
    return fitting<Unary<From, std::int16_t, F<std::int16_t>>>();
  case Lane::i32:
    return fitting<Unary<From, std::int32_t, F<std::int32_t>>>();
  case Lane::i64:
    return fitting<Unary<From, std::int64_t, F<std::int64_t>>>();
  default:
    return nullptr;
  }
}
template <class From> LaneKernel integer_to_integer(Lane to, bool is_signed) {
  return is_signed ? integer_to<From, FromSigned>(to) : integer_to<From, FromUnsigned>(to);
}
LaneKernel truth_to_integer(Lane to, bool is_signed) {
  return is_signed ? integer_to<std::uint8_t, Minus>(to)
                   : integer_to<std::uint8_t, FromUnsigned>(to);
}

InstructionPtr make_integer_cast(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  if (from->lane == to->lane) return make_alias(compiler, op);
  const bool is_signed = op.is(Op::arith_extsi) || op.is(Op::arith_index_cast);
  LaneKernel kernel = nullptr;
  switch (from->lane) {
  case Lane::b1:
    kernel = truth_to_integer(to->lane, is_signed);
    break;
  case Lane::i8:
    kernel = integer_to_integer<std::int8_t>(to->lane, is_signed);
    break;
  case Lane::i16:
    kernel = integer_to_integer<std::int16_t>(to->lane, is_signed);
    break;
  case Lane::i32:
    kernel = integer_to_integer<std::int32_t>(to->lane, is_signed);
    break;
  case Lane::i64:
    kernel = integer_to_integer<std::int64_t>(to->lane, is_signed);
    break;
  default:
    break;
  }
  return make_lanewise(compiler, op, kernel, WorkKind::convert);
}

InstructionPtr make_to_float(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  const bool is_signed = op.is(Op::arith_sitofp);
  LaneKernel kernel = nullptr;
  switch (from->lane) {
  case Lane::b1:
    if (to->lane == Lane::f32)
      kernel = is_signed ? fitting<Unary<std::uint8_t, float, TruthIsMinusOne>>()
                         : fitting<Unary<std::uint8_t, float, TruthIsOne>>();
    break;
  case Lane::i8:
    kernel = integer_to_float<std::int8_t>(*to, is_signed);
    break;
  case Lane::i16:
    kernel = integer_to_float<std::int16_t>(*to, is_signed);
    break;
  case Lane::i32:
    kernel = integer_to_float<std::int32_t>(*to, is_signed);
    break;
  case Lane::i64:
    kernel = integer_to_float<std::int64_t>(*to, is_signed);
    break;
  default:
    break;
  }
  return make_lanewise(compiler, op, kernel, WorkKind::convert);
}

InstructionPtr make_to_integer(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  const bool is_signed = op.is(Op::arith_fptosi);
  const LaneKernel kernel = from->lane == Lane::f64 ? float_to_integer<double>(to->lane, is_signed)
                            : from->lane == Lane::f32 ? float_to_integer<float>(to->lane, is_signed)
                                                      : nullptr;
  return make_lanewise(compiler, op, kernel, WorkKind::convert);
}

bool eight_bits(Scalar scalar) { return is_float(scalar) && bits_of(scalar) == 8; }

InstructionPtr make_float_cast(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  const bool floats = is_float(from->scalar) && is_float(to->scalar);
  if (!floats) return compiler.unsupported(op, "it is not between floats");
  if (from->scalar == to->scalar) return make_alias(compiler, op);
  // f8 values, and f16 and bf16 ones, are values of every wider format.
  if (from->lane == Lane::f32 && to->lane == Lane::f32 &&
      bits_of(to->scalar) > bits_of(from->scalar))
    return make_alias(compiler, op);
  if (to->lane == Lane::f64)
    return make_lanewise(compiler, op, fitting<Unary<float, double, Widen>>(), WorkKind::convert);

  Rounding rounding = Rounding::nearest_even;
  const auto word = op.is(Op::tt_fp_to_fp) ? op.text_of("rounding") : op.text_of("roundingmode");
  if (word == "rtz" || word == "toward_zero")
    rounding = Rounding::toward_zero;
  else if (!word.empty() && word != "rtne" && word != "to_nearest_even")
    return compiler.unsupported(op, fmt::format("rounding '{}' is not known", word));
  else if (op.is(Op::tt_fp_to_fp) && eight_bits(to->scalar))
    rounding = Rounding::saturate;
  LaneKernel kernel = fitting<Unary<float, float, Same>>();
  if (from->lane == Lane::f64) {
    if (to->scalar == Scalar::f32 && rounding != Rounding::nearest_even)
      return compiler.unsupported(op, "f64 to f32 other than to nearest");
    kernel = to->scalar == Scalar::f32 ? fitting<Unary<double, float, Shorten>>()
                                       : fitting<Unary<double, float, ShortenOdd>>();
  }
  auto made = make_lanewise(compiler, op, kernel, WorkKind::convert);
  if (made) static_cast<Lanewise&>(*made).round = rounding_to(to->scalar, rounding);
  return made;
}

/// The same bits as another type, where one of the two is narrower than its lane.
class Recode final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& in = program.at(from.slot);
    const std::size_t count = in.uniform() ? 1 : to.count(program);
    Lanes out = in.uniform() ? Lanes() : program.dense(count * to.size());
    constexpr std::size_t chunk = 1024;
    std::byte memory[chunk * 8];
    for (std::size_t begin = 0; begin < count; begin += chunk) {
      const std::size_t part = std::min(chunk, count - begin);
      encode(in.bytes() + begin * from.size(), memory, part);
      decode(memory, out.bytes() + begin * to.size(), part);
    }
    program.set(to.slot, std::move(out));
    return {};
  }
  bool lanewise() const override { return true; }
  Operand from{}, to{};
  Encode encode = nullptr;
  Decode decode = nullptr;
};

InstructionPtr make_bitcast(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  if (bits_of(from->scalar) != bits_of(to->scalar))
    return compiler.unsupported(op, "the types differ in width");
  if (from->scalar == to->scalar || (!narrow(from->scalar) && !narrow(to->scalar)))
    return make_alias(compiler, op);
  auto made = std::make_unique<Recode>();
  made->from = *from;
  made->to = *to;
  made->encode = encoder(from->scalar);
  made->decode = decoder(to->scalar);
  return made;
}

} // namespace

void add_conversions(Makers& makers) {
  for (const Op op : {Op::arith_extsi, Op::arith_extui, Op::arith_trunci, Op::arith_index_cast,
                      Op::arith_index_castui, Op::tt_int_to_ptr, Op::tt_ptr_to_int})
    makers[static_cast<std::size_t>(op)] = &make_integer_cast;
  for (const Op op : {Op::arith_sitofp, Op::arith_uitofp})
    makers[static_cast<std::size_t>(op)] = &make_to_float;
  for (const Op op : {Op::arith_fptosi, Op::arith_fptoui})
    makers[static_cast<std::size_t>(op)] = &make_to_integer;
  for (const Op op : {Op::arith_extf, Op::arith_truncf, Op::tt_fp_to_fp})
    makers[static_cast<std::size_t>(op)] = &make_float_cast;
  for (const Op op : {Op::arith_bitcast, Op::tt_bitcast})
    makers[static_cast<std::size_t>(op)] = &make_bitcast;
}

} // namespace hebe::ttgir
