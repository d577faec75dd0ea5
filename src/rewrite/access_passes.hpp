// Passes on single accesses to memory (masks, hints, where a value is read again from) and on what
// computes their addresses: one function a row of the table (passes.cpp). In: nothing; out: the
// row. Invariant: a row's function lies in the file of its name.
#pragma once

#include "rewrite/pass.hpp"

namespace hebe::rewrite {

[[nodiscard]] Pass drop_masks();
[[nodiscard]] Pass hint();
[[nodiscard]] Pass stage_shared();
[[nodiscard]] Pass simplify();

} // namespace hebe::rewrite
