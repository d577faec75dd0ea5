// One quantity, B against A, over pairs. In: log ratios; out: effect, intervals, tests. Invariant:
// a pure function of its inputs; the pair is the unit, and nothing smaller is resampled.
#pragma once

#include "measure/equivalence.hpp"
#include "measure/intervals.hpp"
#include "measure/order_and_trend.hpp"
#include "measure/plan.hpp"
#include "measure/randomisation.hpp"

#include <span>

namespace hebe::measure {

enum class Verdict { lower, higher, equivalent, inconclusive, invalid };
[[nodiscard]] std::string_view name_of(Verdict verdict);

/// All effects and ends are natural-log ratios ln(B/A).
struct Contrast {
  double effect = 0, spread = 0; ///< mean and sample sd of the pairs
  Interval bca, bca_plain, t;    ///< bca: with Hesterberg's small-sample expansion
  bool degenerate = false;       ///< all pairs equal
  bool few = false; ///< too few pairs for a bootstrap: the t interval is shown and decides
  SignFlip sign_flip;
  double margin = 0; ///< log
  Tost tost;
  OrderEffect order;
  Trend trend;
  bool order_gate = true, trend_gate = true;
  Verdict verdict = Verdict::inconclusive;
  [[nodiscard]] const Interval& shown() const { return few ? t : bca; }
};

/// Below this many pairs a BCa interval cannot reach its level (its ends are resampled means,
/// within the range of the data: simulated coverage at 95 % is 92.8 % for 6 pairs, 94.0 % for 8).
inline constexpr std::size_t kFewestBootstrapPairs = 8;

/// `order` gives each pair's order; `margin_percent` > 0 is the equivalence margin.
[[nodiscard]] Result<Contrast> contrast_of(std::span<const double> log_ratios,
                                           std::span<const PairOrder> order, double margin_percent,
                                           const Plan& plan);

/// Effects and ends in percent, 100 (exp(x) - 1).
[[nodiscard]] Json to_json(const Contrast& contrast);
[[nodiscard]] double percent(double log_ratio);

} // namespace hebe::measure
