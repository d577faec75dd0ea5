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
[[nodiscard]] Pass pin_contractions_pass();   ///< pin_contractions.cpp

} // namespace hebe::rewrite
