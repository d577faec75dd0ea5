// Rectangles of global memory: block pointers, tensor descriptors, bulk copies. In: a base, sizes,
// strides and offsets; out: a dense block of lanes, or memory written. Invariant: what lies outside
// the checked sizes is padded or left alone; what lies inside them must lie in a buffer.
#pragma once

#include "ttgir/run_memory.hpp"

namespace hebe::ttgir {

struct Rectangle {
  static constexpr std::size_t kMaxRank = Descriptor::kMaxRank;
  std::uint64_t base = 0;
  std::size_t rank = 0;
  std::array<std::int64_t, kMaxRank> shape{}, strides{}, offsets{}; ///< in elements
  std::array<std::int64_t, kMaxRank> block{};
  std::uint32_t checked = 0; ///< bit d: dimension d is bounded by the shape
};

/// `padding`: one lane, for elements outside.
[[nodiscard]] Status load_rectangle(Program& program, const Instruction& instruction,
                                    const Rectangle& at, const MemoryFormat& format,
                                    const Lanes& padding, Lanes& out);
[[nodiscard]] Status store_rectangle(Program& program, const Instruction& instruction,
                                     const Rectangle& at, const MemoryFormat& format,
                                     const Lanes& values);
/// Calls `visit(address, element number)` for what lies inside; it returns a Status.
template <class Visit> Status each_inside(const Rectangle& at, std::size_t bytes, Visit&& visit);

/// The rectangle of a descriptor at these coordinates.
[[nodiscard]] Rectangle rectangle_of(const Descriptor& descriptor,
                                     std::span<const std::int64_t> coordinates,
                                     std::span<const std::int64_t> block);
/// What a descriptor gives for elements outside: 0, or NaN where it asks for that.
[[nodiscard]] Lanes padding_of(const Descriptor& descriptor, Scalar scalar);

template <class Visit> Status each_inside(const Rectangle& at, std::size_t bytes, Visit&& visit) {
  std::array<std::int64_t, Rectangle::kMaxRank> index{};
  std::int64_t count = 1;
  for (std::size_t d = 0; d < at.rank; ++d) count *= at.block[d];
  for (std::int64_t i = 0; i < count; ++i) {
    bool inside = true;
    std::int64_t position = 0;
    for (std::size_t d = 0; d < at.rank; ++d) {
      const std::int64_t x = at.offsets[d] + index[d];
      inside = inside && (!(at.checked >> d & 1) || (x >= 0 && x < at.shape[d]));
      position += x * at.strides[d];
    }
    if (inside)
      if (Status status = visit(at.base + static_cast<std::uint64_t>(position) * bytes,
                                static_cast<std::size_t>(i));
          !status)
        return status;
    for (std::size_t d = at.rank; d-- > 0;) {
      if (++index[d] < at.block[d]) break;
      index[d] = 0;
    }
  }
  return {};
}

} // namespace hebe::ttgir
