// Operations that nothing uses. In: a function; out: the function without them, each load that went
// said in the account. Invariant: what is seen outside of the program (stores, atomics, barriers,
// shared memory, volatile loads, a loop that may not end) stays.
#pragma once

#include "rewrite/pass.hpp"

namespace hebe::rewrite {

/// How many operations it erased. A loop-carried value that is used by nothing but itself keeps its
/// place and is passed on unchanged.
std::size_t erase_dead(Work& work);

} // namespace hebe::rewrite
