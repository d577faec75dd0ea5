// Which parameters' pointers registers hold. In: instructions of SASS, the pointers' places in the
// constant bank; out: for each instruction, the pointers that each register may hold before it.
// Invariant: the fixed point of a forward flow over all branches: a pointer that is copied, or that
// an offset is added to, stays that pointer; every other result is none.
#pragma once

#include "qualify/sass_text.hpp"
#include "qualify/static_code.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hebe::qualify {

class SassOrigins {
public:
  /// Bit i: parameter i (of the first 62).
  using Set = std::uint64_t;
  static constexpr Set kLoaded = Set{1} << 63; ///< out of memory, or of another thread

  SassOrigins(const SassText& text, std::span<const ParameterPlace> parameters, std::uint32_t base);
  /// Of an address operand of instruction `number`: "desc[UR14][R16.64+0x1000]", "[R2.64+UR4]".
  [[nodiscard]] Set of_address(std::size_t number, std::string_view address) const;
  /// Of any operand: a register or a constant.
  [[nodiscard]] Set of_operand(std::size_t number, std::string_view operand) const;

private:
  static constexpr std::size_t kRegisters = 256, kUniform = 256;
  using State = std::array<Set, kRegisters + kUniform>;
  [[nodiscard]] Set value(const State& state, std::string_view operand) const;
  void flow(const SassInstruction& at, State& state) const;
  /// Of the word that lies `further` bytes behind the operand's.
  [[nodiscard]] Set constant(std::string_view operand, std::uint32_t further = 0) const;

  const SassText& text_;
  std::span<const ParameterPlace> parameters_;
  std::uint32_t base_;
  std::vector<std::size_t> block_of_, begins_;
  std::vector<State> before_; ///< of blocks
};

} // namespace hebe::qualify
