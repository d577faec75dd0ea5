// Shared and tensor memory: what a memdesc is. In: allocations and ways to look at them; out: lanes
// read, lanes written. Invariant: bytes lie as in global memory (row-major, in the format's width);
// swizzles and layouts of the hardware do not exist here, so a view of other element type or shape
// sees the bytes of the row-major order.
#pragma once

#include "ttgir/run_memory.hpp"

namespace hebe::ttgir {

struct MemoryView {
  static constexpr std::size_t kMaxRank = 8;
  std::int64_t offset = 0; ///< bytes into the allocation
  std::uint32_t rank = 0;
  std::array<std::int64_t, kMaxRank> shape{}, strides{}; ///< strides in elements
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] bool dense() const; ///< row-major without gaps
};

/// A memdesc's type as instructions need it.
struct MemdescType {
  MemoryFormat format{};
  std::vector<std::int64_t> shape;
  [[nodiscard]] std::size_t elements() const;
};
[[nodiscard]] std::optional<MemdescType> memdesc_type(const Value& value);

/// New memory, zero (or 0xCC with poison_undefined), and a view of all of it.
[[nodiscard]] Lanes allocate_view(Program& program, const MemdescType& type);
/// Another view of the same allocation.
[[nodiscard]] Lanes derive_view(Program& program, const Lanes& from, const MemoryView& view);
[[nodiscard]] const MemoryView& view_of(const Lanes& memdesc);
/// Dense lanes of everything in view.
[[nodiscard]] Lanes read_view(Program& program, const Lanes& memdesc, const MemoryFormat& format);
void write_view(Program& program, const Lanes& memdesc, const MemoryFormat& format,
                const Lanes& values);

} // namespace hebe::ttgir
