// Facts about the power analysis: statsmodels, an independent integration, and simulated tests.
#include "measure/power_analysis.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "../data/stats/reference.hpp"
#include "core/philox.hpp"
#include "measure/equivalence.hpp"
#include "measure/intervals.hpp"

namespace hebe::measure {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(pairs_needed, agrees_with_statsmodels) {
  for (const auto& c : test::reference().at("pairs_needed")) {
    SCOPED_TRACE(c.dump());
    const double effect = 0.003 * c.at("ratio").get<double>();
    const auto expected = static_cast<int>(std::ceil(c.at("n").get<double>()));
    EXPECT_EQ(pairs_needed(0.003, effect, c.at("alpha"), c.at("power")).value(), expected);
    EXPECT_EQ(pairs_needed(0.003, -effect, c.at("alpha"), c.at("power")).value(), expected);
  }
}

TEST(detectable_effect, agrees_with_scipys_noncentral_t) {
  for (const auto& c : test::reference().at("detectable_effect")) {
    SCOPED_TRACE(c.dump());
    const double got = detectable_effect(0.003, c.at("n"), c.at("alpha"), c.at("power")).value();
    EXPECT_NEAR(got / 0.003, c.at("ratio").get<double>(), 1e-8);
  }
}

TEST(pairs_needed, is_the_inverse_of_detectable_effect) {
  for (const int n : {2, 3, 12, 100, 999'999}) {
    const double effect = detectable_effect(0.004, n).value();
    EXPECT_EQ(pairs_needed(0.004, effect * (1 + 1e-8)).value(), n);
    EXPECT_GT(pairs_needed(0.004, effect * (1 - 1e-8)).value(), n);
  }
}

TEST(pairs_needed_for_equivalence, agrees_with_an_independent_integration) {
  for (const auto& c : test::reference().at("pairs_needed_for_equivalence")) {
    SCOPED_TRACE(c.dump());
    const double margin = 0.003 * c.at("margin").get<double>();
    const double truth = 0.003 * c.at("truth").get<double>();
    const auto expected = c.at("n").get<int>();
    for (const double sign : {1.0, -1.0})
      EXPECT_EQ(
          pairs_needed_for_equivalence(0.003, margin, c.at("alpha"), c.at("power"), sign * truth)
              .value(),
          expected);
  }
}

/// Share of simulated experiments of n pairs, sd 1, in which `found` is true.
template <class Found> double share_found(int n, double truth, Found found) {
  Philox philox(9);
  constexpr int kExperiments = 20'000;
  int count = 0;
  std::vector<double> x(static_cast<std::size_t>(n));
  for (int i = 0; i < kExperiments; ++i) {
    for (double& v : x) v = truth + philox.normal();
    count += found(x) ? 1 : 0;
  }
  return static_cast<double>(count) / kExperiments;
}

constexpr double kShareError = 4 * 0.0024; // of a share of 0.87 or more of 20 000

TEST(pairs_needed, is_enough_in_simulated_tests_and_one_fewer_is_not) {
  const auto finds = [](const std::vector<double>& x) {
    const auto interval = t_interval(x).value();
    return interval.low > 0 || interval.high < 0;
  };
  const int n = pairs_needed(1, 1).value().value();
  EXPECT_GT(share_found(n, 1, finds), 0.9 - kShareError);
  EXPECT_LT(share_found(n - 1, 1, finds), 0.9 + kShareError);
  EXPECT_NEAR(share_found(12, detectable_effect(1, 12).value(), finds), 0.9, kShareError);
}

TEST(pairs_needed_for_equivalence, is_enough_in_simulated_tests_and_one_fewer_is_not) {
  const auto finds = [](const std::vector<double>& x) { return tost(x, 1).value().equivalent; };
  const int n = pairs_needed_for_equivalence(1, 1).value().value();
  EXPECT_GT(share_found(n, 0, finds), 0.9 - kShareError);
  EXPECT_LT(share_found(n - 1, 0, finds), 0.9 + kShareError);
}

TEST(power_analysis, needs_at_least_two_pairs_and_gives_up_above_a_million) {
  EXPECT_EQ(pairs_needed(1e-9, 1).value(), 2);
  EXPECT_EQ(pairs_needed(5e-324, 1e100).value(), 2);
  EXPECT_EQ(pairs_needed(1, 1e-5).value(), std::nullopt);
  EXPECT_EQ(pairs_needed(1, 1e-100).value(), std::nullopt);
  EXPECT_EQ(pairs_needed_for_equivalence(1e-9, 1).value(), 2);
  EXPECT_EQ(pairs_needed_for_equivalence(1, 1e-5).value(), std::nullopt);
}

TEST(power_analysis, holds_at_the_edges_of_alpha_and_power) {
  for (const double alpha : {1e-9, 1e-4, 0.5})
    for (const double power : {0.6, 0.9999}) {
      const int n = pairs_needed(1, 0.5, alpha, power).value().value();
      EXPECT_LE(detectable_effect(1, n, alpha, power).value(), 0.5 * (1 + 1e-9));
      EXPECT_GT(detectable_effect(1, n - 1, alpha, power).value(), 0.5);
      EXPECT_TRUE(std::isfinite(detectable_effect(1, 2, alpha, power).value()));
      EXPECT_TRUE(pairs_needed_for_equivalence(1, 0.5, alpha, power).value());
    }
}

TEST(power_analysis, without_spread_needs_the_fewest_pairs) {
  EXPECT_EQ(pairs_needed(0, 1e-9).value(), 2);
  EXPECT_EQ(detectable_effect(0, 12).value(), 0);
  EXPECT_EQ(pairs_needed_for_equivalence(0, 0.005).value(), 2);
}

TEST(pairs_needed_for_equivalence, no_number_suffices_if_the_effect_is_not_inside_the_margin) {
  EXPECT_EQ(pairs_needed_for_equivalence(1, 0.5, 0.05, 0.9, 0.5).value(), std::nullopt);
  EXPECT_EQ(pairs_needed_for_equivalence(0, 0.5, 0.05, 0.9, -0.6).value(), std::nullopt);
}

TEST(power_analysis, refuses_arguments_that_make_no_sense) {
  EXPECT_EQ(pairs_needed(-1, 1).error().code, RefusalCode::bad_argument);
  EXPECT_NE(pairs_needed(-1.5, 1).error().what.find("-1.5"), std::string::npos);
  for (const double bad : {0.0, kNan, static_cast<double>(INFINITY)}) {
    EXPECT_FALSE(pairs_needed(1, bad)) << bad;
    EXPECT_FALSE(pairs_needed_for_equivalence(1, bad)) << bad;
  }
  EXPECT_FALSE(pairs_needed_for_equivalence(1, 1, 0.05, 0.9, kNan));
  EXPECT_FALSE(pairs_needed_for_equivalence(1, -1));
  for (const double bad : {0.0, 1.0, 90.0, kNan, 1e-10}) {
    EXPECT_FALSE(pairs_needed(1, 1, bad)) << bad;
    EXPECT_FALSE(detectable_effect(1, 12, bad)) << bad;
  }
  for (const double bad : {0.0, 1.0, 90.0, kNan, 0.05})
    EXPECT_FALSE(pairs_needed(1, 1, 0.05, bad)) << bad;
  for (const int bad : {-1, 1, 1'000'001}) EXPECT_FALSE(detectable_effect(1, bad)) << bad;
}

} // namespace
} // namespace hebe::measure
