// SASS text cut into instructions. In: the text of `nvdisasm -c`; out: instructions in order, where
// labels stand. Invariant: only lines with an address are instructions.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace hebe::qualify {

struct SassInstruction {
  std::string_view predicate; ///< "@!P0"; empty: always
  std::string_view opcode;    ///< "LDG.E.128"
  std::vector<std::string_view> operands;
  std::uint32_t line = 0;
  [[nodiscard]] std::string_view mnemonic() const { return opcode.substr(0, opcode.find('.')); }
  [[nodiscard]] bool has(std::string_view modifier) const;
};

struct SassText {
  int arch = 0;
  std::vector<SassInstruction> instructions;
  std::map<std::string_view, std::size_t> labels; ///< the instruction that follows
};

/// The views are of `text`.
[[nodiscard]] SassText cut_sass(std::string_view text);

} // namespace hebe::qualify
