#include "ttgir/strided_copy.hpp"

#include <algorithm>
#include <cstring>

namespace hebe::ttgir {
namespace {

constexpr std::int64_t kTile =
    16; // rows and columns: both sides of a transposition stay in the cache

/// Visits a tensor row by row: `row(out offset, in offset)` in elements, for every row of the last
/// dimension.
template <class Row>
void each_row(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
              Row&& row) {
  const std::size_t outer = shape.size() - 1;
  std::vector<std::int64_t> at(outer, 0);
  std::int64_t rows = 1, in = 0;
  for (std::size_t d = 0; d < outer; ++d) rows *= shape[d];
  for (std::int64_t r = 0; r < rows; ++r) {
    row(r * shape[outer], in);
    for (std::size_t d = outer; d-- > 0;) {
      in += strides[d];
      if (++at[d] < shape[d]) break;
      in -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
}

template <class T>
void transpose_tiles(T* out, const T* in, std::int64_t rows, std::int64_t columns,
                     std::int64_t row_stride, std::int64_t column_stride) {
  for (std::int64_t i = 0; i < rows; i += kTile)
    for (std::int64_t j = 0; j < columns; j += kTile)
      for (std::int64_t r = i; r < std::min(rows, i + kTile); ++r)
        for (std::int64_t c = j; c < std::min(columns, j + kTile); ++c)
          out[r * columns + c] = in[r * row_stride + c * column_stride];
}

} // namespace

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

void copy_strided(std::byte* out, const std::byte* in, std::size_t element_size,
                  std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  with_element(element_size, [&]<class T>() {
    auto* to = reinterpret_cast<T*>(out);
    const auto* from = reinterpret_cast<const T*>(in);
    if (shape.empty()) {
      *to = *from;
      return;
    }
    const std::int64_t row_length = shape.back(), step = strides.back();
    if (shape.size() == 2 && step > 1 && shape[0] > 1)
      return transpose_tiles(to, from, shape[0], row_length, strides[0], step);
    each_row(shape, strides, [&](std::int64_t o, std::int64_t i) {
      if (step == 1)
        std::memcpy(to + o, from + i, static_cast<std::size_t>(row_length) * sizeof(T));
      else if (step == 0)
        std::fill_n(to + o, row_length, from[i]);
      else
        for (std::int64_t k = 0; k < row_length; ++k) to[o + k] = from[i + k * step];
    });
  });
}

void scatter_strided(std::byte* out, const std::byte* in, std::size_t element_size,
                     std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  with_element(element_size, [&]<class T>() {
    auto* to = reinterpret_cast<T*>(out);
    const auto* from = reinterpret_cast<const T*>(in);
    if (shape.empty()) {
      *to = *from;
      return;
    }
    const std::int64_t row_length = shape.back(), step = strides.back();
    each_row(shape, strides, [&](std::int64_t i, std::int64_t o) {
      if (step == 1)
        std::memcpy(to + o, from + i, static_cast<std::size_t>(row_length) * sizeof(T));
      else
        for (std::int64_t k = 0; k < row_length; ++k) to[o + k * step] = from[i + k];
    });
  });
}

} // namespace hebe::ttgir
