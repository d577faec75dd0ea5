// Passes on single accesses to memory: their masks, their hints, where a value is read again from.
// In: a kernel and a pass's options; out: the kernel changed, or a place refused in the account.
// Invariant: which bytes of global memory are read by a remaining load, and which are written, is
// what it was.
#pragma once

#include "rewrite/pass.hpp"

namespace hebe::rewrite {

/// Masks that are all true in every launch that keeps the facts: gone, with their `other`.
[[nodiscard]] Status drop_masks(Work& work, const Json& options);
/// Eviction priorities and cache modifiers, by argument.
[[nodiscard]] Status hint(Work& work, const Json& options);

} // namespace hebe::rewrite
