// Facts about the statistics of sources: made readings of known period, jitter and behaviour, and a
// trace of a real H200.
#include "measure/source_statistics.hpp"

#include "core/philox.hpp"
#include "measure/source_qualification.hpp"
#include "meter/discovered.hpp"
#include "meter/replay_meter.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

constexpr std::int64_t kMs = 1'000'000;

SourceRecord source(const char* name, meter::Quantity quantity) {
  SourceRecord s;
  s.description.identity = {name, "made", "gpu", quantity == meter::Quantity::power ? "mW" : "mJ"};
  s.description.quantity = quantity;
  s.description.si_per_unit = 1e-3;
  return s;
}

/// A power field that changes at jittered ticks and is polled every `poll`.
SourceRecord polled(std::uint64_t seed, double period_ms, double jitter_ms, double poll_ms,
                    double seconds) {
  auto s = source("made", meter::Quantity::power);
  Philox random(seed);
  double tick = 0;
  std::int64_t value = 100'000;
  for (double t = 0; t < seconds * 1e3; t += poll_ms * (0.9 + 0.2 * random.uniform())) {
    while (tick <= t) {
      tick += period_ms + jitter_ms * (2 * random.uniform() - 1);
      value = 100'000 + random.below(5000);
    }
    const auto ns = static_cast<std::int64_t>(t * 1e6);
    s.readings.push_back({ns, ns + kMs, value, {}, {}, {}});
  }
  return s;
}

TEST(SourceStatistics, period_and_jitter_of_a_polled_field_are_found_over_seeds) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto s = polled(seed, 100, 4, 3, 10);
    const Phase phase{"p", Level::mixed, 0, 10'000 * kMs, "made"};
    const auto t = statistics_of(s, std::span(&phase, 1));
    ASSERT_TRUE(t.period_s);
    EXPECT_NEAR(t.period_s->mean, 0.100, 0.001) << seed;
    EXPECT_NEAR(t.period_s->median, 0.100, 0.003) << seed;
    EXPECT_NEAR(t.period_s->p99, 0.104, 0.004) << seed; // the poll's own 3 ms are in it
    EXPECT_NEAR(t.period_s->p1, 0.096, 0.004) << seed;
    EXPECT_NEAR(*t.repeats, 0.97, 0.01) << seed;
    EXPECT_NEAR(t.call_s->median, 0.001, 1e-9);
  }
}

TEST(SourceStatistics, updates_that_give_the_same_value_again_do_not_lengthen_the_period) {
  auto s = source("made", meter::Quantity::power);
  Philox random(1);
  std::int64_t value = 80;
  for (int t = 0; t < 20'000; t += 2) {
    if (t % 100 == 0 && random.below(2) == 0) value += 1;
    s.readings.push_back({t * kMs, t * kMs, value, {}, {}, {}});
  }
  const Phase phase{"p", Level::idle, 0, 20'000 * kMs, "made"};
  const auto t = statistics_of(s, std::span(&phase, 1));
  EXPECT_NEAR(t.period_s->median, 0.1, 1e-6);
  EXPECT_NEAR(t.unseen, 0.5, 0.1);
}

TEST(SourceStatistics, falls_of_a_counter_are_told_apart) {
  const auto behaviour = [](std::int64_t from, std::int64_t to, std::optional<std::int64_t> wraps) {
    auto s = source("c", meter::Quantity::energy_counter);
    s.description.wraps_at = wraps;
    s.readings = {{0, 1, from - 10, {}, {}, {}}, {2, 3, from, {}, {}, {}}, {4, 5, to, {}, {}, {}}};
    const Phase phase{"p", Level::full, 0, 10, "all"};
    return *statistics_of(s, std::span(&phase, 1)).counter;
  };
  EXPECT_EQ(behaviour(4'294'900'000, 20'000, std::nullopt).undeclared_wraps, 1);
  EXPECT_EQ(behaviour(262'143'328'000, 1000, 262'143'328'850).declared_wraps, 1);
  EXPECT_EQ(behaviour(900'000'000, 20, std::nullopt).resets, 1);
  const auto lost = behaviour(900'000'000, 895'000'000, std::nullopt);
  EXPECT_EQ(lost.falls, 1);
  EXPECT_EQ(lost.resets + lost.declared_wraps + lost.undeclared_wraps, 0);
  EXPECT_NE(lost.what.find("900000000 -> 895000000"), std::string::npos) << lost.what;
}

TEST(SourceStatistics, time_stamps_are_laid_against_both_clocks_of_the_host) {
  const auto domain = [](std::int64_t stamp_minus_wall_us, std::int64_t wall_minus_mono_us) {
    auto s = source("b", meter::Quantity::power);
    s.is_buffer = true;
    for (std::int64_t i = 1; i <= 20; ++i) {
      const auto mono_us = i * 400'000, wall = mono_us + wall_minus_mono_us;
      s.readings.push_back(
          {mono_us * 1000, mono_us * 1000, 100 + i, wall + stamp_minus_wall_us, wall, {}});
    }
    return *statistics_of(s, {}).stamps;
  };
  constexpr std::int64_t kWall = 1'795'955'062'000'000;
  EXPECT_EQ(domain(-12'000, kWall).domain, "host wall clock");
  EXPECT_NEAR(domain(-12'000, kWall).newest_age_s, 0.012, 1e-9);
  EXPECT_EQ(domain(-kWall, kWall).domain, "host monotonic clock");
  EXPECT_EQ(domain(-kWall / 2, kWall).domain, "another clock");
}

// --- the trace of a real board
// ----------------------------------------------------------------------

Recording replayed() {
  VirtualClock clock;
  const auto meter = meter::ReplayMeter::open(HEBE_TEST_DATA "/h200/power-samples.csv",
                                              HEBE_TEST_DATA "/h200/poll.csv", clock)
                         .value();
  Recording r;
  r.preferred_counter = "replay.counter.total_energy";
  r.power_limit_w = 700;
  auto sources = meter->sources();
  for (const auto& s : sources) r.sources.push_back({s.source->description(), false, {}, {}});
  for (const auto& mark : meter->marks()) {
    clock.sleep_until(mark.from);
    Phase p{mark.tag, mark.tag == "idle" ? Level::idle : Level::mixed,
            mark.from.time_since_epoch().count(), mark.to.time_since_epoch().count(), "all"};
    while (clock.now() < mark.to) {
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto before = clock.now();
        r.sources[i].readings.push_back(reading_of(sources[i].source->read(), before, clock.now()));
      }
      clock.sleep_for(std::chrono::microseconds(2500));
    }
    r.phases.push_back(p);
  }
  SourceRecord buffer = source("replay.samples.total_power", meter::Quantity::power);
  buffer.is_buffer = true;
  const auto now = clock.now().time_since_epoch().count();
  const auto samples = meter->read_power_samples(0).value();
  for (const auto& s : samples)
    buffer.readings.push_back({now, now, s.raw_mw, s.wall_us, clock.wall_us(), {}});
  r.sources.insert(r.sources.begin(), std::move(buffer));
  return r;
}

TEST(SourceStatistics, an_h200s_fields_and_counter_update_every_100_ms) {
  const auto r = replayed();
  for (const auto& s : r.sources) {
    const auto t = statistics_of(s, r.phases);
    ASSERT_TRUE(t.period_s) << s.description.identity.name;
    if (s.is_buffer) {
      EXPECT_NEAR(t.period_s->median, 0.0200, 0.0005);
      EXPECT_EQ(*t.buffer_length, 119U);
      EXPECT_NEAR(*t.buffer_span_s, 2.36, 0.01);
      continue;
    }
    EXPECT_NEAR(t.period_s->median, 0.100, 0.003) << s.description.identity.name;
    EXPECT_GT(*t.repeats, 0.95) << s.description.identity.name; // cached: read oftener, it repeats
    EXPECT_TRUE(t.moves_at_idle) << s.description.identity.name;
  }
  const auto counter = statistics_of(r.sources[1], r.phases);
  EXPECT_EQ(counter.counter->falls, 0);
  EXPECT_GT(counter.period_s->p1, 0.090);
  EXPECT_LT(counter.period_s->p99, 0.110);
}

TEST(SourceStatistics,
     an_h200s_counter_and_instant_power_agree_at_idle_and_its_usage_is_the_average) {
  const auto r = replayed();
  const auto& idle = r.phases.front();
  const auto from = idle.begin_ns + 1'500 * kMs;
  const auto counter = mean_power(r.sources[1], r.phases, from, idle.end_ns).value();
  const auto average = mean_power(r.sources[2], r.phases, from, idle.end_ns).value();
  const auto instant = mean_power(r.sources[3], r.phases, from, idle.end_ns).value();
  const auto usage = mean_power(r.sources[4], r.phases, from, idle.end_ns).value();
  EXPECT_NEAR(counter.watts / instant.watts, 1, 0.01);
  EXPECT_NEAR(usage.watts / average.watts, 1, 0.002);
}

} // namespace
} // namespace hebe::measure
