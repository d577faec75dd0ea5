// An internal power source against an external meter that ran on its own clock. In: both series,
// taken while the load followed an on/off signature; out: where the external clock stands and how
// fast it goes, then gain, offset and residual of the internal source. Invariant: an offset is
// given only where the signature is found, is found once, and covers enough switches; a periodic
// wave fits at every period and is refused.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hebe::measure {

/// Watts over seconds of one clock, times strictly ascending.
struct PowerSeries {
  std::span<const double> time_s, power_w;
};

struct AlignmentLimits {
  double min_correlation = 0.9; ///< of the aligned series, edges included
  double max_runner_up = 0.8;   ///< the best other offset's correlation over the best one's
  double min_overlap = 0.5;     ///< of the shorter series
  int min_edges = 8;            ///< on/off switches seen by both
  double max_skew_ppm = 500;    ///< of one clock against the other
  /// The slower meter's settling time, as probe-response finds it: as much is left out on either
  /// side of each switch, and never less than three points.
  double settle_s = 0;
  /// External minus internal clock, where something is known of it.
  std::optional<std::pair<double, double>> offset_range_s;
};

struct ExternalAlignment {
  /// external clock = internal clock + offset_s + skew * (internal clock - centre_s). A delay of
  /// either meter's filter is part of the offset: a log cannot tell them apart.
  double offset_s = 0, offset_se_s = 0, centre_s = 0;
  double skew_ppm = 0, skew_se_ppm = 0;
  double correlation = 0, runner_up = 0; ///< runner_up: of the best other offset
  double overlap_s = 0;
  int edges = 0;
  /// Ordinary least squares of the internal on the external watts: internal = offset_w + gain *
  /// external. Through the means of plateaus, away from switches, weighted by their points: the
  /// external meter's noise, which would flatten a line through the points, is averaged away.
  /// Standard errors by plateau, for readings within one are not independent.
  double gain = 0, gain_se = 0;
  double offset_w = 0, offset_se_w = 0;
  /// Of the gain, when twice as much is left out around each switch; absent where that leaves too
  /// little. Large beside gain_se: a filter has not settled, see settle_s.
  std::optional<double> gain_change;
  double residual_w = 0;     ///< standard deviation of points about the line, plateaus only
  double residual_all_w = 0; ///< edges included: what filters and delay leave
  std::size_t points = 0, plateaus = 0;
};

[[nodiscard]] Result<ExternalAlignment> align_external(const PowerSeries& internal,
                                                       const PowerSeries& external,
                                                       const AlignmentLimits& limits = {});

/// An on/off sequence that resembles itself at no shift (a maximal-length sequence of 127 slots, 1
/// is on): what to drive the load with.
[[nodiscard]] std::vector<bool> on_off_signature();

} // namespace hebe::measure
