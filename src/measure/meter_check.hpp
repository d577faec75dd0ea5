// Is the meter alive and believable, on this board, now? In: what the warm-up's samples and counter
// did; out: the meter's behaviour, or a refusal by name. Invariant: a meter that holds still, lies,
// wraps or returns nothing is refused before the first window.
#pragma once

#include "measure/window_energy.hpp"

namespace hebe::measure {

/// The meter's readings over the first stretch of the warm-up, from before the first launch on.
struct MeterTrial {
  std::span<const meter::AlignedSample> samples;
  std::int64_t load_begin_ns = 0; ///< host time of the first launch
  meter::Boundary begin, end;     ///< counter readings under load
  std::optional<Watts> power_limit;
  double agreement = 0.05; ///< allowed disagreement beyond one counter update at each end
};

[[nodiscard]] Result<MeterBehaviour> check_meter(const MeterTrial& trial);

} // namespace hebe::measure
