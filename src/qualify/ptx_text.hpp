// PTX text cut into statements. In: PTX; out: parameters, labels and instructions with their
// operands. Invariant: comments, directives and scopes of inline assembly are left out; every
// statement that is none of these is an instruction.
#pragma once

#include "qualify/static_code.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::qualify {

struct PtxInstruction {
  std::string_view opcode; ///< "ld.global.v4.b32"
  std::string_view rest;   ///< operands, as written
  bool predicated = false;
  std::uint32_t line = 0;
  /// Operands between commas outside braces and brackets, trimmed.
  [[nodiscard]] std::vector<std::string_view> operands() const;
  /// The part of the opcode between dots, "" beyond the last.
  [[nodiscard]] bool has(std::string_view part) const;
};

struct PtxText {
  std::string_view target, entry;
  std::vector<ParameterPlace> parameters; ///< of the first entry
  std::vector<PtxInstruction> instructions;
  std::map<std::string_view, std::uint32_t> labels; ///< line
};

/// The views are of `text`.
[[nodiscard]] PtxText cut_ptx(std::string_view text);

/// Parts of an opcode: "ld", "global", "L1::evict_first", "v4", "b32".
[[nodiscard]] std::vector<std::string_view> parts_of(std::string_view opcode);
[[nodiscard]] std::string_view trimmed(std::string_view text);
/// Names of registers, parameters and symbols in an operand.
[[nodiscard]] std::vector<std::string_view> names_in(std::string_view operand);

} // namespace hebe::qualify
