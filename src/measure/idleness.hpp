// What of the replays before a window was idleness of the GPU. In: their times, how the stream was
// fed, what the board said about its clock; out: seconds. Invariant: a clock that is low because of
// the power limit is no idleness, a pause of the host is.
#pragma once

#include "measure/tier.hpp"
#include "meter/board_meter.hpp"

namespace hebe::measure {

struct Stretch;

/// By what share of its usual time the power limit can have made a replay longer: `held`, any one,
/// for it holds the clock down meanwhile; `recovering`, the first one, which began at the clock
/// that the arm before it had been held down to.
struct SlowerByClock {
  double held = 0, recovering = 0;
};

/// How much longer the clock can have made replays between two readings, the first of which was
/// taken at the end of the work before: while the limit held it, as far as the tier lets the clock
/// itself move, by the share of the time (after another arm only if it does at the second reading
/// too); and `after_other_arm`, where the limit and nothing else
/// held the clock at the first reading, by how much lower it was than at the second, as far as the
/// tier allows. A tier from before explains nothing by it.
[[nodiscard]] SlowerByClock slower_by_clock(const Tier& tier, const meter::Boundary& from,
                                            const meter::Boundary& to, Nanos between,
                                            bool after_other_arm);

/// Idle and device time of a stretch. Usual is `typical`; for a GPU that was fed at every look, the
/// stretch's own median, if that is longer. As long as the GPU was not found dry, slower replays
/// that the clock explains are usual too: those that are slow one like the next (the median of the
/// five around each, as far as `held`), and at the beginning those of a clock that comes back: the
/// first as far as `recovering`, every other no longer than those before it, and in all no longer
/// than a clock takes that is back within some 50 ms. A pause of the host falls into one.
void count_idle(Stretch& stretch, Seconds typical, const SlowerByClock& slower);

} // namespace hebe::measure
