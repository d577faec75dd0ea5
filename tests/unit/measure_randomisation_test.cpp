// Facts about the sign-flip test: scipy's exact p, hand counts, ties, uniformity under no effect.
#include "measure/randomisation.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "../data/stats/reference.hpp"
#include "core/philox.hpp"

namespace hebe::measure {
namespace {

/// The definition, pattern by pattern; for integer values, hence without rounding.
double p_by_definition(const std::vector<double>& x) {
  double observed = 0;
  for (const double v : x) observed += v;
  std::uint64_t extreme = 0;
  const std::uint64_t patterns = std::uint64_t{1} << x.size();
  for (std::uint64_t pattern = 0; pattern < patterns; ++pattern) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += (pattern >> i) & 1U ? x[i] : -x[i];
    extreme += std::abs(sum) >= std::abs(observed) ? 1U : 0U;
  }
  return static_cast<double>(extreme) / static_cast<double>(patterns);
}

TEST(sign_flip, agrees_with_scipys_exact_p) {
  int compared = 0;
  for (const auto& sample : test::reference().at("samples")) {
    if (sample.at("sign_flip_p").is_null()) continue;
    SCOPED_TRACE(sample.at("name").get<std::string>());
    const auto x = test::values_of(sample);
    const auto got = sign_flip(x, 1).value();
    EXPECT_NEAR(got.p, sample.at("sign_flip_p").get<double>(), 1e-14);
    EXPECT_TRUE(got.exact);
    EXPECT_EQ(got.count, std::uint64_t{1} << x.size());
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST(sign_flip, ties_are_at_least_as_extreme_whatever_the_rounding) {
  Philox philox(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<double> whole(2 + philox.below(11)), tenths;
    for (double& v : whole) v = static_cast<double>(philox.below(7)) - 2;
    for (const double v : whole) tenths.push_back(v * 0.1 / 3); // many ties, none exact in binary
    EXPECT_EQ(sign_flip(whole, 1).value().p, p_by_definition(whole));
    EXPECT_EQ(sign_flip(tenths, 1).value().p, p_by_definition(whole));
  }
}

TEST(sign_flip, all_of_one_sign_is_two_of_all_patterns) {
  const auto got = sign_flip(std::vector<double>(12, 0.003), 1).value();
  EXPECT_EQ(got.p, 2.0 / 4096);
  EXPECT_EQ(got.at_least_as_extreme, 2U);
}

TEST(sign_flip, is_exact_up_to_20_and_further_if_asked) {
  const std::vector<double> x20(20, 1.0), x21(21, 1.0), x64(64, 1.0);
  EXPECT_TRUE(sign_flip(x20, 1).value().exact);
  const auto random = sign_flip(x21, 1).value();
  EXPECT_FALSE(random.exact);
  EXPECT_EQ(random.count, 100'000U);
  EXPECT_GE(random.p, 1.0 / 100'001);
  const auto exact = sign_flip(x21, 1, std::uint64_t{1} << 21).value();
  EXPECT_TRUE(exact.exact);
  EXPECT_EQ(exact.p, std::ldexp(1.0, -20));
  EXPECT_FALSE(sign_flip(x64, 1, ~std::uint64_t{0}).value().exact);
}

TEST(sign_flip, random_patterns_agree_with_the_exact_p) {
  for (const auto& sample : test::reference().at("samples")) {
    const auto x = test::values_of(sample);
    if (x.size() > 40) continue;
    SCOPED_TRACE(sample.at("name").get<std::string>());
    const auto exact = sign_flip(x, 1, std::uint64_t{1} << 40).value();
    const auto random = sign_flip(x, 1, 1).value();
    ASSERT_TRUE(exact.exact);
    ASSERT_FALSE(random.exact);
    const double error = std::sqrt(exact.p * (1 - exact.p) / 1e5);
    EXPECT_NEAR(random.p, exact.p, 4 * error + 2e-5);
    EXPECT_EQ(random.p, sign_flip(x, 1, 1).value().p);
  }
}

TEST(sign_flip, p_is_uniform_under_no_effect) {
  Philox philox(6);
  constexpr int kSamples = 10'000;
  std::vector<int> at_most(10, 0);
  int at_most_5_percent = 0;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<double> x(12);
    for (double& v : x) v = std::pow(philox.normal(), 3); // symmetric, heavy tails
    const double p = sign_flip(x, 1).value().p;
    for (std::size_t k = 0; k < 10; ++k)
      at_most[k] += p <= 0.1 * static_cast<double>(k + 1) ? 1 : 0;
    at_most_5_percent += p <= 0.05 ? 1 : 0;
  }
  for (std::size_t k = 0; k < 10; ++k) // 4 standard errors of at most 0.005
    EXPECT_NEAR(at_most[k] / double{kSamples}, 0.1 * static_cast<double>(k + 1), 0.02);
  EXPECT_NEAR(at_most_5_percent / double{kSamples}, 0.05, 4 * 0.0022);
}

TEST(sign_flip, sum_of_zero_has_p_one) {
  EXPECT_EQ(sign_flip(std::vector<double>(12, 0.0), 1).value().p, 1);
  EXPECT_EQ(sign_flip(std::vector<double>(30, 0.0), 1).value().p, 1);
  EXPECT_EQ(sign_flip(std::vector{0.1, 0.2, -0.3}, 1).value().p, 1);
}

TEST(sign_flip, of_mirrored_data_is_the_same) {
  const std::vector<double> x{0.3, -0.1, 0.7, 0.2, 0.25}, y{-0.3, 0.1, -0.7, -0.2, -0.25};
  EXPECT_EQ(sign_flip(x, 1).value().p, sign_flip(y, 1).value().p);
}

TEST(sign_flip, refuses_unusable_samples) {
  EXPECT_EQ(sign_flip(std::vector{1.0}, 1).error().code, RefusalCode::bad_argument);
  EXPECT_FALSE(sign_flip(std::vector{1.0, std::numeric_limits<double>::infinity()}, 1));
}

} // namespace
} // namespace hebe::measure
