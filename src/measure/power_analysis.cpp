#include "measure/power_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>

#include "measure/intervals.hpp"
#include "measure/summary.hpp"

namespace hebe::measure {
namespace {

namespace policies = boost::math::policies;
using Policy = policies::policy<policies::promote_double<false>,
                                policies::overflow_error<policies::ignore_error>,
                                policies::evaluation_error<policies::ignore_error>>;
using NoncentralT = boost::math::non_central_t_distribution<double, Policy>;
using Normal = boost::math::normal_distribution<double, Policy>;
using ChiSquared = boost::math::chi_squared_distribution<double, Policy>;

constexpr double kSmallestAlpha = 1e-9;       // tested down to here
constexpr double kLargestNoncentrality = 3e4; // the error of the limit above it is about 1e-9
constexpr double kLargestRatio = 1e12;        // effect in sd; more changes no answer

/// P(T > critical) of the noncentral t. Boost cannot do noncentralities that large; there the
/// spread of the mean is negligible against that of the sample sd s, and T > critical where s < ncp
/// / critical.
double exceeds(double critical, double df, double noncentrality) {
  if (noncentrality <= kLargestNoncentrality)
    return cdf(complement(NoncentralT(df, noncentrality), critical));
  const double root = noncentrality / critical;
  return cdf(ChiSquared(df), df * root * root);
}

/// Power of the two-sided one-sample t test for a mean of `ratio` >= 0 standard deviations.
double power_of_t(double n, double ratio, double alpha) {
  const double critical = t_exceeded_with(alpha / 2, n - 1), noncentrality = ratio * std::sqrt(n);
  const double wrong_side =
      noncentrality > 40 ? 0 : cdf(NoncentralT(n - 1, noncentrality), -critical);
  return exceeds(critical, n - 1, noncentrality) + wrong_side;
}

/// Power of the two one-sided tests; margin and truth in standard deviations. Given the sample sd s
/// (in true sd) the mean must lie between -margin and margin less critical * s / sqrt(n), a normal
/// probability; this is averaged over the chi distribution of s. Exact, as Owen's Q (Phillips 1990,
/// J. Pharmacokinet. Biopharm. 18:137), unlike the usual difference of two noncentral t.
double power_of_tost(double n, double margin, double truth, double alpha) {
  const double df = n - 1, critical = t_exceeded_with(alpha, df), root_n = std::sqrt(n);
  const ChiSquared chi_squared(df);
  constexpr double kTail = 1e-14;
  const double first = std::sqrt(quantile(chi_squared, kTail) / df);
  double last = std::sqrt(quantile(complement(chi_squared, kTail)) / df);
  if (critical > 0)
    last = std::min(last, margin * root_n / critical); // beyond, the region is empty
  if (last <= first) return 0;
  const auto integrand = [&](double s) {
    const double half_width = margin * root_n - critical * s;
    const double inside =
        cdf(Normal(), half_width - truth * root_n) - cdf(Normal(), -half_width - truth * root_n);
    return inside * pdf(chi_squared, df * s * s) * 2 * df * s;
  };
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(integrand, first, last, 12,
                                                                       1e-10);
}

/// Smallest number of pairs whose power is enough; power grows with n.
template <class PowerOf> std::optional<int> fewest_pairs(PowerOf power_of, double power) {
  int enough = kFewestPairs, too_few = kFewestPairs - 1;
  while (power_of(static_cast<double>(enough)) < power) {
    if (enough == kMostPairs) return std::nullopt;
    too_few = enough;
    enough = std::min(2 * enough, kMostPairs);
  }
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    (power_of(static_cast<double>(middle)) < power ? too_few : enough) = middle;
  }
  return enough;
}

Status check_design(double sd, double alpha, double power) {
  if (sd != 0) HEBE_CHECK(check_positive("the standard deviation", sd));
  HEBE_CHECK(check_fraction("alpha", alpha));
  HEBE_CHECK(check_fraction("the power", power));
  if (alpha < kSmallestAlpha || power <= alpha)
    return refuse(RefusalCode::bad_argument,
                  "alpha is " + std::to_string(alpha) + " and the power " + std::to_string(power) +
                      "; alpha must be 1e-9 or more and below the power",
                  "usual are alpha 0.05 and power 0.9");
  return {};
}

} // namespace

Result<std::optional<int>> pairs_needed(double sd, double effect, double alpha, double power) {
  HEBE_CHECK(check_design(sd, alpha, power));
  HEBE_CHECK(check_positive("the size of the effect", std::abs(effect)));
  const double ratio = std::min(std::abs(effect) / sd, kLargestRatio);
  if (sd == 0) return kFewestPairs;
  return fewest_pairs([&](double n) { return power_of_t(n, ratio, alpha); }, power);
}

Result<double> detectable_effect(double sd, int n, double alpha, double power) {
  HEBE_CHECK(check_design(sd, alpha, power));
  if (n < kFewestPairs || n > kMostPairs)
    return refuse(RefusalCode::bad_argument, std::to_string(n) + " pairs, not " +
                                                 std::to_string(kFewestPairs) + " to " +
                                                 std::to_string(kMostPairs));
  const double size = n;
  double low = 0, high = 1 / std::sqrt(size);
  while (power_of_t(size, high, alpha) < power && high < kLargestRatio) {
    low = high;
    high *= 2;
  }
  while (high - low > 1e-13 * high) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (power_of_t(size, middle, alpha) < power ? low : high) = middle;
  }
  return high * sd;
}

Result<std::optional<int>> pairs_needed_for_equivalence(double sd, double margin, double alpha,
                                                        double power, double true_effect) {
  HEBE_CHECK(check_design(sd, alpha, power));
  HEBE_CHECK(check_positive("the equivalence margin", margin));
  HEBE_CHECK(check_sample({&true_effect, 1}, 1));
  if (std::abs(true_effect) >= margin) return std::nullopt;
  if (sd == 0) return kFewestPairs;
  const double largest = std::min(margin / sd, kLargestRatio);
  const double truth = true_effect / margin * largest;
  return fewest_pairs([&](double n) { return power_of_tost(n, largest, truth, alpha); }, power);
}

} // namespace hebe::measure
