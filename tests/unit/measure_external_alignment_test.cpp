// Facts about an internal source held against an external meter, on made series of known truth.
#include "measure/external_alignment.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hebe::measure {
namespace {
using testing::HasSubstr;

/// How the two meters see a load: true watts over true seconds, on clocks of their own.
struct Truth {
  double slot_s = 0.5, begin_s = 1; ///< the signature's slots and its first one
  double low_w = 120, high_w = 420;
  double offset_s = 0, skew = 0; ///< external = internal + offset + skew * internal
  double gain = 1, offset_w = 0; ///< internal = offset + gain * true
  double internal_step_s = 0.02, external_step_s = 0.01;
  double internal_noise_w = 0.35, external_noise_w = 0.5;
  double internal_s = 66, external_from_s = 0, external_s = 66; ///< by the true clock
  double average_s = 0.03;                                      ///< the internal meter's window
  unsigned seed = 1;
};

struct Series {
  std::vector<double> time, power;
  [[nodiscard]] PowerSeries view() const { return {time, power}; }
};
struct Made {
  Series internal, external;
};

using Load = std::function<bool(double)>;
Load signature(const Truth& t) {
  return [t, slots = on_off_signature()](double at) {
    const double slot = std::floor((at - t.begin_s) / t.slot_s);
    return slot >= 0 && slot < static_cast<double>(slots.size()) &&
           slots[static_cast<std::size_t>(slot)];
  };
}

Made made(const Truth& t, const Load& on) {
  std::mt19937_64 random(t.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(-0.2, 0.2);
  Made m;
  const auto mean_power = [&](double to, double width) {
    constexpr int kParts = 30;
    double sum = 0;
    for (int k = 0; k < kParts; ++k) sum += on(to + width * ((k + 0.5) / kParts - 0.5)) ? 1 : 0;
    return t.low_w + (t.high_w - t.low_w) * sum / kParts;
  };
  for (double at = 0; at < t.internal_s; at += t.internal_step_s * (1 + uniform(random))) {
    m.internal.time.push_back(at);
    m.internal.power.push_back(t.offset_w + t.gain * mean_power(at, t.average_s) +
                               t.internal_noise_w * normal(random));
  }
  for (double at = t.external_from_s; at < t.external_from_s + t.external_s;
       at += t.external_step_s) {
    m.external.time.push_back(at + t.offset_s + t.skew * at);
    m.external.power.push_back(mean_power(at, t.external_step_s) +
                               t.external_noise_w * normal(random));
  }
  return m;
}

Result<ExternalAlignment> aligned(const Made& m, const AlignmentLimits& limits = {}) {
  return align_external(m.internal.view(), m.external.view(), limits);
}
Result<ExternalAlignment> aligned(const Truth& t, const AlignmentLimits& limits = {}) {
  return aligned(made(t, signature(t)), limits);
}

/// The offset at the centre that the truth has.
double true_offset(const Truth& t, const ExternalAlignment& a) {
  return t.offset_s + t.skew * a.centre_s;
}

TEST(ExternalAlignment, offset_skew_gain_and_zero_come_back) {
  Truth t;
  t.offset_s = 12.3456, t.skew = 80e-6, t.gain = 0.954, t.offset_w = 7.5;
  const auto a = aligned(t);
  ASSERT_TRUE(a) << to_text(a.error());
  EXPECT_NEAR(a->offset_s, true_offset(t, *a), 0.001);
  EXPECT_NEAR(a->skew_ppm, 80, 30);
  EXPECT_NEAR(a->gain, 0.954, 0.0005);
  EXPECT_NEAR(a->offset_w, 7.5, 0.2);
  EXPECT_NEAR(a->residual_w, std::hypot(0.35, 0.954 * 0.5 / std::sqrt(2)), 0.1);
  EXPECT_GT(a->residual_all_w, a->residual_w);
  EXPECT_GT(a->correlation, 0.98);
  EXPECT_LT(a->runner_up, 0.6);
  EXPECT_EQ(a->edges, 66); // 65 runs, off before and after
  EXPECT_NEAR(a->overlap_s, 66, 0.2);
}

TEST(ExternalAlignment, a_clock_of_1970_and_one_of_today_are_aligned_as_well) {
  Truth t;
  t.offset_s = 1.79e9;
  const auto a = aligned(t);
  ASSERT_TRUE(a) << to_text(a.error());
  EXPECT_NEAR(a->offset_s, t.offset_s, 0.001);
}

TEST(ExternalAlignment, rates_from_a_millisecond_to_a_tenth_of_a_second_agree) {
  for (const double step : {0.001, 0.0173, 0.02, 0.05, 0.1}) {
    Truth t;
    t.external_step_s = step, t.offset_s = -31.77, t.gain = 1.05;
    const auto a = aligned(t);
    ASSERT_TRUE(a) << step << to_text(a.error());
    EXPECT_NEAR(a->offset_s, -31.77, 0.1 * std::max(step, 0.02)) << step;
    EXPECT_NEAR(a->gain, 1.05, 0.001) << step;
  }
}

TEST(ExternalAlignment, an_external_log_far_longer_than_the_signature_is_searched_whole) {
  Truth t;
  t.external_from_s = -200, t.external_s = 500, t.offset_s = 900;
  const auto a = aligned(t);
  ASSERT_TRUE(a) << to_text(a.error());
  EXPECT_NEAR(a->offset_s, 900, 0.002);
}

TEST(ExternalAlignment, an_external_log_that_begins_late_and_ends_early_is_enough) {
  Truth t;
  t.external_from_s = 10, t.external_s = 45, t.offset_s = 3;
  const auto a = aligned(t);
  ASSERT_TRUE(a) << to_text(a.error());
  EXPECT_NEAR(a->offset_s, 3, 0.002);
  EXPECT_NEAR(a->overlap_s, 45, 0.5);
}

TEST(ExternalAlignment, much_noise_widens_the_errors_and_flattens_no_line) {
  const auto quiet = aligned(Truth{}).value();
  double gains = 0;
  constexpr int kRuns = 16;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    Truth t;
    t.seed = seed;
    t.external_noise_w = t.internal_noise_w = 30; // a tenth of the swing
    const auto a = aligned(t).value();
    EXPECT_GT(a.gain_se, 5 * quiet.gain_se);
    EXPECT_LT(std::abs(a.offset_s), std::max(0.003, 4 * a.offset_se_s));
    gains += a.gain / kRuns;
  }
  // A line through the points themselves would be 2 % too flat.
  EXPECT_NEAR(gains, 1, 0.004);
}

TEST(ExternalAlignment, standard_errors_cover_the_truth) {
  int gain = 0, zero = 0, offset = 0, skew = 0;
  constexpr int kRuns = 40;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    Truth t;
    t.seed = seed, t.gain = 0.97, t.offset_w = 4, t.skew = -40e-6;
    t.offset_s = 5 + 0.00137 * seed; // every place between two samples
    const auto a = aligned(t).value();
    gain += std::abs(a.gain - t.gain) < 3 * a.gain_se;
    zero += std::abs(a.offset_w - t.offset_w) < 3 * a.offset_se_w;
    offset += std::abs(a.offset_s - true_offset(t, a)) < 3 * a.offset_se_s;
    skew += std::abs(a.skew_ppm - 1e6 * t.skew) < 3 * a.skew_se_ppm;
  }
  EXPECT_GE(gain, kRuns - 3);
  EXPECT_GE(zero, kRuns - 3);
  EXPECT_GE(offset, kRuns - 3);
  EXPECT_GE(skew, kRuns - 3);
}

TEST(ExternalAlignment, the_delay_of_a_filter_is_part_of_the_offset) {
  Truth t;
  const auto load = signature(t);
  const auto late = made(t, [&](double at) { return load(at); });
  auto shifted = late;
  for (auto& at : shifted.internal.time) at += 0.012; // the internal meter tells it 12 ms late
  EXPECT_NEAR(aligned(shifted)->offset_s, aligned(late)->offset_s - 0.012, 0.0005);
}

TEST(ExternalAlignment, a_periodic_wave_is_ambiguous_and_refused) {
  const Truth t;
  const auto wave = made(t, [](double at) { return std::fmod(at, 2.0) < 1; });
  const auto a = aligned(wave);
  ASSERT_FALSE(a);
  EXPECT_EQ(a.error().code, RefusalCode::meter_disagreement);
  EXPECT_THAT(a.error().what, HasSubstr("ambiguous"));
  EXPECT_THAT(a.error().next, HasSubstr("pseudo-random"));
}

TEST(ExternalAlignment, a_periodic_wave_is_aligned_where_the_offset_is_known_within_a_period) {
  Truth t;
  t.offset_s = 100.3;
  const auto wave = made(t, [](double at) { return std::fmod(at, 2.0) < 1; });
  AlignmentLimits limits;
  limits.offset_range_s = {{99.8, 100.8}};
  const auto a = aligned(wave, limits);
  ASSERT_TRUE(a) << to_text(a.error());
  EXPECT_NEAR(a->offset_s, 100.3, 0.001);
}

TEST(ExternalAlignment, series_that_do_not_hold_the_signature_are_refused) {
  const Truth t;
  auto m = made(t, signature(t));
  const auto idle = made(t, [](double) { return false; });
  const Made no_load{m.internal, idle.external}, other_board{idle.internal, m.external};
  for (const auto& wrong : {no_load, other_board}) {
    const auto a = aligned(wrong);
    ASSERT_FALSE(a);
    EXPECT_EQ(a.error().code, RefusalCode::meter_disagreement);
    EXPECT_THAT(a.error().what, HasSubstr("not found"));
  }
  for (auto& w : m.external.power) w = 540 - w; // the other way up
  EXPECT_FALSE(aligned(m));
  m.external.power.assign(m.external.power.size(), 100); // a meter that stands still
  EXPECT_THAT(aligned(m).error().what, HasSubstr("not found"));
}

TEST(ExternalAlignment, series_without_overlap_are_refused) {
  Truth t;
  t.external_from_s = 200; // recorded after the signature had ended
  EXPECT_FALSE(aligned(t));
  AlignmentLimits limits;
  limits.offset_range_s = {{1000, 1001}};
  const auto a = aligned(Truth{}, limits);
  ASSERT_FALSE(a);
  EXPECT_EQ(a.error().code, RefusalCode::bad_argument);
  EXPECT_THAT(a.error().what, HasSubstr("do not overlap"));
}

TEST(ExternalAlignment,
     a_slow_internal_filter_shows_in_the_gain_and_is_cured_by_its_settling_time) {
  Truth t;
  t.slot_s = 2, t.internal_s = t.external_s = 260, t.average_s = 0.4;
  const auto plain = aligned(t);
  ASSERT_TRUE(plain) << to_text(plain.error());
  EXPECT_LT(plain->gain, 0.99);
  EXPECT_GT(plain->gain_change.value(), 5 * plain->gain_se);
  AlignmentLimits limits;
  limits.settle_s = 0.25;
  const auto cured = aligned(t, limits).value();
  EXPECT_NEAR(cured.gain, 1, 0.0005);
  EXPECT_LT(std::abs(cured.gain_change.value()), 0.0005);
}

TEST(ExternalAlignment, one_step_has_too_few_switches) {
  const Truth t;
  const auto a = aligned(made(t, [](double at) { return at > 30; }));
  ASSERT_FALSE(a);
  EXPECT_THAT(a.error().what, HasSubstr("switches"));
}

TEST(ExternalAlignment, a_signature_faster_than_the_meters_is_refused) {
  Truth t;
  t.slot_s = 0.1, t.internal_s = 15, t.external_s = 15, t.external_step_s = 0.1;
  EXPECT_FALSE(aligned(t));
}

TEST(ExternalAlignment, clocks_that_differ_more_than_allowed_are_refused) {
  Truth t;
  t.skew = 400e-6;
  AlignmentLimits limits;
  limits.max_skew_ppm = 200;
  EXPECT_TRUE(aligned(t));
  const auto a = aligned(t, limits);
  ASSERT_FALSE(a);
  EXPECT_THAT(a.error().what, HasSubstr("ppm"));
}

TEST(ExternalAlignment, wrong_series_are_refused_by_name) {
  const auto good = made(Truth{}, signature(Truth{}));
  const auto refused = [&](const std::function<void(Made&)>& spoil, const char* says) {
    auto m = good;
    spoil(m);
    const auto a = aligned(m);
    ASSERT_FALSE(a) << says;
    EXPECT_EQ(a.error().code, RefusalCode::bad_argument);
    EXPECT_THAT(a.error().what, HasSubstr(says));
  };
  for (const double settle : {-1.0, std::nan(""), 1e9}) {
    AlignmentLimits limits;
    limits.settle_s = settle;
    EXPECT_THAT(aligned(good, limits).error().what, HasSubstr("settling"));
  }
  refused([](Made& m) { m.external.time.resize(5), m.external.power.resize(5); }, "external");
  refused([](Made& m) { m.internal.power.pop_back(); }, "internal");
  refused([](Made& m) { m.internal.power[7] = std::nan(""); }, "not finite at point 7");
  refused([](Made& m) { m.external.time[9] = m.external.time[8]; }, "ascend in time at point 9");
  refused([](Made& m) { m.external.time.clear(), m.external.power.clear(); }, "0 points");
}

TEST(ExternalAlignment, equal_inputs_give_equal_results) {
  const auto m = made(Truth{}, signature(Truth{}));
  EXPECT_EQ(aligned(m)->offset_s, aligned(m)->offset_s);
  EXPECT_EQ(aligned(m)->gain, aligned(m)->gain);
}

TEST(ExternalAlignment, the_signature_resembles_itself_at_no_shift) {
  const auto s = on_off_signature();
  ASSERT_EQ(s.size(), 127U);
  EXPECT_EQ(std::ranges::count(s, true), 64);
  for (std::size_t shift = 1; shift < s.size(); ++shift) {
    int agree = 0;
    for (std::size_t i = 0; i < s.size(); ++i) agree += s[i] == s[(i + shift) % s.size()] ? 1 : -1;
    EXPECT_EQ(agree, -1) << shift;
  }
}

} // namespace
} // namespace hebe::measure
