#include "measure/equivalence.hpp"

#include <algorithm>
#include <cmath>

#include "measure/intervals.hpp"
#include "measure/summary.hpp"

namespace hebe::measure {
namespace {

/// One-sided p against "the mean is 0 or less" for a sample whose mean is `distance` above that
/// bound.
double p_against_below(double distance, double standard_error, double df) {
  if (standard_error == 0) return distance > 0 ? 0.0 : 1.0;
  return t_cdf(-distance / standard_error, df);
}

} // namespace

double log_margin(double percent) { return std::log1p(percent / 100); }

Result<Tost> tost(std::span<const double> x, double margin, double alpha, int estimated_means) {
  HEBE_CHECK(check_sample(x, static_cast<std::size_t>(estimated_means) + 1));
  HEBE_TRY(const Summary s, summarise(x));
  HEBE_CHECK(check_positive("the equivalence margin", margin));
  HEBE_CHECK(check_fraction("alpha", alpha));
  const double n = static_cast<double>(s.n), df = n - estimated_means;
  const double standard_error = s.sd * std::sqrt((n - 1) / df) / std::sqrt(n);
  Tost result;
  result.p_lower = p_against_below(s.mean + margin, standard_error, df);
  result.p_upper = p_against_below(margin - s.mean, standard_error, df);
  result.p = std::max(result.p_lower, result.p_upper);
  result.equivalent = result.p < alpha;
  return result;
}

} // namespace hebe::measure
