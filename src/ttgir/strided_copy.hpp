// Elements from a place with strides to a dense one. In: a shape and the source's strides; out: the
// elements in row-major order. Invariant: sizes are those of lanes, 1, 2, 4 or 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hebe::ttgir {

/// out[i, j, …] = in[i * strides[0] + j * strides[1] + …], strides in elements; 0 repeats.
void copy_strided(std::byte* out, const std::byte* in, std::size_t element_size,
                  std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);
/// The other way: in is dense, out has the strides.
void scatter_strided(std::byte* out, const std::byte* in, std::size_t element_size,
                     std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

/// Strides of a dense tensor of that shape.
[[nodiscard]] std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape);

/// Calls `body.operator()<T>()` with the unsigned type of that size.
template <class Body> void with_element(std::size_t size, Body&& body) {
  switch (size) {
  case 1:
    body.template operator()<std::uint8_t>();
    break;
  case 2:
    body.template operator()<std::uint16_t>();
    break;
  case 4:
    body.template operator()<std::uint32_t>();
    break;
  default:
    body.template operator()<std::uint64_t>();
    break;
  }
}

} // namespace hebe::ttgir
