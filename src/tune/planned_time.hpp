// How long a tune will hold its board. In: a specification, how many candidates a shape has; out:
// the least that its windows take. Invariant: a lower bound: compiling, a warm-up that waits for
// the board to settle, later rungs and a second pair come on top.
#pragma once

#include "tune/prepared_shape.hpp"

namespace hebe::tune {

struct PlannedTime {
  Seconds search{0};    ///< warm-up, idle before and after, one window of every candidate
  Seconds finalists{0}; ///< one sealed run of pairs
};
/// Of one shape, by its candidates that are ready.
[[nodiscard]] Result<PlannedTime> planned_time(const TuneSpec& spec, const PreparedShape& shape);

} // namespace hebe::tune
