#include "measure/order_and_trend.hpp"

#include <cmath>

#include "measure/intervals.hpp"
#include "measure/summary.hpp"

namespace hebe::measure {
namespace {

/// p of an estimate that has no spread around it.
double p_without_spread(double estimate) { return estimate == 0 ? 1.0 : 0.0; }

} // namespace

Result<OrderEffect> order_effect(std::span<const double> ab, std::span<const double> ba) {
  HEBE_CHECK(check_sample(ab, 0));
  HEBE_CHECK(check_sample(ba, 0));
  OrderEffect effect;
  if (ab.empty() || ba.empty()) return effect;
  const double mean_ab = mean_of(ab), mean_ba = mean_of(ba);
  const double difference = mean_ab - mean_ba;
  effect.difference = difference;
  if (ab.size() < 2 || ba.size() < 2) return effect;

  const double n_ab = static_cast<double>(ab.size()), n_ba = static_cast<double>(ba.size());
  const double error_ab = sd_of(ab, mean_ab) / std::sqrt(n_ab);
  const double error_ba = sd_of(ba, mean_ba) / std::sqrt(n_ba);
  const double error = std::hypot(error_ab, error_ba);
  if (error == 0) {
    effect.p = p_without_spread(difference);
    return effect;
  }
  // In shares of the variance, so that tiny variances do not underflow when squared.
  const double share_ab = std::pow(error_ab / error, 2), share_ba = std::pow(error_ba / error, 2);
  effect.df = 1 / (share_ab * share_ab / (n_ab - 1) + share_ba * share_ba / (n_ba - 1));
  effect.t = difference / error;
  effect.p = t_two_sided_p(*effect.t, *effect.df);
  return effect;
}

Result<Trend> trend(std::span<const double> x) {
  HEBE_CHECK(check_sample(x));
  const double n = static_cast<double>(x.size()), mean = mean_of(x), middle = (n - 1) / 2;
  const double sum_tt = n * (n * n - 1) / 12; // of squared distances of 0 ... n-1 from their middle
  double sum_tx = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum_tx += (static_cast<double>(i) - middle) * (x[i] - mean);
  Trend result{.slope = sum_tx / sum_tt, .total_change = 0, .t = {}, .p = {}};
  result.total_change = result.slope * (n - 1);
  if (x.size() < 3) return result;

  double residual = 0; // root of the sum of squares, without underflow
  for (std::size_t i = 0; i < x.size(); ++i)
    residual = std::hypot(residual, x[i] - mean - result.slope * (static_cast<double>(i) - middle));
  const double error = residual / std::sqrt((n - 2) * sum_tt);
  if (error == 0) {
    result.p = p_without_spread(result.slope);
    return result;
  }
  result.t = result.slope / error;
  result.p = t_two_sided_p(*result.t, n - 2);
  return result;
}

} // namespace hebe::measure
