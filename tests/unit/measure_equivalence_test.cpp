// Facts about the two one-sided tests, against scipy and by simulation.
#include "measure/equivalence.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "../data/stats/reference.hpp"
#include "core/philox.hpp"
#include "measure/intervals.hpp"

namespace hebe::measure {
namespace {

TEST(tost, agrees_with_scipy) {
  for (const auto& sample : test::reference().at("samples")) {
    SCOPED_TRACE(sample.at("name").get<std::string>());
    const auto& expected = sample.at("tost");
    const auto got = tost(test::values_of(sample), expected.at("margin")).value();
    const double lower = expected.at("p_lower"), upper = expected.at("p_upper");
    EXPECT_NEAR(got.p_lower / lower, 1, 1e-9);
    EXPECT_NEAR(got.p_upper / upper, 1, 1e-9);
    EXPECT_EQ(got.p, std::max(got.p_lower, got.p_upper));
    EXPECT_EQ(got.equivalent, std::max(lower, upper) < 0.05);
  }
}

TEST(tost, is_equivalent_exactly_if_the_90_percent_interval_is_inside) {
  Philox philox(3);
  int equivalents = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> x(8);
    for (double& v : x) v = philox.normal();
    const auto interval = t_interval(x, 0.90).value();
    const bool inside = -0.9 < interval.low && interval.high < 0.9;
    EXPECT_EQ(tost(x, 0.9).value().equivalent, inside);
    equivalents += inside ? 1 : 0;
  }
  EXPECT_GT(equivalents, 200);
  EXPECT_LT(equivalents, 1800);
}

TEST(tost, finds_false_equivalence_in_at_most_5_percent_at_the_margin) {
  Philox philox(4);
  for (const double truth : {0.005, -0.005}) {
    constexpr int kSamples = 20'000; // standard error 0.0015
    int equivalents = 0;
    for (int i = 0; i < kSamples; ++i) {
      std::vector<double> x(12);
      for (double& v : x) v = truth + 0.002 * philox.normal();
      equivalents += tost(x, 0.005).value().equivalent ? 1 : 0;
    }
    const double share = static_cast<double>(equivalents) / kSamples;
    EXPECT_LE(share, 0.05 + 3 * 0.0015);
    EXPECT_GE(share, 0.05 - 3 * 0.0015); // and it does not waste its alpha either
  }
}

TEST(tost, of_mirrored_data_swaps_the_two_tests) {
  const std::vector<double> x{0.001, 0.004, -0.002, 0.003}, y{-0.001, -0.004, 0.002, -0.003};
  const auto a = tost(x, 0.005).value(), b = tost(y, 0.005).value();
  EXPECT_EQ(a.p_lower, b.p_upper);
  EXPECT_EQ(a.p_upper, b.p_lower);
}

TEST(tost, equal_values_are_equivalent_inside_the_margin_only) {
  struct Case {
    double value;
    double p_lower, p_upper;
    bool equivalent;
  };
  for (const auto& c : {Case{0.0, 0, 0, true}, Case{0.4, 0, 0, true}, Case{0.5, 0, 1, false},
                        Case{0.6, 0, 1, false}, Case{-0.5, 1, 0, false}}) {
    const auto got = tost(std::vector(5, c.value), 0.5).value();
    EXPECT_EQ(got.p_lower, c.p_lower) << c.value;
    EXPECT_EQ(got.p_upper, c.p_upper) << c.value;
    EXPECT_EQ(got.p, std::max(c.p_lower, c.p_upper)) << c.value;
    EXPECT_EQ(got.equivalent, c.equivalent) << c.value;
  }
}

TEST(log_margin, is_the_log_of_the_ratio) {
  EXPECT_NEAR(log_margin(0.5), std::log(1.005), 1e-15);
  EXPECT_EQ(log_margin(0), 0);
}

TEST(tost, refuses_arguments_that_make_no_sense) {
  const std::vector<double> good{1, 2, 3};
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double margin : {0.0, -0.1, kNan, log_margin(-200)}) EXPECT_FALSE(tost(good, margin));
  for (const double alpha : {0.0, 1.0, 5.0, kNan}) EXPECT_FALSE(tost(good, 0.1, alpha));
  EXPECT_FALSE(tost(std::vector{1.0}, 0.1));
  EXPECT_FALSE(tost(std::vector{1.0, kNan}, 0.1));
  EXPECT_NE(tost(good, -0.25).error().what.find("-0.25"), std::string::npos);
  EXPECT_EQ(tost(good, -0.25).error().code, RefusalCode::bad_argument);
}

} // namespace
} // namespace hebe::measure
