// math.*, libdevice calls and inline assembly. In: operations that name a function; out:
// instructions. Invariant: a symbol or an assembly text that is not known exactly is refused by its
// name.
#include "ttgir/libdevice.hpp"
#include "ttgir/ptx.hpp"
#include "ttgir/scan.hpp"

#include <algorithm>
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
  FunctionLoop loop =
      op.is(Op::math_fpowi) ? mixed_function_loop(name, *result) : function_loop(name, *result);
  return make_lanewise(compiler, op, loop.kernel, loop.work);
}

template <class T> struct Absolute {
  HEBE_LANES T of(T a) { return a >> (sizeof(T) * 8 - 1) ? static_cast<T>(0 - a) : a; }
};
template <class T> struct Ones {
  HEBE_LANES T of(T a) { return static_cast<T>(std::popcount(a)); }
};
template <class T> struct LeadingZeros {
  HEBE_LANES T of(T a) { return static_cast<T>(std::countl_zero(a)); }
};
template <class T> struct TrailingZeros {
  HEBE_LANES T of(T a) { return static_cast<T>(std::countr_zero(a)); }
};
template <class T> struct Power {
  HEBE_LANES T of(T base, T exponent) { // a negative exponent gives 0 but for ±1
    if (exponent >> (sizeof(T) * 8 - 1))
      return base == 1                       ? T(1)
             : static_cast<T>(base + 1) == 0 ? ((exponent & 1) ? base : T(1))
                                             : T(0);
    std::uint64_t r = 1, b = base;
    for (T e = exponent; e; e = static_cast<T>(e >> 1), b *= b)
      if (e & 1) r *= b;
    return static_cast<T>(r);
  }
};

template <class T> LaneKernel bits_kernel(Op op) {
  switch (op) {
  case Op::math_absi:
    return fitting<Unary<T, T, Absolute<T>>>();
  case Op::math_ctpop:
    return fitting<Unary<T, T, Ones<T>>>();
  case Op::math_ctlz:
    return fitting<Unary<T, T, LeadingZeros<T>>>();
  case Op::math_cttz:
    return fitting<Unary<T, T, TrailingZeros<T>>>();
  default:
    return fitting<Binary<T, T, Power<T>>>();
  }
}

InstructionPtr make_bits(Compiler& compiler, const Operation& op) {
  const auto result = compiler.operand(op.result(), op);
  if (!result) return nullptr;
  LaneKernel kernel = nullptr;
  switch (result->lane) {
  case Lane::i8:
    kernel = bits_kernel<std::uint8_t>(op.code);
    break;
  case Lane::i16:
    kernel = bits_kernel<std::uint16_t>(op.code);
    break;
  case Lane::i32:
    kernel = bits_kernel<std::uint32_t>(op.code);
    break;
  case Lane::i64:
    kernel = bits_kernel<std::uint64_t>(op.code);
    break;
  default:
    break;
  }
  return make_lanewise(compiler, op, kernel, WorkKind::integer);
}

struct IsNan {
  template <class T> HEBE_LANES std::uint8_t of(T a) { return a != a; }
};
struct IsInf {
  template <class T> HEBE_LANES std::uint8_t of(T a) {
    return std::abs(a) == static_cast<T>(HUGE_VAL);
  }
};
struct IsFinite {
  template <class T> HEBE_LANES std::uint8_t of(T a) {
    return std::abs(a) < static_cast<T>(HUGE_VAL);
  }
};

template <class T> LaneKernel class_kernel(Op op) {
  switch (op) {
  case Op::math_isnan:
    return fitting<Unary<T, std::uint8_t, IsNan>>();
  case Op::math_isinf:
    return fitting<Unary<T, std::uint8_t, IsInf>>();
  case Op::math_isfinite:
    return fitting<Unary<T, std::uint8_t, IsFinite>>();
  default:
    return nullptr; // what is normal depends on the format
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
  if (!loop.kernel)
    return compiler.unsupported(op, fmt::format("the function {} is not known", symbol));
  return make_lanewise(compiler, op, loop.kernel, loop.work);
}

/// PTX for `packed` elements at a time. Elements narrower than 32 bits share registers, lowest
/// first.
class Assembly final : public Instruction {
public:
  Status run(Program& program) const override {
    const std::size_t count = results[0].count(program);
    std::vector<Lanes> out;
    for (const Operand& result : results)
      out.push_back(result.shape.empty() && result.elements == 1
                        ? Lanes()
                        : program.dense(count * result.size()));
    std::vector<std::uint64_t> registers(ptx.registers());
    for (std::size_t begin = 0; begin < count; begin += packed) {
      std::size_t next = 0;
      for (const Operand& result : results) next += registers_of(result);
      for (const Operand& operand : operands) {
        const Lanes& lanes = program.at(operand.slot);
        move(
            operand, begin, count, &registers[next],
            [&](std::size_t i, std::byte* memory) {
              encoder(operand.scalar)(lanes.bytes() + (lanes.uniform() ? 0 : i * operand.size()),
                                      memory, 1);
            },
            nullptr);
        next += registers_of(operand);
      }
      ptx.run(registers.data());
      next = 0;
      for (std::size_t k = 0; k < results.size(); ++k) {
        const Operand& result = results[k];
        move(result, begin, count, &registers[next], nullptr,
             [&](std::size_t i, const std::byte* memory) {
               decoder(result.scalar)(memory, out[k].bytes() + i * result.size(), 1);
             });
        next += registers_of(result);
      }
    }
    for (std::size_t k = 0; k < results.size(); ++k)
      program.set(results[k].slot, std::move(out[k]));
    return {};
  }
  bool lanewise() const override { return true; }

  [[nodiscard]] std::size_t registers_of(const Operand& o) const {
    const std::size_t bits = bits_of(o.scalar);
    return bits >= 32 ? packed : (packed * bits + 31) / 32;
  }
  /// Elements from `begin` on into registers by `read`, or out of them by `write`.
  template <class Read, class Write>
  void move(const Operand& o, std::size_t begin, std::size_t count, std::uint64_t* registers,
            Read&& read, Write&& write) const {
    const std::size_t bits = std::max(bits_of(o.scalar), 8U), per = bits >= 32 ? 1 : 32 / bits;
    for (std::size_t j = 0; j < packed && begin + j < count; ++j) {
      std::uint64_t& word = registers[j / per];
      const std::size_t shift = bits * (j % per);
      std::byte memory[8] = {};
      if constexpr (!std::is_null_pointer_v<std::remove_cvref_t<Read>>) {
        read(begin + j, memory);
        std::uint64_t element = 0;
        std::memcpy(&element, memory, 8);
        word = (j % per == 0 ? 0 : word) | element << shift;
      } else {
        const std::uint64_t element = word >> shift;
        std::memcpy(memory, &element, 8);
        write(begin + j, memory);
      }
    }
  }
  Ptx ptx;
  std::size_t packed = 1;
  std::vector<Operand> operands, results;
};

struct Itself {
  HEBE_LANES float of(float a) { return a; }
};

InstructionPtr make_assembly(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Assembly>();
  const auto text =
      string(op.text_of("asm_string")).value_or(std::string(op.text_of("asm_string")));
  // What Triton makes of tf32x3, often and for whole tiles.
  if (text == "cvt.rna.tf32.f32 $0, $1;" && compiler.numeric(op.result()) &&
      op.result().type->leaf().scalar == Scalar::f32) {
    auto rounded =
        make_lanewise(compiler, op, fitting<Unary<float, float, Itself>>(), WorkKind::convert);
    if (rounded)
      static_cast<Lanewise&>(*rounded).round = rounding_to(Scalar::tf32, Rounding::nearest_away);
    return rounded;
  }
  made->packed = static_cast<std::size_t>(
      std::clamp<std::int64_t>(integer(op.text_of("packed_element")).value_or(1), 1, 32));
  std::size_t registers = 0;
  for (const Value& value : op.results) {
    const auto result = compiler.operand(value, op);
    if (!result) return nullptr;
    made->results.push_back(*result);
    registers += made->registers_of(*result);
  }
  for (const Value* value : op.operands) {
    const auto operand = compiler.operand(*value, op);
    if (!operand) return nullptr;
    made->operands.push_back(*operand);
    registers += made->registers_of(*operand);
  }
  if (made->results.empty()) return compiler.unsupported(op, "it has no result");
  auto ptx = Ptx::read(text, registers);
  if (!ptx)
    return compiler.unsupported(op, fmt::format("the assembly \"{}\" is not known, at \"{}\"",
                                                trimmed(text).substr(0, 120), ptx.error()));
  made->ptx = std::move(*ptx);
  made->work = WorkKind::other_math;
  made->work_type = "asm";
  made->work_elements = std::max<std::size_t>(made->results[0].elements, 1);
  return made;
}

} // namespace

void add_functions(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  for (const Op op :
       {Op::math_absf,      Op::math_ceil,  Op::math_floor,    Op::math_round, Op::math_roundeven,
        Op::math_trunc,     Op::math_sqrt,  Op::math_rsqrt,    Op::math_cbrt,  Op::math_exp,
        Op::math_exp2,      Op::math_expm1, Op::math_log,      Op::math_log2,  Op::math_log10,
        Op::math_log1p,     Op::math_sin,   Op::math_cos,      Op::math_tan,   Op::math_asin,
        Op::math_acos,      Op::math_atan,  Op::math_sinh,     Op::math_cosh,  Op::math_tanh,
        Op::math_asinh,     Op::math_acosh, Op::math_atanh,    Op::math_erf,   Op::math_erfc,
        Op::math_fma,       Op::math_powf,  Op::math_copysign, Op::math_atan2, Op::math_fpowi,
        Op::tt_precise_sqrt})
    add(op, &make_function);
  for (const Op op : {Op::math_absi, Op::math_ctpop, Op::math_ctlz, Op::math_cttz, Op::math_ipowi})
    add(op, &make_bits);
  for (const Op op : {Op::math_isnan, Op::math_isinf, Op::math_isfinite}) add(op, &make_class);
  add(Op::tt_extern_elementwise, &make_extern);
  add(Op::tt_elementwise_inline_asm, &make_assembly);
}

} // namespace hebe::ttgir
