// Facts about the line through a ladder: known truths, over seeds.
#include "core/philox.hpp"
#include "measure/ladder_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hebe::measure {
namespace {

constexpr double kFractions[] = {0, 0.05, 0.1, 0.25, 0.5, 1};

// Three runs a fraction of E_B/E_A = 1 + slope f, whose logarithms spread by `spread`.
std::vector<LadderPoint> ladder(double slope, double spread, std::uint64_t seed, double bend = 0) {
  Philox random(seed, 7);
  std::vector<LadderPoint> out;
  for (const double f : kFractions)
    for (int r = 0; r < 3; ++r)
      out.push_back(
          {f, 100 * ((1 + slope * f + bend * f * f) * std::exp(spread * random.normal()) - 1)});
  return out;
}

TEST(LadderFit, points_on_a_line_give_the_line) {
  const auto fit = fit_line(ladder(0.9, 0, 1)).value();
  EXPECT_NEAR(fit.slope, 90, 1e-9);
  EXPECT_NEAR(fit.intercept, 0, 1e-9);
  EXPECT_NEAR(*fit.r_squared, 1, 1e-12);
  EXPECT_FALSE(fit.lack_of_fit.p) << "replicates that do not differ give no scale to judge by";
}

TEST(LadderFit, the_slopes_interval_covers_the_truth_as_often_as_it_says) {
  int slope = 0, intercept = 0;
  double sum = 0;
  constexpr int kStudies = 2000;
  for (int s = 0; s < kStudies; ++s) {
    const auto fit = fit_line(ladder(0.9, 0.002, static_cast<std::uint64_t>(s))).value();
    slope += fit.slope_interval.low <= 90 && 90 <= fit.slope_interval.high ? 1 : 0;
    intercept += fit.intercept_interval.low <= 0 && 0 <= fit.intercept_interval.high ? 1 : 0;
    sum += fit.slope;
  }
  EXPECT_NEAR(slope / double{kStudies}, 0.95, 0.015) << slope;
  EXPECT_NEAR(intercept / double{kStudies}, 0.95, 0.015) << intercept;
  EXPECT_NEAR(sum / kStudies, 90, 0.02);
}

TEST(LadderFit, lack_of_fit_is_found_where_the_line_bends_and_rarely_where_it_does_not) {
  int false_alarms = 0, found = 0;
  for (std::uint64_t s = 0; s < 1000; ++s) {
    false_alarms += *fit_line(ladder(0.9, 0.002, s)).value().lack_of_fit.p < 0.05 ? 1 : 0;
    found += *fit_line(ladder(0.9, 0.002, s, 0.1)).value().lack_of_fit.p < 0.05 ? 1 : 0;
  }
  EXPECT_NEAR(false_alarms / 1000.0, 0.05, 0.02);
  EXPECT_GT(found, 950);
}

TEST(LadderFit, what_cannot_be_fitted_is_refused) {
  EXPECT_FALSE(fit_line(std::vector<LadderPoint>{{0, 1}, {1, 2}}));
  EXPECT_FALSE(fit_line(std::vector<LadderPoint>{{1, 1}, {1, 2}, {1, 3}}));
  EXPECT_FALSE(fit_line(std::vector<LadderPoint>{{0, 1}, {1, -100}, {1, 3}}));
  EXPECT_FALSE(fit_line(
      std::vector<LadderPoint>{{0, 1}, {1, std::numeric_limits<double>::quiet_NaN()}, {1, 3}}));
}

TEST(LadderFit, a_response_is_monotone_unless_a_mean_falls) {
  const auto up = monotone_response(ladder(0.9, 0.001, 3)).value();
  EXPECT_TRUE(up.holds);
  EXPECT_EQ(up.largest_fall, 0);
  EXPECT_LT(*up.trend_p, 1e-6);
  const auto down = monotone_response(ladder(-0.5, 0.001, 3)).value();
  EXPECT_FALSE(down.holds);
  EXPECT_GT(*down.trend_p, 0.99);
  const auto once =
      monotone_response(std::vector<LadderPoint>{{0, 0}, {0.5, 3}, {0.7, 2}, {1, 4}}).value();
  EXPECT_FALSE(once.holds);
  EXPECT_DOUBLE_EQ(once.largest_fall, 0.5) << "3 and 2 are pooled to 2.5";
}

TEST(LadderFit, a_trend_is_rarely_found_where_there_is_none) {
  int found = 0;
  for (std::uint64_t s = 0; s < 2000; ++s)
    found += *monotone_response(ladder(0, 0.001, s)).value().trend_p < 0.05 ? 1 : 0;
  EXPECT_NEAR(found / 2000.0, 0.05, 0.015);
}

} // namespace
} // namespace hebe::measure
