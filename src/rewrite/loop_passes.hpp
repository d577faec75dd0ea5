// The passes of loops and of loads that are repeated: one function a row of the table (passes.cpp).
// In: nothing; out: the row. Invariant: a row's function lies in the file of its name.
#pragma once

#include "rewrite/pass.hpp"

namespace hebe::rewrite {

[[nodiscard]] Pass inline_single_trip_loops(); ///< inline_loops.cpp
[[nodiscard]] Pass unroll_loops();             ///< inline_loops.cpp
[[nodiscard]] Pass reuse_loads();              ///< reuse_loads.cpp
[[nodiscard]] Pass hoist_loads();              ///< hoist_loads.cpp
[[nodiscard]] Pass remove_dead();              ///< remove_dead.cpp

/// contraction.cpp. Ahead of the others it changes nothing that they would not, and gives what they
/// are to be compared with where nothing contracts: `hebe ttgir run`.
[[nodiscard]] Pass pin_contractions();

} // namespace hebe::rewrite
