// Whether a product could meet a sum that it did not meet before. In: a value that takes the place
// of a select or of a conversion of layouts; out: whether a product may be behind it. Invariant: an
// operation that is not known to end in something else ends in a product.
//
// The compiler below (LLVM's NVPTX backend, ptxas) writes a product and a sum that uses it as one
// fma, with one rounding. A select between them, or a trip through shared memory, forbids it;
// taking that away is exact in the IR, and may change bits in the cubin.
#pragma once

#include "ttgir/ir.hpp"

namespace hebe::rewrite {

[[nodiscard]] bool may_be_product(const ttgir::Value& value);

} // namespace hebe::rewrite
