// Products of small matrices. In: dense rows of a (m × k), b (k × n) and c (m × n); out: c plus the
// product. Invariant: each element adds its k products in ascending order with one rounding each
// (fused multiply-add), on every processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hebe::ttgir {

struct ProductShape {
  std::size_t m = 0, n = 0, k = 0;
};
void add_product(float* c, const float* a, const float* b, ProductShape shape);
void add_product(double* c, const double* a, const double* b, ProductShape shape);
void add_product(std::int32_t* c, const std::int32_t* a, const std::int32_t* b,
                 ProductShape shape); ///< wraps

} // namespace hebe::ttgir
