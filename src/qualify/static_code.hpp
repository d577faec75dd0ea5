// What machine code holds, counted from its text. In: instructions of PTX or SASS as their readers
// found them; out: counts by class, and every access to memory beyond the chip's registers.
// Invariant: static: an instruction in a loop counts once; an instruction that no class is known
// for is counted under "other" and named.
#pragma once

#include "core/json.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::qualify {

enum class AccessKind : std::uint8_t {
  global_load,
  global_store,
  atomic,     ///< of global memory, reductions too
  async_copy, ///< global to shared, a few bytes a thread
  bulk_load,  ///< by the copy engine (TMA): bytes are the descriptor's
  bulk_store,
  shared_load,
  shared_store,
  shared_atomic,
  local_load, ///< spills, and arrays that did not fit registers
  local_store,
};
[[nodiscard]] std::string_view name_of(AccessKind kind);
[[nodiscard]] bool is_global(AccessKind kind);

struct StaticAccess {
  AccessKind kind = AccessKind::global_load;
  /// The parameter that the address is made of, "X or Y" where it may be either; empty: not traced
  /// (`untraced` says why). Shared and local accesses have none.
  std::string argument;
  std::string untraced;
  unsigned bytes = 0; ///< a thread; 0: the text does not say
  bool predicated = false;
  bool in_loop = false;  ///< between a backward branch and its label
  std::string modifiers; ///< cache operators, eviction, ordering: "L1::evict_first", "EF"
  std::uint32_t line = 0;
};

struct StaticCode {
  std::uint64_t instructions = 0, predicated = 0;
  std::map<std::string, std::uint64_t> classes;
  std::map<std::string, std::uint64_t> other; ///< opcodes without a class, by name
  std::vector<StaticAccess> accesses;         ///< in the order of the text

  void count(std::string_view class_name, std::string_view opcode, bool is_predicated);
  [[nodiscard]] std::uint64_t accesses_of(AccessKind kind) const;
  [[nodiscard]] std::uint64_t accesses_of(AccessKind kind, std::string_view argument) const;
  /// Marks what lies between a label and a branch back to it.
  void mark_loop(std::uint32_t first_line, std::uint32_t last_line);
};

/// "accesses" are grouped: one entry for accesses that are alike, with their number.
[[nodiscard]] Json to_json(const StaticCode& code);

/// Where an argument lies among a kernel's parameters.
struct ParameterPlace {
  std::string name;
  std::uint32_t offset = 0, bytes = 0;
  bool pointer = false; ///< or a tensor descriptor: addresses may be made of it
};

} // namespace hebe::qualify
