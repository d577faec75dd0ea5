// Where one series lies in another. In: two series on unrelated clocks that saw the same switching
// load; out: the offset at which they correlate best, and how well the best other offset does.
// Invariant: the same points decide at every offset of the refinement, so that scores compare.
#pragma once

#include "measure/external_alignment.hpp"

namespace hebe::measure {

/// Means over any stretch of a series, by its integral; between samples the power is a straight
/// line.
class IntervalPower {
public:
  explicit IntervalPower(const PowerSeries& series);
  [[nodiscard]] double over(double from_s, double to_s) const;
  [[nodiscard]] double begin_s() const { return series_.time_s.front(); }
  [[nodiscard]] double end_s() const { return series_.time_s.back(); }

private:
  [[nodiscard]] double until(double t_s) const;
  PowerSeries series_;
  std::vector<double> joules_;
};

/// external = internal + offset_s + skew * (internal - centre_s)
struct ClockMap {
  double offset_s = 0, skew = 0, centre_s = 0;
  [[nodiscard]] double external(double internal_s) const {
    return internal_s + offset_s + skew * (internal_s - centre_s);
  }
  [[nodiscard]] double internal(double external_s) const {
    return centre_s + (external_s - offset_s - centre_s) / (1 + skew);
  }
};

struct CoarseMatch {
  double offset_s = 0, correlation = 0;
  double runner_up = 0, runner_up_offset_s = 0; ///< outside the best one's own lobe
};

[[nodiscard]] double median_step(std::span<const double> time_s);
[[nodiscard]] double correlation_of(std::span<const double> x, std::span<const double> y);

/// Every offset on a grid of `step_s`. Refuses (bad_argument) offsets that leave no overlap and
/// series too long to search.
[[nodiscard]] Result<CoarseMatch> search_offset(const IntervalPower& internal,
                                                const IntervalPower& external, double step_s,
                                                const AlignmentLimits& limits);

/// Both powers at the points of the coarser series, the finer one averaged around each.
class PairedPoints {
public:
  /// Only points of `from_s`..`to_s` (internal clock), at which every map near the best one is
  /// defined.
  PairedPoints(const PowerSeries& internal, const PowerSeries& external, const ClockMap& best,
               double from_s, double to_s);
  void read(const ClockMap& map);
  [[nodiscard]] double score(const ClockMap& map) {
    read(map);
    return correlation_of(internal_w, external_w);
  }
  std::vector<double> internal_w, external_w; ///< as of the last read()
  std::vector<double> time_s;                 ///< internal clock, by the best map

private:
  IntervalPower internal_, external_;
  bool at_internal_ = true; ///< the internal series is the coarser one
  double width_s_ = 0;
  std::vector<double> point_s_, point_w_; ///< on the coarser series' own clock
};

/// The offset and skew of the best score near `start`.
[[nodiscard]] ClockMap refine(PairedPoints& points, const ClockMap& start, double step_s,
                              double span_s, double max_skew);

} // namespace hebe::measure
