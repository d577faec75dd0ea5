// Access to global memory by many elements at once. In: addresses, a mask, a format; out: lanes, or
// memory written; or the refusal of the first element that is out of bounds. Invariant: elements
// are accessed in order; a masked off element touches nothing.
#pragma once

#include "ttgir/run_plan.hpp"

namespace hebe::ttgir {

/// How elements lie in memory.
struct MemoryFormat {
  Scalar scalar = Scalar::i64;
  std::size_t bytes = 8;     ///< of an element in memory
  std::size_t lane_size = 8; ///< of an element in lanes
  Decode decode = nullptr;
  Encode encode = nullptr;
};
/// Of what `pointer` (or a tensor of pointers, or a descriptor's or memdesc's element) points to.
[[nodiscard]] std::optional<MemoryFormat> memory_format(const Type& element);

struct Addresses {
  const Lanes* pointers = nullptr;
  const Lanes* mask = nullptr; ///< null: all active
  std::size_t count = 0;
  std::size_t row = 0; ///< length of the last dimension: addresses are likely contiguous within
};

/// `other` null: what is masked off has no defined value. `out` gets count elements, or one if
/// uniform.
[[nodiscard]] Status load_lanes(Program& program, const Instruction& instruction,
                                const Addresses& at, const MemoryFormat& format, const Lanes* other,
                                Lanes& out);
[[nodiscard]] Status store_lanes(Program& program, const Instruction& instruction,
                                 const Addresses& at, const MemoryFormat& format,
                                 const Lanes& values);

/// Bytes of one access, or why not: out of bounds, misaligned, not writable.
[[nodiscard]] std::byte* place_of(Program& program, std::uint64_t address,
                                  const MemoryFormat& format, bool write);
[[nodiscard]] Status bad_access(const Program& program, const Instruction& instruction,
                                std::int64_t element, std::uint64_t address,
                                const MemoryFormat& format, std::string_view verb, bool write);

/// `count` elements side by side from `address` on, the first of them element number `element`.
[[nodiscard]] Status load_range(Program& program, const Instruction& instruction,
                                std::uint64_t address, const MemoryFormat& format,
                                std::size_t count, std::int64_t element, std::byte* out);
[[nodiscard]] Status store_range(Program& program, const Instruction& instruction,
                                 std::uint64_t address, const MemoryFormat& format,
                                 std::size_t count, std::int64_t element, const std::byte* in);

// tt.load and tt.store through a block pointer: run_block_pointers.cpp.
[[nodiscard]] InstructionPtr make_block_load(Compiler& compiler, const Operation& op);
[[nodiscard]] InstructionPtr make_block_store(Compiler& compiler, const Operation& op);

} // namespace hebe::ttgir
