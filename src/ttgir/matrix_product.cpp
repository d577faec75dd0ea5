#include "ttgir/matrix_product.hpp"

#include "ttgir/vector_clone.hpp"

#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hebe::ttgir {
namespace {

/// Row by row, a column at a time in the innermost loop: vectors run along n.
template <class T> struct Rows {
  HEBE_LANES void run(T* c, const T* a, const T* b, ProductShape s) {
    for (std::size_t i = 0; i < s.m; ++i)
      for (std::size_t k = 0; k < s.k; ++k) {
        const T x = a[i * s.k + k];
        const T* row = b + k * s.n;
        T* out = c + i * s.n;
#pragma GCC ivdep
        for (std::size_t j = 0; j < s.n; ++j) {
          if constexpr (static_cast<T>(0.5) != 0)
            out[j] = std::fma(x, row[j], out[j]);
          else
            out[j] =
                static_cast<T>(static_cast<std::uint32_t>(out[j]) +
                               static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(row[j]));
        }
      }
  }
};

#if defined(__x86_64__)
constexpr std::size_t kColumns = 16; // two vectors
constexpr std::size_t kRows = 6;     // 12 sums in registers, of 16

template <std::size_t R>
HEBE_WIDE void tile(float* c, const float* a, const float* b, ProductShape s) {
  __m256 sum[R][2];
  for (std::size_t r = 0; r < R; ++r) {
    sum[r][0] = _mm256_loadu_ps(c + r * s.n);
    sum[r][1] = _mm256_loadu_ps(c + r * s.n + 8);
  }
  for (std::size_t k = 0; k < s.k; ++k) {
    const __m256 b0 = _mm256_loadu_ps(b + k * s.n), b1 = _mm256_loadu_ps(b + k * s.n + 8);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < R; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + r * s.k + k);
      sum[r][0] = _mm256_fmadd_ps(x, b0, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(x, b1, sum[r][1]);
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    _mm256_storeu_ps(c + r * s.n, sum[r][0]);
    _mm256_storeu_ps(c + r * s.n + 8, sum[r][1]);
  }
}

HEBE_WIDE void remaining_columns(float* c, const float* a, const float* b, std::size_t from,
                                 ProductShape s) {
  for (std::size_t i = 0; i < s.m; ++i)
    for (std::size_t j = from; j < s.n; ++j) {
      float sum = c[i * s.n + j];
      for (std::size_t k = 0; k < s.k; ++k) sum = std::fma(a[i * s.k + k], b[k * s.n + j], sum);
      c[i * s.n + j] = sum;
    }
}

void tiles(float* c, const float* a, const float* b, ProductShape s) {
  const std::size_t columns = s.n / kColumns * kColumns;
  for (std::size_t i = 0; i < s.m; i += kRows)
    for (std::size_t j = 0; j < columns; j += kColumns) {
      float* to = c + i * s.n + j;
      const float* from = a + i * s.k;
      switch (s.m - i) {
      case 1:
        tile<1>(to, from, b + j, s);
        break;
      case 2:
        tile<2>(to, from, b + j, s);
        break;
      case 3:
        tile<3>(to, from, b + j, s);
        break;
      case 4:
        tile<4>(to, from, b + j, s);
        break;
      case 5:
        tile<5>(to, from, b + j, s);
        break;
      default:
        tile<kRows>(to, from, b + j, s);
        break;
      }
    }
  if (columns < s.n) remaining_columns(c, a, b, columns, s);
}
#endif

} // namespace

void add_product(float* c, const float* a, const float* b, ProductShape s) {
#if defined(__x86_64__)
  if (wide_vectors()) return tiles(c, a, b, s);
#endif
  Clone<Rows<float>>::plain(c, a, b, s);
}

void add_product(double* c, const double* a, const double* b, ProductShape s) {
  fitting<Rows<double>>()(c, a, b, s);
}

void add_product(std::int32_t* c, const std::int32_t* a, const std::int32_t* b, ProductShape s) {
  fitting<Rows<std::int32_t>>()(c, a, b, s);
}

} // namespace hebe::ttgir
