#include "ttgir/run_blocks.hpp"

#include "ttgir/run_lanewise.hpp"

#include <algorithm>

namespace hebe::ttgir {
namespace {

/// Calls `row(address of the first element inside, elements before it, inside, element number of
/// the row)` for every row of the block along its last dimension.
template <class Row> Status each_row(const Rectangle& at, std::size_t bytes, Row&& row) {
  std::array<std::int64_t, Rectangle::kMaxRank> index{};
  const std::size_t last = at.rank - 1;
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < last; ++d) rows *= at.block[d];
  std::int64_t low = 0, high = at.block[last];
  if (at.checked >> last & 1) {
    low = std::clamp<std::int64_t>(-at.offsets[last], 0, high);
    high = std::clamp<std::int64_t>(at.shape[last] - at.offsets[last], low, high);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    bool inside = true;
    std::int64_t position = (at.offsets[last] + low) * at.strides[last];
    for (std::size_t d = 0; d < last; ++d) {
      const std::int64_t x = at.offsets[d] + index[d];
      inside = inside && (!(at.checked >> d & 1) || (x >= 0 && x < at.shape[d]));
      position += x * at.strides[d];
    }
    HEBE_CHECK(row(at.base + static_cast<std::uint64_t>(position) * bytes,
                   static_cast<std::size_t>(low), static_cast<std::size_t>(inside ? high - low : 0),
                   static_cast<std::size_t>(r * at.block[last])));
    for (std::size_t d = last; d-- > 0;) {
      if (++index[d] < at.block[d]) break;
      index[d] = 0;
    }
  }
  return {};
}

std::size_t elements_of(const Rectangle& at) {
  std::size_t count = 1;
  for (std::size_t d = 0; d < at.rank; ++d) count *= static_cast<std::size_t>(at.block[d]);
  return count;
}

} // namespace

Status load_rectangle(Program& program, const Instruction& instruction, const Rectangle& at,
                      const MemoryFormat& format, const Lanes& padding, Lanes& out) {
  const std::size_t count = elements_of(at), size = format.lane_size;
  out = program.dense(count * size);
  if (program.traffic) program.traffic->begin(instruction.number, count);
  const std::size_t length = static_cast<std::size_t>(at.block[at.rank - 1]);
  const std::int64_t step = at.strides[at.rank - 1];
  return each_row(at, format.bytes,
                  [&](std::uint64_t address, std::size_t before, std::size_t inside,
                      std::size_t first) -> Status {
                    std::byte* to = out.bytes() + first * size;
                    for (std::size_t i = 0; i < length; ++i)
                      if (i < before || i >= before + inside)
                        std::memcpy(to + i * size, padding.bytes(), size);
                    const auto number = static_cast<std::int64_t>(first + before);
                    to += before * size;
                    if (inside == 0) return {};
                    if (step == 1)
                      return load_range(program, instruction, address, format, inside, number, to);
                    for (std::size_t i = 0; i < inside;
                         ++i, address += static_cast<std::uint64_t>(step) * format.bytes)
                      HEBE_CHECK(load_range(program, instruction, address, format, 1,
                                            number + static_cast<std::int64_t>(i), to + i * size));
                    return {};
                  });
}

Status store_rectangle(Program& program, const Instruction& instruction, const Rectangle& at,
                       const MemoryFormat& format, const Lanes& values) {
  const std::size_t count = elements_of(at), size = format.lane_size;
  if (program.traffic) program.traffic->begin(instruction.number, count);
  const std::int64_t step = at.strides[at.rank - 1];
  return each_row(at, format.bytes,
                  [&](std::uint64_t address, std::size_t before, std::size_t inside,
                      std::size_t first) -> Status {
                    const auto number = static_cast<std::int64_t>(first + before);
                    if (inside > 0 && step == 1 && !values.uniform())
                      return store_range(program, instruction, address, format, inside, number,
                                         values.bytes() + (first + before) * size);
                    for (std::size_t i = 0; i < inside;
                         ++i, address += static_cast<std::uint64_t>(step) * format.bytes)
                      HEBE_CHECK(store_range(
                          program, instruction, address, format, 1,
                          number + static_cast<std::int64_t>(i),
                          values.bytes() + (values.uniform() ? 0 : (first + before + i) * size)));
                    return {};
                  });
}

Rectangle rectangle_of(const Descriptor& descriptor, std::span<const std::int64_t> coordinates,
                       std::span<const std::int64_t> block) {
  Rectangle at;
  at.base = descriptor.base;
  at.rank = descriptor.rank;
  at.shape = descriptor.shape;
  at.strides = descriptor.strides;
  at.checked = (1U << descriptor.rank) - 1;
  for (std::size_t d = 0; d < at.rank; ++d) {
    at.offsets[d] = coordinates[d];
    at.block[d] = block[d];
  }
  return at;
}

Lanes padding_of(const Descriptor& descriptor, Scalar scalar) {
  return descriptor.nan_padding && is_float(scalar) ? undefined_lane(scalar) : Lanes();
}

} // namespace hebe::ttgir
