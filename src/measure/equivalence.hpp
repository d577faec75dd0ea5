// Equivalence of two arms by two one-sided tests. In: n >= 2 log ratios and a margin in log; out: p
// values. Invariant: equivalent exactly if the t interval of level 1 - 2 alpha lies inside
// (-margin, +margin).
#pragma once

#include <span>

#include "core/result.hpp"

namespace hebe::measure {

struct Tost {
  double p_lower = 1;      ///< against "the mean is -margin or less"
  double p_upper = 1;      ///< against "the mean is +margin or more"
  double p = 1;            ///< the larger of the two
  bool equivalent = false; ///< p < alpha
};

/// A margin in percent as a log ratio: ln(1 + percent/100). The region (-margin, +margin) is
/// symmetric in log, so that "B against A" and "A against B" get the same answer.
[[nodiscard]] double log_margin(double percent);

/// Two one-sided t tests of the mean of log ratios (Schuirmann 1987, J. Pharmacokinet. Biopharm.
/// 15:657). All values equal: p is 0 if that value is inside the margin, else 1. Errors:
/// bad_argument for n < 2, a value that is not finite, a margin that is not above 0, alpha outside
/// (0, 1).
/// `estimated_means` as in t_interval.
[[nodiscard]] Result<Tost> tost(std::span<const double> x, double margin, double alpha = 0.05,
                                int estimated_means = 1);

} // namespace hebe::measure
