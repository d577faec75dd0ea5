// Location and spread of one sample. In: n >= 2 finite values of any one unit; out: mean, sample
// sd, cv, median. Invariant: never NaN, and equal values give exactly that value with a spread of
// exactly 0.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "core/result.hpp"

namespace hebe::measure {

/// `mean`, `sd` and `median` have the unit of the values (log ratios: dimensionless).
struct Summary {
  std::size_t n = 0;
  double mean = 0;
  double sd = 0;            ///< sample standard deviation, divisor n - 1
  std::optional<double> cv; ///< sd / |mean|; absent where the mean is 0 or too near 0 to divide by
  double median = 0;
};

/// Mean, sample sd, coefficient of variation and median. Errors: bad_argument as check_sample.
[[nodiscard]] Result<Summary> summarise(std::span<const double> x);

/// The mean as x[0] + mean(x - x[0]), exact for equal values. Not empty, all finite.
[[nodiscard]] double mean_of(std::span<const double> x);
/// Of an even number of values the mean of the middle two. Not empty.
[[nodiscard]] double median_of(std::span<const double> x);
/// Sample sd about `mean`, in two passes and scaled, so that tiny spreads do not vanish. n >= 2.
[[nodiscard]] double sd_of(std::span<const double> x, double mean);

/// bad_argument if there are fewer than `minimum` values, or one is not finite or beyond 1e100 (no
/// log ratio is; it keeps the third powers finite).
[[nodiscard]] Status check_sample(std::span<const double> x, std::size_t minimum = 2);
/// bad_argument unless 0 < value < 1.
[[nodiscard]] Status check_fraction(std::string_view name, double value);
/// bad_argument unless 0 < value <= 1e100.
[[nodiscard]] Status check_positive(std::string_view name, double value);

} // namespace hebe::measure
