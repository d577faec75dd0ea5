#include "measure/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "core/philox.hpp"
#include "measure/summary.hpp"

namespace hebe::measure {
namespace {

// double throughout: Boost's default promotion to long double is slower and differs by platform.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using Normal = boost::math::normal_distribution<double, Policy>;
using StudentT = boost::math::students_t_distribution<double, Policy>;

/// Unbiased indices below n. Half a 32-bit word is enough for a sample of pairs and halves the
/// cost; Lemire's method (2019, ACM TOMACS 29:3) as in Philox::below, on 16 bits.
class IndexDraws {
public:
  IndexDraws(std::uint64_t seed, std::size_t n)
      : philox_(seed), n_(static_cast<std::uint32_t>(n)), threshold_(0x10000U % n_) {}

  std::uint32_t next() {
    if (n_ > kLargestFor16Bits) return philox_.below(n_);
    for (;;) {
      const std::uint32_t m = half_word() * n_;
      if ((m & 0xFFFFU) >= threshold_) return m >> 16;
    }
  }

private:
  static constexpr std::uint32_t kLargestFor16Bits = 4096; // above, too many draws are rejected

  std::uint32_t half_word() {
    has_spare_ = !has_spare_;
    if (!has_spare_) return word_ >> 16;
    word_ = philox_.next_u32();
    return word_ & 0xFFFFU;
  }

  Philox philox_;
  std::uint32_t n_, threshold_, word_ = 0;
  bool has_spare_ = false;
};

/// Sums of resamples of deviations from the mean. Only additions in a fixed order: no contraction,
/// no library call, so every IEEE machine gets the same bits.
std::vector<double> resampled_sums(std::span<const double> deviations, int resamples,
                                   std::uint64_t seed) {
  IndexDraws draws(seed, deviations.size());
  std::vector<double> sums(static_cast<std::size_t>(resamples));
  for (double& sum : sums) {
    double total = 0;
    for (std::size_t i = 0; i < deviations.size(); ++i) total += deviations[draws.next()];
    sum = total;
  }
  return sums;
}

/// The bias z0. A resample that is a permutation of the sample must count as a tie although its sum
/// is rounded differently, hence the tolerance. Half a resample keeps z0 finite.
double bias_of(const std::vector<double>& sums, double scale) {
  const double tie = 1e-13 * scale;
  double below = 0;
  for (const double sum : sums) below += sum < -tie ? 1.0 : sum <= tie ? 0.5 : 0.0;
  const double n = static_cast<double>(sums.size());
  return quantile(Normal(), std::clamp(below / n, 0.5 / n, 1 - 0.5 / n));
}

/// Jackknife acceleration; for the mean the jackknife values are affine in the deviations.
double acceleration_of(std::span<const double> deviations, double largest) {
  double squares = 0, cubes = 0;
  for (const double d : deviations) {
    const double u = d / largest;
    squares += u * u;
    cubes += u * u * u;
  }
  return cubes / (6 * squares * std::sqrt(squares));
}

/// Where the nominal normal quantile z lands after bias correction and acceleration, as a fraction
/// of the resamples. Past the pole of the transformation only the extreme resample is left.
double bca_fraction(double z, double z0, double acceleration) {
  const double shifted = z0 + z;
  const double denominator = 1 - acceleration * shifted;
  if (denominator <= 0) return shifted > 0 ? 1.0 : 0.0;
  return cdf(Normal(), z0 + shifted / denominator);
}

/// Quantile by linear interpolation between order statistics (Hyndman and Fan's type 7, numpy's
/// default).
double quantile_of(std::vector<double>& values, double fraction) {
  const double position = fraction * static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(position);
  std::nth_element(values.begin(), at, values.end());
  if (at + 1 == values.end()) return *at;
  const double next = *std::min_element(at + 1, values.end());
  return *at + (position - std::floor(position)) * (next - *at);
}

/// Size of the nominal normal quantile. Plain BCa of 12 pairs covers about 91 %: the bootstrap's
/// spread is short by sqrt((n-1)/n), and it has no t tails. Hesterberg (2015, The American
/// Statistician 69:371, section 5, "expanded percentile") replaces z by the value that repairs
/// both; it enters BCa before its transformation.
double nominal_z(std::size_t n, const BootstrapOptions& options, bool corrected) {
  const double tail = (1 - options.level) / 2;
  if (!corrected) return quantile(complement(Normal(), tail));
  const double size = static_cast<double>(n), df = size - options.estimated_means;
  return std::sqrt(size / df) * t_exceeded_with(tail, df);
}

Status check_bootstrap(std::span<const double> x, const BootstrapOptions& options) {
  HEBE_CHECK(check_sample(x));
  HEBE_CHECK(check_fraction("the level", options.level));
  HEBE_CHECK(check_sample(x, static_cast<std::size_t>(options.estimated_means) + 1));
  if (x.size() > std::numeric_limits<std::int32_t>::max())
    return refuse(RefusalCode::bad_argument,
                  "a sample of " + std::to_string(x.size()) + " values is too long to resample");
  if (options.resamples < 100 || options.resamples > 10'000'000)
    return refuse(RefusalCode::bad_argument,
                  std::to_string(options.resamples) + " resamples, not 100 to 10000000",
                  "10000 is the protocol's number");
  return {};
}

} // namespace

double t_cdf(double t, double df) { return cdf(StudentT(df), t); }
double t_two_sided_p(double t, double df) { return 2 * cdf(StudentT(df), -std::abs(t)); }
double t_exceeded_with(double tail, double df) { return quantile(complement(StudentT(df), tail)); }

Result<Interval> t_interval(std::span<const double> x, double level, int estimated_means) {
  HEBE_CHECK(check_sample(x, static_cast<std::size_t>(estimated_means) + 1));
  HEBE_TRY(const Summary s, summarise(x));
  HEBE_CHECK(check_fraction("the level", level));
  const double n = static_cast<double>(s.n), df = n - estimated_means;
  const double error = s.sd * std::sqrt((n - 1) / df) / std::sqrt(n);
  const double half_width = t_exceeded_with((1 - level) / 2, df) * error;
  return Interval{s.mean - half_width, s.mean + half_width};
}

Result<BcaInterval> bca_interval(std::span<const double> x, const BootstrapOptions& options) {
  HEBE_CHECK(check_bootstrap(x, options));
  const double mean = mean_of(x), n = static_cast<double>(x.size());
  std::vector<double> deviations;
  double scale = 0, largest = 0;
  for (const double v : x) {
    deviations.push_back(v - mean);
    scale += std::abs(v - mean);
    largest = std::max(largest, std::abs(v - mean));
  }
  if (largest == 0) return BcaInterval{{mean, mean}, 0, 0, true, {mean, mean}};

  std::vector<double> sums = resampled_sums(deviations, options.resamples, options.seed);
  BcaInterval result{{}, bias_of(sums, scale), acceleration_of(deviations, largest), false, {}};
  const auto end = [&](double nominal) {
    return mean + quantile_of(sums, bca_fraction(nominal, result.bias_z0, result.acceleration)) / n;
  };
  const double plain = nominal_z(x.size(), options, false);
  const double z = nominal_z(x.size(), options, options.small_sample_correction);
  result.interval = {end(-z), end(z)};
  result.uncorrected = {end(-plain), end(plain)};
  return result;
}

} // namespace hebe::measure
