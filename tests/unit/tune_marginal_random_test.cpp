// Properties of marginal energy over random readings, sound and unsound.
#include "tune/marginal.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace hebe::tune {
namespace {

class Draw {
public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution(low, high)(engine_);
  }
  double real(double low, double high) {
    return std::uniform_real_distribution(low, high)(engine_);
  }
  bool one_in(int n) { return whole(1, n) == 1; }
  // Spread over magnitudes, and now and then what no meter should say.
  double odd_real() {
    constexpr double kOdd[] = {0,
                               -1,
                               std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::max(),
                               5e-324};
    if (one_in(12)) return kOdd[whole(0, 5)];
    return std::pow(10.0, real(-9, 6));
  }
  std::int64_t odd_whole() {
    constexpr std::int64_t kOdd[] = {0, -1, std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()};
    if (one_in(12)) return kOdd[whole(0, 3)];
    return whole(0, std::int64_t{1} << whole(1, 60));
  }
  MeteredWindow window() {
    const char* statuses[] = {"primary", "usable", "frozen"};
    MeteredWindow out;
    out.meter = {"m", statuses[one_in(15) ? 2 : 0],
                 one_in(15) ? Provenance::simulated : Provenance::measured};
    if (one_in(2)) {
      CounterWindow w{odd_whole(),        odd_whole(),        Nanos(odd_whole()),
                      Nanos(odd_whole()), Joules(odd_real()), Joules(odd_real())};
      out.readings = w;
    } else {
      out.readings = PowerWindow{Watts(odd_real()), Watts(odd_real()), Nanos(odd_whole())};
    }
    return out;
  }

private:
  std::mt19937_64 engine_;
};

TEST(MarginalRandom, no_readings_give_a_cost_that_is_zero_negative_or_not_finite) {
  Draw draw(8);
  int costs = 0, refusals = 0;
  for (int i = 0; i < 200'000; ++i) {
    MarginalRequest q{draw.window(), draw.window(), Idle::clocks_up, draw.odd_whole(), "f"};
    const auto got = marginal_cost(q);
    if (!got) {
      ++refusals;
      ASSERT_EQ(got.error().not_written, "f");
      ASSERT_NE(got.error().what.find("meter m: "), std::string::npos) << got.error().what;
      continue;
    }
    ++costs;
    ASSERT_GE(got->cost_nj, 1);
    for (const double x : {got->low_nj, got->exact_nj, got->high_nj}) {
      ASSERT_TRUE(std::isfinite(x)) << x;
      ASSERT_GT(x, 0);
    }
    ASSERT_LE(got->low_nj, got->exact_nj);
    ASSERT_LE(got->exact_nj, got->high_nj);
    ASSERT_EQ(got->meter, q.busy->meter);
  }
  EXPECT_GT(costs, 1000);
  EXPECT_GT(refusals, 1000);
}

TEST(MarginalRandom, twice_the_operations_halve_the_cost_within_rounding) {
  Draw draw(9);
  for (int i = 0; i < 20'000; ++i) {
    const double idle = draw.real(70, 130);
    MarginalRequest q;
    const MeterIdentity meter{"m", "primary", Provenance::measured};
    const Nanos span(draw.whole(1'000'000'000, 10'000'000'000));
    q.busy = {meter, PowerWindow{Watts(idle + draw.real(50, 500)), Watts(0.2), span}};
    q.idle = {meter, PowerWindow{Watts(idle), Watts(0.2), span}};
    q.operations = draw.whole(1, 1'000'000'000);
    const auto once = marginal_cost(q);
    q.operations *= 2;
    const auto twice = marginal_cost(q);
    ASSERT_TRUE(once && twice);
    ASSERT_LE(std::abs(once->cost_nj - 2 * twice->cost_nj), 2);
    ASSERT_NEAR(once->high_nj, 2 * twice->high_nj, 1e-9 * once->high_nj);
  }
}

} // namespace
} // namespace hebe::tune
