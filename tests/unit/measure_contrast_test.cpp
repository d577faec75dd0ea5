// Facts about contrasts: which made-up ratios get which verdict.
#include "measure/contrast.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::measure {
namespace {

std::vector<PairOrder> alternating(std::size_t n) {
  std::vector<PairOrder> order;
  for (std::size_t i = 0; i < n; ++i)
    order.push_back(i % 4 == 1 || i % 4 == 2 ? PairOrder::ba : PairOrder::ab);
  return order;
}

// n ratios of `percent_effect`, spread about it without regard to order or time.
std::vector<double> ratios(std::size_t n, double percent_effect, double percent_spread) {
  std::vector<double> d;
  for (std::size_t i = 0; i < n; ++i) // the pattern sums to 0 over each order and is level in time
    d.push_back(std::log1p(percent_effect / 100) +
                percent_spread / 100 *
                    (std::array{1.0, 0.6, -1.0, -0.6, -1.0, -0.6, 1.0, 0.6}[i % 8]));
  return d;
}

Contrast contrast(const std::vector<double>& d, double margin_percent = 0.5) {
  return contrast_of(d, alternating(d.size()), margin_percent, test::smoke_plan()).value();
}

TEST(Contrast, the_verdict_follows_from_the_ratios) {
  struct Row {
    const char* name;
    double effect, spread;
    Verdict verdict;
  };
  const Row table[] = {
      {"no effect, little spread", 0, 0.05, Verdict::equivalent},
      {"a small effect well inside the margin", 0.2, 0.05, Verdict::equivalent},
      {"the same below", -0.2, 0.05, Verdict::equivalent},
      {"an effect beyond the margin", 2, 0.1, Verdict::higher},
      {"the same below", -2, 0.1, Verdict::lower},
      {"no effect, wide spread", 0, 3, Verdict::inconclusive},
      {"at the margin, wide spread", 0.5, 2, Verdict::inconclusive},
      {"all pairs equal and nothing", 0, 0, Verdict::equivalent},
      {"all pairs equal and beyond", 1, 0, Verdict::higher},
  };
  for (const auto& row : table) {
    const auto c = contrast(ratios(16, row.effect, row.spread));
    EXPECT_EQ(name_of(c.verdict), name_of(row.verdict)) << row.name;
    EXPECT_NEAR(percent(c.effect), row.effect, 0.02) << row.name;
    EXPECT_EQ(c.degenerate, row.spread == 0) << row.name;
  }
}

TEST(Contrast, swapping_the_arms_turns_lower_into_higher) {
  auto d = ratios(16, 3, 0.2);
  const auto up = contrast(d);
  for (auto& x : d) x = -x;
  const auto down = contrast(d);
  EXPECT_EQ(up.verdict, Verdict::higher);
  EXPECT_EQ(down.verdict, Verdict::lower);
  EXPECT_DOUBLE_EQ(up.effect, -down.effect);
  EXPECT_DOUBLE_EQ(up.t.low, -down.t.high);
}

TEST(Contrast, an_order_effect_as_large_as_the_margin_voids_it) {
  auto d = ratios(16, 0, 0.05);
  const auto order = alternating(16);
  for (std::size_t i = 0; i < d.size(); ++i)
    d[i] += (order[i] == PairOrder::ab ? 1 : -1) * 0.003; // 0.6 % apart
  const auto c = contrast(d);
  EXPECT_FALSE(c.order_gate);
  EXPECT_TRUE(c.trend_gate);
  EXPECT_EQ(c.verdict, Verdict::invalid);
  EXPECT_NEAR(*c.order.difference, 0.006, 1e-12);
}

TEST(Contrast, an_order_effect_that_is_sure_but_smaller_than_the_margin_does_not) {
  auto d = ratios(16, 0, 0.01);
  const auto order = alternating(16);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] += (order[i] == PairOrder::ab ? 1 : -1) * 0.001;
  const auto c = contrast(d);
  EXPECT_LT(*c.order.p, 0.001);
  EXPECT_TRUE(c.order_gate);
  EXPECT_EQ(c.verdict, Verdict::equivalent);
}

TEST(Contrast, a_trend_as_large_as_the_margin_voids_it) {
  auto d = ratios(16, 0, 0.05);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] += 0.007 * (static_cast<double>(i) / 15 - 0.5);
  const auto c = contrast(d);
  EXPECT_TRUE(c.order_gate);
  EXPECT_FALSE(c.trend_gate);
  EXPECT_EQ(c.verdict, Verdict::invalid);
}

TEST(Contrast, a_trend_within_the_noise_does_not) {
  auto d = ratios(16, 0, 3);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] += 0.007 * (static_cast<double>(i) / 15 - 0.5);
  EXPECT_TRUE(contrast(d).trend_gate);
}

TEST(Contrast, two_pairs_are_enough_to_be_inconclusive_and_one_is_refused) {
  EXPECT_EQ(contrast({0.01, -0.02}).verdict, Verdict::inconclusive);
  const std::vector<double> one = {0.01};
  EXPECT_FALSE(contrast_of(one, alternating(1), 0.5, test::smoke_plan()));
}

TEST(Contrast, values_that_are_no_numbers_and_margins_that_are_none_are_refused) {
  auto d = ratios(8, 0, 0.1);
  EXPECT_FALSE(contrast_of(d, alternating(8), 0, test::smoke_plan()));
  EXPECT_FALSE(contrast_of(d, alternating(8), -1, test::smoke_plan()));
  d[3] = std::nan("");
  EXPECT_FALSE(contrast_of(d, alternating(8), 0.5, test::smoke_plan()));
}

TEST(Contrast, is_the_same_again_and_its_json_is_in_percent) {
  const auto d = ratios(16, 2, 0.1);
  const auto json = to_json(contrast(d));
  EXPECT_EQ(json, to_json(contrast(d)));
  EXPECT_NEAR(json.at("effect_percent").get<double>(), 2, 1e-9);
  EXPECT_LE(json.at("interval_bca").at("low_percent").get<double>(), 2);
  EXPECT_GE(json.at("interval_bca").at("high_percent").get<double>(), 2);
  EXPECT_NEAR(json.at("equivalence").at("margin_percent").get<double>(), 0.5, 1e-12);
  EXPECT_EQ(json.at("verdict"), "higher");
}

TEST(Contrast, what_cannot_be_tested_is_null) {
  // Two pairs, one of each order: no p of either kind.
  const auto json = to_json(contrast({0.001, 0.002}));
  EXPECT_TRUE(json.at("order_effect").at("p").is_null());
  EXPECT_TRUE(json.at("trend").at("p").is_null());
  EXPECT_TRUE(json.at("order_effect").at("passed").get<bool>());
}

} // namespace
} // namespace hebe::measure
