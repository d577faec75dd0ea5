// Facts about the response of sources: delay and window of a simulated meter are found, whatever
// they are, and aliasing is told from what is seen.
#include "measure/response.hpp"

#include "measure/response_plot.hpp"
#include "measure/response_probe.hpp"

#include <gtest/gtest.h>

#include "../data/support/probed_gpu.hpp"

namespace hebe::measure {
namespace {

Response responded(std::uint64_t seed, meter::MeterModel model = {},
                   std::vector<gpu::Fault> faults = {}) {
  VirtualClock clock;
  gpu::SimBoard board(clock, {}, seed, std::move(faults));
  gpu::SimDevice device(board, gpu::sim_device_info());
  meter::SimMeter meter(board, device.info(), model);
  return respond(test::probe_response(board, device, meter).value());
}

const SourceResponse& of(const Response& r, std::string_view name) {
  return *std::find_if(r.sources.begin(), r.sources.end(), [&](auto& s) { return s.name == name; });
}
constexpr const char* kBuffer = "sim.samples.total_power";

TEST(Response, delay_and_window_of_the_buffer_are_found_over_seeds) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto r = responded(seed);
    const auto& s = of(r, kBuffer);
    ASSERT_TRUE(s.fit);
    EXPECT_NEAR(s.fit->delay_s, 0.012, 0.001) << seed;
    EXPECT_NEAR(s.fit->window_s, 0.030, 0.001) << seed;
    ASSERT_TRUE(s.on.rise_s());
    EXPECT_NEAR(*s.on.rise_s(), 0.8 * 0.030, 0.003) << seed;
    EXPECT_NEAR(*s.on.t50_s, 0.012 + 0.015, 0.002) << seed;
    EXPECT_NEAR(*s.off.t95_s, 0.012 + 0.95 * 0.030, 0.003) << seed;
    EXPECT_TRUE(r.qualified()) << r.refusal;
    EXPECT_NEAR(r.lag_s, 0.0405, 0.003);
    EXPECT_GE(r.pre_roll_s, 5 * 0.0375);
    // (12 + 15) ms late, of the share of the power that steps
    EXPECT_NEAR(r.minimum_window_s, 0.027 / 0.005 * (s.fit->on_w - s.fit->off_w) / s.fit->on_w,
                0.3);
  }
}

TEST(Response, another_delay_and_window_are_found_as_well) {
  for (const auto& [delay, window] : {std::pair(3, 10), {40, 80}, {25, 5}}) {
    meter::MeterModel model;
    model.delay = std::chrono::milliseconds(delay);
    model.averaging = std::chrono::milliseconds(window);
    const auto r = responded(7, model);
    const auto& s = of(r, kBuffer);
    ASSERT_TRUE(s.fit);
    EXPECT_NEAR(s.fit->delay_s, delay * 1e-3, 0.0015) << delay << " " << window;
    EXPECT_NEAR(s.fit->window_s, window * 1e-3, 0.002) << delay << " " << window;
  }
}

TEST(Response, a_one_second_average_has_a_window_of_a_second) {
  const auto r = responded(3);
  const auto& s = of(r, "sim.field.power_average");
  ASSERT_TRUE(s.fit);
  EXPECT_NEAR(s.fit->window_s, 1.0, 0.03);
}

TEST(Response, a_wave_faster_than_two_samples_aliases_and_a_slow_one_is_seen_whole) {
  const auto r = responded(2);
  for (const auto& a : of(r, kBuffer).aliasing) {
    if (a.duty != 0.5) continue;
    if (a.period_s > 0.041) {
      EXPECT_FALSE(a.aliases) << a.period_s;
    }
    if (a.period_s >= 0.1) {
      EXPECT_NEAR(a.seen_ratio, a.predicted_ratio, 0.06) << a.period_s;
    }
    // A wave of 20 ms is in step with the samples: their mean is of one phase of it.
    if (a.period_s > 0.02) {
      EXPECT_LT(std::abs(a.mean_error_ratio), 0.05) << a.period_s;
    }
  }
  bool any = false;
  for (const auto& a : of(r, "sim.field.power_instant").aliasing) {
    if (a.period_s > 0.5) {
      EXPECT_FALSE(a.aliases) << a.period_s << " " << a.standing << " " << a.standing_error_ratio
                              << " mean " << a.mean_error_ratio;
    }
    any = any || a.aliases;
  }
  EXPECT_TRUE(any); // a 25 ms window every 100 ms
  // A wave of 100 ms under a field of 100 ms: one phase of it is all that is ever seen.
  for (const auto& a : of(r, "sim.field.power_instant").aliasing)
    if (a.period_s == 0.16) { // 6.25 Hz under 10 Hz: |6.25 - 10| Hz is what shows
      EXPECT_TRUE(a.aliases);
      EXPECT_FALSE(a.locked);
      EXPECT_NEAR(a.apparent_period_s, 1 / 3.75, 0.01);
    } else if (a.period_s == 0.1 && a.duty == 0.5) {
      EXPECT_TRUE(a.locked);
      EXPECT_GT(std::abs(a.mean_error_ratio), 0.1);
    }
}

// One wave under the instant field alone, which averages 25 ms.
AliasingPoint wave(double period, double duty, int field_period_ms, std::uint64_t seed = 1) {
  meter::MeterModel model;
  model.field_period = std::chrono::milliseconds(field_period_ms);
  VirtualClock clock;
  gpu::SimBoard board(clock, {}, seed, {});
  gpu::SimDevice device(board, gpu::sim_device_info());
  meter::SimMeter meter(board, device.info(), model);
  ResponseSchedule schedule;
  schedule.periods = {period};
  schedule.duties = {};
  schedule.square = Seconds(4);
  if (duty != 0.5) { // the schedule's duties are of 0.1 s
    schedule.periods = {};
    schedule.duties = {duty};
  }
  const auto r = respond(test::probe_response(board, device, meter, schedule).value());
  return of(r, "sim.field.power_instant").aliasing.at(0);
}

TEST(Response, a_wave_in_a_simple_ratio_to_the_updates_is_locked_on_either_side_of_half_the_rate) {
  struct Row {
    double ratio; ///< period of the wave, in updates
    int standing; ///< the harmonic that falls on a multiple of the sample rate
  };
  for (const int update_ms : {60, 100, 140})
    for (const auto& [ratio, standing] :
         {Row{1, 1}, Row{3, 3}, Row{1.5, 3}, Row{5, 5}, Row{2.5, 5}, Row{5.0 / 3, 5}}) {
      const auto a = wave(ratio * update_ms * 1e-3, 0.5, update_ms);
      EXPECT_TRUE(a.locked && a.aliases) << update_ms << " " << ratio;
      EXPECT_EQ(a.standing, standing) << update_ms << " " << ratio;
      EXPECT_GT(a.standing_ratio, 0.8) << update_ms << " " << ratio;
      EXPECT_GT(a.standing_error_ratio, 0.03) << update_ms << " " << ratio;
      // What this phase happens to show lies within what the worst one would.
      EXPECT_LT(std::abs(a.mean_error_ratio), 1.6 * a.standing_error_ratio + 0.01)
          << update_ms << " " << ratio;
    }
}

TEST(Response, two_updates_a_wave_are_locked_though_the_mean_is_right) {
  for (const int update_ms : {60, 100, 140}) {
    const auto a = wave(2 * update_ms * 1e-3, 0.5, update_ms);
    EXPECT_TRUE(a.locked && a.aliases) << update_ms;
    EXPECT_LT(std::abs(a.mean_error_ratio), 0.03) << update_ms;
  }
}

TEST(Response, two_updates_a_wave_show_all_of_it_or_nothing_by_the_phase_at_which_they_meet) {
  double least = 1e9, most = 0;
  for (int phase_ms = 0; phase_ms < 100; phase_ms += 4) {
    meter::MeterModel model;
    model.instant_phase = std::chrono::milliseconds(phase_ms);
    VirtualClock clock;
    gpu::SimBoard board(clock, {}, 1, {});
    gpu::SimDevice device(board, gpu::sim_device_info());
    meter::SimMeter meter(board, device.info(), model);
    ResponseSchedule schedule;
    schedule.steps = 1;
    schedule.periods = {0.2};
    schedule.duties = {};
    const auto recording = test::probe_response(board, device, meter, schedule).value();
    const auto& phases = recording.phases;
    const auto square = std::find_if(phases.begin(), phases.end(),
                                     [](auto& p) { return p.name.starts_with("square "); });
    double low = 1e9, high = 0;
    for (const auto& s : recording.sources)
      if (s.description.identity.name == "sim.field.power_instant")
        for (const auto& x : s.readings)
          if (x.before_ns > square->begin_ns + 300'000'000 && x.after_ns < square->end_ns)
            low = std::min(low, static_cast<double>(*x.raw)),
            high = std::max(high, static_cast<double>(*x.raw));
    least = std::min(least, high - low), most = std::max(most, high - low);
  }
  EXPECT_GT(most, 300'000); // mW: off and on
  EXPECT_LT(least, 0.35 * most);
}

TEST(Response, a_ratio_whose_standing_harmonic_the_wave_does_not_have_is_not_locked) {
  // Half on, a wave has odd harmonics only: at 4, 10 and 4/3 updates a wave the mean is right.
  for (const double ratio : {4.0, 10.0}) {
    const auto a = wave(ratio * 0.1, 0.5, 100);
    EXPECT_FALSE(a.locked) << ratio;
    EXPECT_LT(std::abs(a.mean_error_ratio), 0.03) << ratio;
  }
}

TEST(Response, a_wave_in_no_simple_ratio_is_not_locked) {
  for (const double ratio : {1.618, 2.236, 3.303, 4.236}) {
    const auto a = wave(ratio * 0.1, 0.5, 100);
    EXPECT_FALSE(a.locked) << ratio << " standing " << a.standing << " " << a.standing_ratio;
  }
}

TEST(Response, the_first_rule_still_gives_what_was_stored_by_it) {
  VirtualClock clock;
  gpu::SimBoard board(clock, {}, 1, {});
  gpu::SimDevice device(board, gpu::sim_device_info());
  meter::SimMeter meter(board, device.info());
  const auto recording = test::probe_response(board, device, meter).value();
  const auto old = to_json(respond(recording, 1)), now = to_json(respond(recording));
  EXPECT_EQ(aliasing_rule_of(old), 1);
  EXPECT_EQ(aliasing_rule_of(now), 2);
  for (const auto& s : old.at("sources"))
    for (const auto& a : s.at("aliasing")) {
      EXPECT_FALSE(a.contains("standing_harmonic"));
      if (s.at("name") == "sim.field.power_instant" && a.at("period_s").get<double>() >= 0.2) {
        EXPECT_FALSE(a.at("aliases")) << a; // what it did not see
      }
    }
}

TEST(Response, a_frozen_buffer_has_no_response_and_the_refusal_says_so) {
  const auto r = responded(1, {}, {gpu::fault_from("samples_frozen@0").value()});
  EXPECT_FALSE(r.qualified());
  EXPECT_EQ(r.primary, "");
  EXPECT_NE(r.refusal.find("does not follow the load"), std::string::npos) << r.refusal;
  EXPECT_TRUE(to_json(r).at("pre_roll_s").is_null());
}

TEST(Response, the_plot_is_one_self_contained_svg_without_scripts) {
  const auto svg = response_svg(responded(1), "a board, simulated");
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("href"), std::string::npos);
  EXPECT_NE(svg.find("delay 12"), std::string::npos);
  EXPECT_NE(svg.find("simulated"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

} // namespace
} // namespace hebe::measure
