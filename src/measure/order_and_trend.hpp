// Does the order inside a pair, or time, move the effect? In: log ratios by order, or in the order
// they were measured; out: size and p value of each. Invariant: what cannot be tested has no p,
// never an invented one.
#pragma once

#include <optional>
#include <span>

#include "core/result.hpp"

namespace hebe::measure {

/// Absent fields cannot be computed: `difference` if a group is empty; `p` if a group has fewer
/// than 2 members; `t` and `df` also if neither group varies (p is then 0 or 1: different or the
/// same).
struct OrderEffect {
  std::optional<double> difference; ///< mean of AB pairs - mean of BA pairs, log ratio
  std::optional<double> t;
  std::optional<double> df; ///< Welch and Satterthwaite's
  std::optional<double> p;  ///< two-sided
};

/// Welch's test (1947, Biometrika 34:28) of the pairs that ran A first against those that ran B
/// first. Errors: bad_argument for a value that is not finite.
[[nodiscard]] Result<OrderEffect> order_effect(std::span<const double> ab,
                                               std::span<const double> ba);

/// `p` is absent for n < 3. All points on a line: `t` is absent too, and p is 0, or 1 if the line
/// is level.
struct Trend {
  double slope = 0;        ///< change of the log ratio per pair
  double total_change = 0; ///< of the fitted line from the first to the last pair
  std::optional<double> t; ///< n - 2 degrees of freedom
  std::optional<double> p; ///< two-sided
};

/// Least-squares line of the log ratios against pair number 0 ... n-1. Errors: bad_argument for n <
/// 2 or a value that is not finite.
[[nodiscard]] Result<Trend> trend(std::span<const double> x);

} // namespace hebe::measure
