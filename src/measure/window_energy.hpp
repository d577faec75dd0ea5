// From samples to a window's power. In: aligned samples and a window's edges; out: the
// time-weighted mean, edges interpolated, and how well the window was covered. Invariant: no sample
// near an edge, no number.
#pragma once

#include "measure/meter_response.hpp"
#include "measure/window.hpp"
#include "meter/power_sampler.hpp"

#include <span>

namespace hebe::measure {

/// The meter's behaviour during the warm-up, on this board: what coverage and pre-roll are judged
/// by.
struct MeterBehaviour {
  Seconds sample_period{0};
  Seconds lag{0}; ///< from the first launch to 95 % of the settled power
  Seconds counter_period{
      0.1}; ///< NVML's counter on data-centre boards; an H200 shows 99.3 - 100.7 ms
  /// From the first launch to 95 % of what the first arm itself settles at; absent: its step is too
  /// small to be told from noise, or (older records) nobody looked.
  std::optional<Seconds> step_lag{};
  KnownResponse response{};
};

/// Trapezoid over [begin_ns, end_ns] (host monotonic). `samples` may reach beyond the window; those
/// just outside it give the values at the edges. Samples are mW; a mean over a gap of more than the
/// tier's limit is refused by the gates, not here. mean_power is absent when no sample lies on
/// either side of an edge.
[[nodiscard]] WindowEstimate estimate_window(const WindowReading& window,
                                             std::span<const meter::AlignedSample> samples,
                                             const MeterBehaviour& behaviour);

} // namespace hebe::measure
