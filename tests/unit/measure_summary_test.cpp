// Facts about the summary of a sample, against numpy and scipy.
#include "measure/summary.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "../data/stats/reference.hpp"

namespace hebe::measure {
namespace {

TEST(summary, agrees_with_numpy) {
  for (const auto& sample : test::reference().at("samples")) {
    SCOPED_TRACE(sample.at("name").get<std::string>());
    const auto& expected = sample.at("summary");
    const auto s = summarise(test::values_of(sample)).value();
    EXPECT_NEAR(s.mean, expected.at("mean").get<double>(), 1e-16);
    EXPECT_NEAR(s.sd, expected.at("sd").get<double>(), 1e-16);
    EXPECT_NEAR(s.median, expected.at("median").get<double>(), 1e-16);
    ASSERT_TRUE(s.cv);
    EXPECT_NEAR(*s.cv / std::abs(expected.at("cv").get<double>()), 1, 1e-12);
  }
}

TEST(summary, median_of_odd_and_even_samples) {
  EXPECT_EQ(summarise(std::vector{3.0, 1.0, 2.0}).value().median, 2);
  EXPECT_EQ(summarise(std::vector{4.0, 1.0, 2.0, 3.0}).value().median, 2.5);
  EXPECT_EQ(summarise(std::vector{5.0, 1.0}).value().median, 3);
}

TEST(summary, equal_values_have_exactly_that_mean_and_no_spread) {
  const auto s = summarise(std::vector(7, 0.1)).value();
  EXPECT_EQ(s.mean, 0.1);
  EXPECT_EQ(s.sd, 0);
  EXPECT_EQ(s.cv, 0);
}

TEST(summary, cv_is_absent_where_the_mean_is_zero) {
  EXPECT_FALSE(summarise(std::vector{-1.0, 1.0}).value().cv);
  EXPECT_FALSE(summarise(std::vector{0.0, 0.0}).value().cv);
}

TEST(summary, a_large_offset_does_not_drown_the_spread) {
  EXPECT_NEAR(summarise(std::vector{1e9 + 1, 1e9 + 2, 1e9 + 3}).value().sd, 1, 1e-12);
}

TEST(summary, tiny_spreads_do_not_vanish) {
  EXPECT_NEAR(summarise(std::vector{1e-200, 3e-200}).value().sd * 1e200, std::sqrt(2.0), 1e-12);
}

TEST(summary, too_few_or_unusable_values_are_refused_with_numbers) {
  const auto one = summarise(std::vector{1.0});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, RefusalCode::bad_argument);
  EXPECT_NE(one.error().what.find("a sample of 1 where at least 2"), std::string::npos);
  EXPECT_FALSE(summarise({}));
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), -1e101}) {
    const auto result = summarise(std::vector{1.0, 2.0, bad});
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, RefusalCode::bad_argument);
    EXPECT_NE(result.error().what.find("value 2 of the sample"), std::string::npos);
  }
}

} // namespace
} // namespace hebe::measure
