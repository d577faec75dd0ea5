// Short pieces of PTX, as tt.elementwise_inline_asm has them. In: the text; out: a list of
// instructions on numbered registers, or the first thing that is not known. Invariant: nothing is
// guessed: an instruction, type or operand without a row here is refused by its text.
//
// Known: mov (also of pairs), add sub mul mad fma div min max neg abs, and or xor not shl shr lop3
// prmt, setp selp, cvt between f16 bf16 f32 tf32 and the x2 forms of f16 and f8, and ex2 lg2 sin
// cos tanh rcp sqrt rsqrt, whose approximations are computed as exactly as math.* is.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::ttgir {

class Ptx {
public:
  enum class Type : std::uint8_t {
    b16,
    b32,
    b64,
    s16,
    u16,
    s32,
    u32,
    s64,
    u64,
    f16,
    bf16,
    f16x2,
    bf16x2,
    f32,
    f64,
    tf32,
    e4m3x2,
    e5m2x2,
    pred
  };
  enum class Do : std::uint8_t {
    nothing,
    mov,
    pack,
    unpack,
    add,
    sub,
    mul,
    mul_hi,
    mad,
    fma,
    div,
    min,
    max,
    neg,
    abs,
    and_,
    or_,
    xor_,
    not_,
    shl,
    shr,
    lop3,
    prmt,
    setp,
    selp,
    cvt,
    ex2,
    lg2,
    sin,
    cos,
    tanh,
    rcp,
    sqrt,
    rsqrt,
  };
  enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge };
  struct Operand {
    std::int32_t reg = -1; ///< -1: a constant
    std::uint64_t bits = 0;
  };
  struct Instruction {
    Do what = Do::nothing;
    Type type = Type::b32, from = Type::b32; ///< from: of a cvt's operand
    Compare compare = Compare::eq;
    std::string_view rounding;
    std::int32_t guard = -1; ///< predicate register
    bool negated = false, saturate = false;
    std::vector<Operand> to, in;
  };

  /// `operands`: how many $n there are; they are registers 0, 1, ….
  [[nodiscard]] static std::expected<Ptx, std::string> read(std::string text, std::size_t operands);
  [[nodiscard]] std::size_t registers() const { return registers_; }
  void run(std::uint64_t* registers) const;

private:
  std::string text_; // what `rounding` points into
  std::vector<Instruction> instructions_;
  std::size_t registers_ = 0;
  friend class PtxReader;
};

} // namespace hebe::ttgir
