// Uses of a tensor descriptor, shared by tt.descriptor_* and ttng.async_tma_*. In: which values are
// the descriptor and the coordinates; out: blocks loaded, stored, reduced. Invariant: blocks are
// dense lanes in row-major order, whatever memory they go to next.
#pragma once

#include "ttgir/run_atomics.hpp"
#include "ttgir/run_blocks.hpp"

namespace hebe::ttgir {

struct DescriptorUse {
  Slot descriptor = 0;
  std::vector<Slot> coordinates; ///< i32
  std::vector<std::int64_t> block;
  MemoryFormat format{};

  [[nodiscard]] Rectangle rectangle(Program& program) const;
  [[nodiscard]] Status load(Program& program, const Instruction& instruction, Lanes& out) const;
  [[nodiscard]] Status store(Program& program, const Instruction& instruction,
                             const Lanes& values) const;
  [[nodiscard]] Status reduce(Program& program, const Instruction& instruction, AtomicKind kind,
                              const Lanes& values) const;
};
/// Nothing, after a refusal.
[[nodiscard]] std::optional<DescriptorUse> descriptor_use(Compiler& compiler, const Operation& op,
                                                          const Value& descriptor,
                                                          std::span<Value* const> coordinates);

/// Rows chosen one by one, the same columns of each.
struct RowsUse {
  Slot descriptor = 0, column = 0;
  Operand rows{};
  std::size_t columns = 0;
  MemoryFormat format{};

  [[nodiscard]] Rectangle row(Program& program, std::size_t i) const;
  [[nodiscard]] Status gather(Program& program, const Instruction& instruction, Lanes& out) const;
  [[nodiscard]] Status scatter(Program& program, const Instruction& instruction,
                               const Lanes& values) const;
};
[[nodiscard]] std::optional<RowsUse> rows_use(Compiler& compiler, const Operation& op,
                                              const Value& descriptor, const Value& rows,
                                              const Value& column, std::size_t columns);

} // namespace hebe::ttgir
