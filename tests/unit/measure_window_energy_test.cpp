// Facts about a window's power: exact where the answer is known, absent where it is not.
#include "measure/window_energy.hpp"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr MeterBehaviour kBehaviour{Seconds(0.02), Seconds(0.04), Seconds(0.1)};

using Samples = std::vector<meter::AlignedSample>;

// One sample every `step_ms` from `from_ms` on, with the power that `watts` gives at its time.
Samples sampled(std::int64_t from_ms, std::int64_t to_ms, std::int64_t step_ms,
                const std::function<double(double)>& watts) {
  Samples out;
  for (auto t = from_ms; t <= to_ms; t += step_ms)
    out.push_back(
        {t * kMs, 0, static_cast<std::int64_t>(watts(static_cast<double>(t) * 1e-3) * 1e3 + 0.5)});
  return out;
}

WindowReading window(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t launches = 1000) {
  WindowReading w;
  w.begin_ns = begin_ns;
  w.end_ns = end_ns;
  w.elapsed = to_seconds(Nanos(end_ns - begin_ns));
  w.launches_per_replay = 10;
  w.replays = launches / 10;
  return w;
}

TEST(WindowEnergy, a_constant_power_is_that_power_wherever_the_edges_lie) {
  const auto samples = sampled(0, 2000, 20, [](double) { return 446; });
  for (const std::int64_t shift : {0L, 1L, 7 * kMs, 13'371'337L, 19'999'999L}) {
    const auto e =
        estimate_window(window(500 * kMs + shift, 1500 * kMs + shift), samples, kBehaviour);
    ASSERT_TRUE(e.mean_power) << shift;
    EXPECT_DOUBLE_EQ(e.mean_power->value(), 446) << shift;
    EXPECT_DOUBLE_EQ(e.energy_per_launch->value(), 446 * 1.0 / 1000) << shift;
    EXPECT_NEAR(e.coverage, 1, 0.021);
    EXPECT_DOUBLE_EQ(e.max_gap.value(), 0.02);
  }
}

TEST(WindowEnergy, a_linear_ramp_is_exact_wherever_the_edges_lie) {
  const auto samples = sampled(0, 3000, 20, [](double t) { return 100 + 200 * t; });
  const std::pair<std::int64_t, std::int64_t> table[] = {
      {500 * kMs, 1500 * kMs},
      {503 * kMs, 1511 * kMs},
      {1'000'000'001, 1'000'000'001 + 777 * kMs},
      {20 * kMs, 60 * kMs},
  };
  for (const auto& [begin, end] : table) {
    const auto e = estimate_window(window(begin, end), samples, kBehaviour);
    const double middle = static_cast<double>(begin + end) * 0.5e-9;
    EXPECT_NEAR(e.mean_power->value(), 100 + 200 * middle, 1e-9);
  }
}

TEST(WindowEnergy, samples_at_uneven_distances_are_weighted_by_time) {
  // 100 W for 0.9 s told by two samples, 500 W for 0.1 s told by ten.
  Samples samples = {{0, 0, 100'000}, {900 * kMs, 0, 100'000}};
  for (std::int64_t t = 901; t <= 1010; t += 10) samples.push_back({t * kMs, 0, 500'000});
  const auto e = estimate_window(window(1 * kMs, 1000 * kMs), samples, kBehaviour);
  EXPECT_NEAR(e.mean_power->value(), (100 * 0.899 + 300 * 0.001 + 500 * 0.099) / 0.999, 1e-9);
  EXPECT_DOUBLE_EQ(e.max_gap.value(), 0.9);
}

TEST(WindowEnergy, a_step_is_placed_within_half_a_sample) {
  const auto samples = sampled(0, 2000, 20, [](double t) { return t < 1.0 ? 120 : 440; });
  const auto e = estimate_window(window(500 * kMs, 1500 * kMs), samples, kBehaviour);
  EXPECT_NEAR(e.mean_power->value(), 280, 320 * 0.010 / 1.0 + 1e-9);
}

TEST(WindowEnergy, edges_are_interpolated_between_their_neighbours) {
  const Samples samples = {
      {0, 0, 0}, {100 * kMs, 0, 100'000}, {200 * kMs, 0, 100'000}, {300 * kMs, 0, 500'000}};
  // 50 W at 50 ms up to 100 W, level, then up to 300 W at 250 ms.
  const auto e = estimate_window(window(50 * kMs, 250 * kMs), samples, kBehaviour);
  EXPECT_DOUBLE_EQ(e.mean_power->value(), (75 * 50 + 100 * 100 + 200 * 50) / 200.0);
  EXPECT_EQ(e.samples, 2);
}

TEST(WindowEnergy, without_a_sample_on_both_sides_of_an_edge_there_is_no_number) {
  const auto all = sampled(0, 2000, 20, [](double) { return 300; });
  const auto cut = [&](std::int64_t from_ms, std::int64_t to_ms) {
    Samples out;
    for (const auto& s : all)
      if (s.t_mono_ns >= from_ms * kMs && s.t_mono_ns <= to_ms * kMs) out.push_back(s);
    return estimate_window(window(500 * kMs, 1500 * kMs), out, kBehaviour);
  };
  EXPECT_TRUE(cut(480, 1500).mean_power);
  const std::tuple<const char*, std::int64_t, std::int64_t> table[] = {
      {"none before the begin", 500, 2000}, {"none behind the end", 0, 1499},
      {"only inside", 600, 1400},           {"only before", 0, 480},
      {"only behind", 1500, 2000},          {"none at all", 3000, 4000},
  };
  for (const auto& [name, from, to] : table) {
    const auto e = cut(from, to);
    EXPECT_FALSE(e.mean_power) << name;
    EXPECT_FALSE(e.energy_per_launch) << name;
    EXPECT_DOUBLE_EQ(e.max_gap.value(), 1.0) << name; // all of it
  }
}

TEST(WindowEnergy, a_gap_is_measured_also_across_an_edge) {
  auto samples = sampled(0, 2000, 20, [](double) { return 300; });
  const auto without = [&](std::int64_t from_ms, std::int64_t to_ms) {
    Samples out;
    for (const auto& s : samples)
      if (s.t_mono_ns <= from_ms * kMs || s.t_mono_ns >= to_ms * kMs) out.push_back(s);
    return estimate_window(window(500 * kMs, 1500 * kMs), out, kBehaviour);
  };
  EXPECT_DOUBLE_EQ(without(800, 1040).max_gap.value(), 0.24);
  EXPECT_DOUBLE_EQ(without(400, 640).max_gap.value(), 0.24);
  EXPECT_DOUBLE_EQ(without(1400, 1640).max_gap.value(), 0.24);
  EXPECT_DOUBLE_EQ(without(100, 340).max_gap.value(), 0.02); // not this window's
  EXPECT_LT(without(800, 1040).coverage, 0.8);
}

TEST(WindowEnergy, coverage_is_found_over_expected) {
  const auto e = estimate_window(window(500 * kMs, 1500 * kMs),
                                 sampled(0, 2000, 40, [](double) { return 300; }), kBehaviour);
  EXPECT_DOUBLE_EQ(e.coverage, 0.5);
}

TEST(WindowEnergy, a_value_that_repeats_is_timed) {
  const auto samples =
      sampled(0, 2000, 20, [](double t) { return t >= 0.7 && t <= 0.91 ? 300 : 300 + t; });
  EXPECT_NEAR(
      estimate_window(window(500 * kMs, 1500 * kMs), samples, kBehaviour).longest_repeat.value(),
      0.20, 1e-9);
}

TEST(WindowEnergy, the_counters_power_is_its_difference_over_the_middles_of_its_two_reads) {
  auto w = window(500 * kMs, 1500 * kMs);
  w.begin.before = Instant(Nanos(500 * kMs));
  w.begin.after = Instant(Nanos(506 * kMs));
  w.end.before = Instant(Nanos(1501 * kMs));
  w.end.after = Instant(Nanos(1505 * kMs));
  w.begin.energy_mj = 2'857'338;
  w.end.energy_mj = 2'857'338 + 300'000;
  EXPECT_DOUBLE_EQ(estimate_window(w, {}, kBehaviour).counter_power->value(), 300 / 1.0);
  for (const bool first : {true, false}) {
    auto missing = w;
    (first ? missing.begin : missing.end).energy_mj = refuse(RefusalCode::meter_unsupported, "no");
    EXPECT_FALSE(estimate_window(missing, {}, kBehaviour).counter_power);
  }
  auto reversed = w;
  std::swap(reversed.begin, reversed.end);
  EXPECT_FALSE(estimate_window(reversed, {}, kBehaviour).counter_power);
}

} // namespace
} // namespace hebe::measure
