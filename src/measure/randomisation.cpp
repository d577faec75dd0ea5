#include "measure/randomisation.hpp"

#include <algorithm>
#include <cmath>
#include <string>
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

/// C(n, k), or more than `limit` as limit + 1.
std::uint64_t binomial(std::uint64_t n, std::uint64_t k, std::uint64_t limit) {
  double value = 1;
  for (std::uint64_t i = 1; i <= k; ++i)
    value *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return value > static_cast<double>(limit) ? limit + 1 : static_cast<std::uint64_t>(value + 0.5);
}

/// |2 * (sum of the chosen) - total| >= threshold over every choice of k of the values (Gosper's
/// walk through the n-bit words with k ones).
std::uint64_t count_choices(std::span<const double> x, double total, std::size_t k,
                            double threshold) {
  const std::uint64_t end = std::uint64_t{1} << x.size();
  std::uint64_t count = 0;
  for (std::uint64_t word = (std::uint64_t{1} << k) - 1; word < end;) {
    double chosen = 0;
    for (std::uint64_t rest = word; rest != 0; rest &= rest - 1)
      chosen += x[static_cast<std::size_t>(__builtin_ctzll(rest))];
    count += std::abs(2 * chosen - total) >= threshold ? 1U : 0U;
    if (word == 0) break;
    const std::uint64_t low = word & (~word + 1), ripple = word + low;
    word = (((word ^ ripple) >> 2) / low) | ripple;
  }
  return count;
}

} // namespace

Result<SignFlip> balanced_sign_flip(std::span<const double> x, const std::vector<bool>& a_first,
                                    std::uint64_t seed) {
  HEBE_CHECK(check_sample(x));
  if (a_first.size() != x.size())
    return refuse(RefusalCode::bad_argument, std::to_string(x.size()) + " values and " +
                                                 std::to_string(a_first.size()) + " orders");
  // Second against first: what stays fixed when the labels are drawn anew.
  std::vector<double> second_to_first;
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    second_to_first.push_back(a_first[i] ? x[i] : -x[i]);
    total += second_to_first.back();
  }
  const double threshold = tie_threshold(x);
  const auto n = x.size();
  std::vector<std::size_t> sizes{n / 2};
  if (n % 2 == 1) sizes.push_back(n / 2 + 1);
  constexpr std::uint64_t kMostExact = std::uint64_t{1} << 20;
  SignFlip result;
  const auto assignments = binomial(n, n / 2, kMostExact) * sizes.size();
  result.exact = assignments <= kMostExact;
  result.count = result.exact ? assignments : kRandomPatterns;
  if (threshold <= 0) {
    result.at_least_as_extreme = result.count;
    return result;
  }
  if (result.exact) {
    for (const auto k : sizes)
      result.at_least_as_extreme += count_choices(second_to_first, total, k, threshold);
  } else {
    Philox philox(seed);
    for (std::uint64_t pattern = 0; pattern < kRandomPatterns; ++pattern) {
      const auto k = sizes[sizes.size() == 1 ? 0 : philox.below(2)];
      double chosen = 0;
      for (std::size_t i = 0; i < k; ++i) { // a partial shuffle: the first k are the chosen
        std::swap(second_to_first[i],
                  second_to_first[i + philox.below(static_cast<std::uint32_t>(n - i))]);
        chosen += second_to_first[i];
      }
      result.at_least_as_extreme += std::abs(2 * chosen - total) >= threshold ? 1U : 0U;
    }
  }
  const double extreme = static_cast<double>(result.at_least_as_extreme);
  const double count = static_cast<double>(result.count);
  result.p = result.exact ? extreme / count : (extreme + 1) / (count + 1);
  return result;
}

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
