// Work that gives nothing new. In: a kernel; out: the same values by fewer pure operations.
// Invariant: see simplify.cpp.
#pragma once

#include "rewrite/pass.hpp"

namespace hebe::rewrite {

/// Conversions of layouts, address arithmetic and constants, folded and merged; dead ones removed.
[[nodiscard]] Status simplify(Work& work, const Json& options);

} // namespace hebe::rewrite
