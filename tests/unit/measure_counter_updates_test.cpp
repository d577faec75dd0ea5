// Facts about the counter's updates: they are found from the reads at windows' edges, whatever the
// counter's gain, and a counter without a period has none.
#include "measure/counter_updates.hpp"

#include "core/philox.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

constexpr double kNominal = 1e8;

struct Counter {
  double period = kNominal, phase = 37e6, gain = 1;
  double jitter = 0; ///< of an update's instant, ns either way
  [[nodiscard]] double update_before(double t, Philox& random) const {
    const double moved = (2 * random.uniform() - 1) * jitter;
    return std::floor((t - phase - moved) / period) * period + phase + moved;
  }
};

// Windows of one power at random phases, 0.4 s apart, begun 10 s after the clock's own zero.
std::vector<Window> windows_of(const Counter& c, int count, double length_s, double power = 630,
                               std::uint64_t seed = 1) {
  Philox random(seed, 1);
  std::vector<Window> out;
  double t = 10e9;
  for (int i = 0; i < count; ++i) {
    Window w;
    const double begin = t + 1e8 * random.uniform(), end = begin + length_s * 1e9;
    t = end + 0.4e9;
    for (auto [boundary, at] : {std::pair(&w.reading.begin, begin), {&w.reading.end, end}}) {
      boundary->before = Instant(Nanos(std::llround(at)));
      boundary->after = boundary->before + std::chrono::milliseconds(7);
      boundary->energy_mj =
          std::llround(1e9 + c.update_before(at, random) * 1e-9 * power * c.gain * 1e3);
    }
    w.reading.begin_ns = std::llround(begin), w.reading.end_ns = std::llround(end);
    w.estimate.mean_power = Watts(power * (1 + 2e-4 * (2 * random.uniform() - 1)));
    out.push_back(std::move(w));
  }
  return out;
}

// Of the windows whose edges are in no doubt.
double worst(std::vector<Window> windows, const CounterUpdates& u) {
  double out = 0;
  for (auto& w : windows) {
    time_counter(w, u);
    if (w.estimate.doubtful_edges > 0) continue;
    out = std::max(out, std::abs(*w.estimate.counter_power / *w.estimate.mean_power - 1));
  }
  return out;
}

TEST(CounterUpdates, are_found_from_the_edges_alone_whatever_period_phase_and_length) {
  for (const double ppm : {-150.0, -20.0, 0.0, 35.0, 150.0})
    for (const double phase : {0.0, 1e6, 50e6, 99e6})
      for (const double length : {1.0231, 5.1137}) {
        const auto windows = windows_of({kNominal * (1 + ppm * 1e-6), phase}, 24, length);
        const auto u = find_counter_updates(windows, Seconds(0.1));
        ASSERT_TRUE(u) << ppm << " " << phase << " " << length;
        EXPECT_LT(worst(windows, *u), 0.0005) << ppm << " " << phase << " " << length;
        EXPECT_EQ(u->windows, 24U);
      }
}

TEST(CounterUpdates, a_run_of_hours_needs_its_period_finely_and_gets_it) {
  const auto windows = windows_of({kNominal * (1 + 63e-6), 81e6}, 1500, 5.1137);
  const auto u = find_counter_updates(windows, Seconds(0.1));
  ASSERT_TRUE(u);
  EXPECT_NEAR(u->period_ns / kNominal, 1 + 63e-6, 1e-7);
  EXPECT_LT(worst(windows, *u), 0.0005);
}

TEST(CounterUpdates, a_wrong_gain_is_not_explained_away) {
  for (const double gain : {0.97, 0.985, 1.012, 1.02, 1.3}) {
    auto windows = windows_of({kNominal, 12e6, gain}, 24, 5.1137);
    const auto u = find_counter_updates(windows, Seconds(0.1));
    ASSERT_TRUE(u) << gain;
    for (auto& w : windows) {
      time_counter(w, *u);
      EXPECT_NEAR(*w.estimate.counter_power / *w.estimate.mean_power, gain, 0.001) << gain;
    }
  }
}

TEST(CounterUpdates, one_window_that_is_off_stays_off_or_is_doubtful_and_spoils_no_other) {
  int stays = 0;
  for (std::size_t off = 0; off < 24; ++off) {
    auto windows = windows_of({}, 24, 5.1137);
    windows[off].estimate.mean_power = *windows[off].estimate.mean_power * 1.02; // by one update
    const auto u = find_counter_updates(windows, Seconds(0.1));
    ASSERT_TRUE(u);
    for (std::size_t i = 0; i < windows.size(); ++i) {
      time_counter(windows[i], *u);
      const auto& e = windows[i].estimate;
      const double ratio = *e.counter_power / *e.mean_power;
      const bool as_it_is = std::abs(ratio - (i == off ? 1 / 1.02 : 1)) < 0.001;
      if (i == off && as_it_is) ++stays;
      // A read beside an update may have seen the one or the other, and says so.
      EXPECT_TRUE(as_it_is || e.doubtful_edges > 0) << off << " " << i << " " << ratio;
    }
  }
  EXPECT_GE(stays, 20);
}

TEST(CounterUpdates, a_counter_without_a_period_or_with_too_few_reads_has_none) {
  EXPECT_FALSE(find_counter_updates(windows_of({}, 7, 5.1137), Seconds(0.1)));
  EXPECT_TRUE(find_counter_updates(windows_of({}, 8, 5.1137), Seconds(0.1)));
  for (std::uint64_t seed = 1; seed <= 20; ++seed) { // updates at any time
    Counter c;
    c.jitter = 50e6;
    EXPECT_FALSE(find_counter_updates(windows_of(c, 24, 5.1137, 630, seed), Seconds(0.1))) << seed;
  }
  EXPECT_FALSE(find_counter_updates({}, Seconds(0.1)));
}

TEST(CounterUpdates, windows_without_readings_are_left_as_they_are) {
  auto windows = windows_of({}, 12, 5.1137);
  windows[0].reading.begin.energy_mj = meter::not_read();
  windows[3].reading.end.energy_mj = *windows[3].reading.begin.energy_mj - 5;
  windows[5].estimate.mean_power.reset();
  const auto u = find_counter_updates(windows, Seconds(0.1));
  ASSERT_TRUE(u);
  EXPECT_EQ(u->windows, 9U);
  time_counter(windows[0], *u);
  EXPECT_FALSE(windows[0].estimate.counter_updates);
}

TEST(CounterUpdates, the_fewer_the_reads_the_more_is_doubtful) {
  const auto few = find_counter_updates(windows_of({}, 10, 5.1137), Seconds(0.1)).value();
  const auto many = find_counter_updates(windows_of({}, 60, 5.1137), Seconds(0.1)).value();
  EXPECT_GE(few.doubtful_ns, 5e6 - 1e4);
  EXPECT_LT(many.doubtful_ns, 6e6);
}

TEST(CounterUpdates, windows_of_whole_periods_leave_the_phase_open_and_every_edge_doubtful) {
  auto windows = windows_of({}, 24, 5.0);
  const auto u = find_counter_updates(windows, Seconds(0.1));
  if (!u) return; // nothing is known of them: as safe
  EXPECT_GT(u->doubtful_ns, 40e6);
  EXPECT_LT(worst(windows, *u), 0.0005);
}

TEST(CounterUpdates, a_read_at_an_update_is_doubtful) {
  const CounterUpdates u{1e8, 5e6, 0, 24, 2e6};
  EXPECT_TRUE(u.doubtful(405'000'000 - 1'999'999));
  EXPECT_TRUE(u.doubtful(405'000'000 + 1'999'999));
  EXPECT_FALSE(u.doubtful(405'000'000 - 2'000'001));
  EXPECT_FALSE(u.doubtful(455'000'000));
  EXPECT_EQ(u.between(404'000'000, 406'000'000), 1);
  EXPECT_EQ(u.between(405'000'001, 504'999'999), 0);
}

} // namespace
} // namespace hebe::measure
