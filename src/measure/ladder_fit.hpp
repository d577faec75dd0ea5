// A straight line through a ladder of known fractions. In: one effect a run at its fraction, with
// replicates; out: slope, intercept, residuals, tests. Invariant: pure; what cannot be tested has
// no p, never an invented one.
#pragma once

#include "core/result.hpp"
#include "measure/intervals.hpp"

#include <optional>
#include <span>
#include <vector>

namespace hebe::measure {

struct LadderPoint {
  double fraction = 0;       ///< extra traffic / plain traffic
  double effect_percent = 0; ///< 100 (E_B/E_A - 1)
};

/// Spread of the runs about the mean of their fraction, against the line's distance from these.
struct LackOfFit {
  double f = 0;
  int df_line = 0, df_replicates = 0;
  std::optional<double> p; ///< absent where replicates do not differ, or there are none
};

struct LineFit {
  double slope = 0, slope_error = 0; ///< percent per 100 % extra traffic
  double intercept = 0, intercept_error = 0;
  Interval slope_interval, intercept_interval; ///< t, n - 2 degrees of freedom
  std::optional<double> r_squared;             ///< weighted; absent where nothing varies
  double residual_sd = 0;                      ///< percent, at an effect of 0
  std::vector<double> residuals;               ///< percent, as the points
  LackOfFit lack_of_fit;
};

/// Weighted least squares. A run's log ratio has one spread whatever the fraction, so its percent
/// effect spreads in proportion to E_B/E_A: weights are (1 + effect)^-2, and their common scale is
/// estimated from the residuals. Errors: bad_argument for fewer than three points or two fractions,
/// or a value that is not finite, an effect of -100 % or less.
[[nodiscard]] Result<LineFit> fit_line(std::span<const LadderPoint> points, double level = 0.95);

struct Monotone {
  bool holds = false;      ///< the means by fraction never fall
  double largest_fall = 0; ///< percent, of isotonic regression's pooled steps
  std::optional<double>
      trend_p; ///< Jonckheere and Terpstra's test, one-sided, normal approximation
};

/// Means by fraction in rising order, against isotonic regression, and a trend test over the runs.
[[nodiscard]] Result<Monotone> monotone_response(std::span<const LadderPoint> points);

} // namespace hebe::measure
