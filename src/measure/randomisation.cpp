#include "measure/randomisation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/philox.hpp"
#include "measure/summary.hpp"

namespace hebe::measure {
namespace {

constexpr std::size_t kLargestExact = 40; // two tables of 2^20 sums
constexpr std::uint64_t kRandomPatterns = 100'000;

/// The observed |sum|, lowered so that rounding does not turn a tie into a difference: relative to
/// the sum of sizes, because that is what rounding errors scale with.
double tie_threshold(std::span<const double> x) {
  double sum = 0, sizes = 0;
  for (const double v : x) {
    sum += v;
    sizes += std::abs(v);
  }
  return std::abs(sum) - 1e-12 * sizes;
}

/// All 2^n signed sums of x.
std::vector<double> signed_sums(std::span<const double> x) {
  std::vector<double> sums{0.0};
  for (const double v : x) {
    const std::size_t known = sums.size();
    for (std::size_t i = 0; i < known; ++i) {
      sums.push_back(sums[i] - v);
      sums[i] += v;
    }
  }
  return sums;
}

/// Every signed sum is one of the first half plus one of the second, so two tables of 2^(n/2)
/// replace a walk through 2^n (Horowitz and Sahni 1974, JACM 21:277). No sum is updated in place:
/// none drifts.
std::uint64_t count_exactly(std::span<const double> x, double threshold) {
  const std::size_t half = x.size() / 2;
  std::vector<double> second = signed_sums(x.subspan(half));
  std::sort(second.begin(), second.end());
  std::uint64_t count = 0;
  for (const double first : signed_sums(x.first(half))) {
    const auto high = std::lower_bound(second.begin(), second.end(), threshold - first);
    const auto low = std::upper_bound(second.begin(), second.end(), -threshold - first);
    count += static_cast<std::uint64_t>((second.end() - high) + (low - second.begin()));
  }
  return count;
}

std::uint64_t count_randomly(std::span<const double> x, double threshold, std::uint64_t seed) {
  Philox philox(seed);
  std::uint64_t count = 0;
  for (std::uint64_t pattern = 0; pattern < kRandomPatterns; ++pattern) {
    double sum = 0;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < x.size(); ++i, bits >>= 1) {
      if (i % 32 == 0) bits = philox.next_u32();
      const double signed_value[2] = {x[i], -x[i]};
      sum += signed_value[bits & 1U];
    }
    count += std::abs(sum) >= threshold ? 1U : 0U;
  }
  return count;
}

} // namespace

Result<SignFlip> sign_flip(std::span<const double> x, std::uint64_t seed, std::uint64_t max_exact) {
  HEBE_CHECK(check_sample(x));
  const double threshold = tie_threshold(x);
  SignFlip result;
  result.exact = x.size() <= kLargestExact && (std::uint64_t{1} << x.size()) <= max_exact;
  result.count = result.exact ? std::uint64_t{1} << x.size() : kRandomPatterns;
  if (threshold <= 0) { // the observed sum is 0: nothing is less extreme
    result.at_least_as_extreme = result.count;
    return result;
  }
  result.at_least_as_extreme =
      result.exact ? count_exactly(x, threshold) : count_randomly(x, threshold, seed);
  const double extreme = static_cast<double>(result.at_least_as_extreme);
  const double count = static_cast<double>(result.count);
  result.p = result.exact ? extreme / count : (extreme + 1) / (count + 1);
  return result;
}

} // namespace hebe::measure
