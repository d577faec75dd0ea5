// Facts about the order effect and the trend, against scipy.
#include "measure/order_and_trend.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "../data/stats/reference.hpp"
#include "core/philox.hpp"

namespace hebe::measure {
namespace {

TEST(order_effect, agrees_with_scipys_welch_test) {
  for (const auto& sample : test::reference().at("samples")) {
    SCOPED_TRACE(sample.at("name").get<std::string>());
    std::vector<double> groups[2];
    const auto x = test::values_of(sample);
    for (std::size_t i = 0; i < x.size(); ++i) groups[i % 2].push_back(x[i]);
    const auto& expected = sample.at("welch_even_odd");
    const auto got = order_effect(groups[0], groups[1]).value();
    EXPECT_NEAR(got.t.value(), expected.at("t").get<double>(), 1e-10);
    EXPECT_NEAR(got.df.value(), expected.at("df").get<double>(), 1e-10);
    EXPECT_NEAR(got.p.value(), expected.at("p").get<double>(), 1e-12);
  }
}

TEST(order_effect, difference_is_ab_less_ba) {
  EXPECT_EQ(order_effect(std::vector{3.0, 5.0}, std::vector{1.0, 2.0, 3.0}).value().difference, 2);
}

TEST(order_effect, of_groups_too_small_to_test_has_no_p) {
  const std::vector<double> none, one{1.0}, two{1.0, 2.0};
  const auto single = order_effect(one, two).value();
  EXPECT_EQ(single.difference, -0.5);
  EXPECT_FALSE(single.p || single.t || single.df);
  EXPECT_FALSE(order_effect(two, one).value().p);
  const auto empty = order_effect(none, two).value();
  EXPECT_FALSE(empty.difference || empty.p);
  EXPECT_FALSE(order_effect(none, none).value().difference);
}

TEST(order_effect, of_groups_without_spread_is_certain) {
  const std::vector<double> a(3, 0.1), b(4, 0.2);
  const auto differ = order_effect(a, b).value(), same = order_effect(a, a).value();
  EXPECT_EQ(differ.p, 0);
  EXPECT_EQ(same.p, 1);
  EXPECT_FALSE(differ.t || differ.df || same.t || same.df);
  // One group that varies is enough to test.
  EXPECT_GT(order_effect(a, std::vector{0.0, 0.2, 0.4}).value().p.value(), 0);
}

TEST(trend, agrees_with_scipys_linregress) {
  for (const auto& sample : test::reference().at("samples")) {
    SCOPED_TRACE(sample.at("name").get<std::string>());
    const auto x = test::values_of(sample);
    const auto& expected = sample.at("trend");
    const auto got = trend(x).value();
    EXPECT_NEAR(got.slope, expected.at("slope").get<double>(), 1e-16);
    EXPECT_NEAR(got.t.value(), expected.at("t").get<double>(), 1e-10);
    EXPECT_NEAR(got.p.value(), expected.at("p").get<double>(), 1e-12);
    EXPECT_NEAR(got.total_change, got.slope * static_cast<double>(x.size() - 1), 1e-16);
  }
}

TEST(trend, of_a_line_is_certain) {
  const auto rising = trend(std::vector{1.0, 1.5, 2.0, 2.5}).value();
  EXPECT_EQ(rising.slope, 0.5);
  EXPECT_EQ(rising.total_change, 1.5);
  EXPECT_EQ(rising.p, 0);
  EXPECT_FALSE(rising.t);
  const auto level = trend(std::vector<double>(5, 0.1)).value();
  EXPECT_EQ(level.slope, 0);
  EXPECT_EQ(level.p, 1);
}

TEST(trend, of_two_pairs_has_a_slope_but_no_p) {
  const auto got = trend(std::vector{1.0, 3.0}).value();
  EXPECT_EQ(got.slope, 2);
  EXPECT_EQ(got.total_change, 2);
  EXPECT_FALSE(got.p || got.t);
}

TEST(order_and_trend, cry_wolf_in_5_percent_of_quiet_series) {
  Philox philox(8);
  constexpr int kSeries = 10'000; // standard error 0.0022
  int order_alarms = 0, trend_alarms = 0;
  for (int i = 0; i < kSeries; ++i) {
    std::vector<double> x(12);
    for (double& v : x) v = philox.normal();
    const std::span<const double> all(x);
    order_alarms += order_effect(all.first(6), all.last(6)).value().p.value() <= 0.05 ? 1 : 0;
    trend_alarms += trend(x).value().p.value() <= 0.05 ? 1 : 0;
  }
  EXPECT_NEAR(order_alarms / double{kSeries}, 0.05, 4 * 0.0022);
  EXPECT_NEAR(trend_alarms / double{kSeries}, 0.05, 4 * 0.0022);
}

TEST(order_and_trend, refuse_unusable_values) {
  const std::vector<double> good{1, 2}, bad{1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(order_effect(good, bad).error().code, RefusalCode::bad_argument);
  EXPECT_FALSE(order_effect(bad, good));
  EXPECT_FALSE(trend(bad));
  EXPECT_FALSE(trend(std::vector{1.0}));
}

} // namespace
} // namespace hebe::measure
