// Facts about the sampler: each sample once, in order, on the monotonic clock; nothing is smoothed
// over.
#include "meter/power_sampler.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace hebe::meter {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;

// A buffer of 119 samples, 20 ms apart, each stamped by the wall clock as it stood then. The n-th
// sample reads n mW, so that a test sees which ones came.
class StampedBuffer final : public BoardMeter {
public:
  explicit StampedBuffer(VirtualClock& clock) : clock_(clock), start_(clock.now()) {}

  void advance(Nanos by) {
    const auto end = clock_.now() + by;
    while (clock_.now() < end) {
      const auto next = start_ + static_cast<std::int64_t>(taken_.size() + 1) * milliseconds(20);
      if (next > end) break;
      clock_.sleep_until(next - Nanos(1)); // a drain that falls due now comes before the sample
      taken_.push_back({next.time_since_epoch().count(), clock_.wall_us() + 1});
      clock_.sleep_until(next);
    }
    clock_.sleep_until(end);
  }

  Result<std::vector<PowerSample>> read_power_samples(std::int64_t since) override {
    ++calls;
    if (refusal) return std::unexpected(*refusal);
    std::vector<PowerSample> out;
    for (std::size_t i = taken_.size() > 119 ? taken_.size() - 119 : 0; i < taken_.size(); ++i)
      if ((taken_[i].wall_us > since || ignores_since) && !empty)
        out.push_back({taken_[i].wall_us, static_cast<std::int64_t>(i)});
    return out;
  }

  [[nodiscard]] std::int64_t true_time(std::int64_t raw_mw) const {
    return taken_.at(static_cast<std::size_t>(raw_mw)).mono_ns;
  }
  [[nodiscard]] std::int64_t taken() const { return static_cast<std::int64_t>(taken_.size()); }

  int calls = 0;
  bool empty = false, ignores_since = false;
  std::optional<Refusal> refusal;

  [[nodiscard]] const BoardIdentity& board() const override { return identity_; }
  [[nodiscard]] SourceIdentity samples_source() const override { return {}; }
  [[nodiscard]] SourceIdentity counter_source() const override { return {}; }
  Result<Boundary> read_boundary() override { return Boundary{}; }
  Result<std::vector<GpuProcess>> processes() override { return std::vector<GpuProcess>{}; }
  Result<Watts> power_limit() override { return Watts(700); }
  Result<bool> mig_enabled() override { return false; }
  Result<std::int64_t> uncorrected_errors() override { return 0; }
  Result<std::vector<std::int64_t>> new_xid_events() override {
    return std::vector<std::int64_t>{};
  }
  std::vector<Fact> facts() override { return {}; }

private:
  struct Taken {
    std::int64_t mono_ns, wall_us;
  };
  VirtualClock& clock_;
  Instant start_;
  BoardIdentity identity_;
  std::vector<Taken> taken_;
};

struct Bench {
  VirtualClock clock;
  StampedBuffer buffer{clock};
  PowerSampler sampler{buffer, clock};

  // Every kept sample in order, none twice, none further than `error` from its true time.
  void expect_true_times(std::int64_t error_ns) const {
    std::int64_t last = -1;
    for (const auto& s : sampler.record().samples) {
      EXPECT_GT(s.raw_mw, last);
      last = s.raw_mw;
      EXPECT_NEAR(static_cast<double>(s.t_mono_ns - buffer.true_time(s.raw_mw)), 0,
                  static_cast<double>(error_ns))
          << "sample " << s.raw_mw;
    }
  }
};

TEST(PowerSampler, each_sample_is_kept_once_and_in_order) {
  Bench b;
  b.sampler.start();
  b.buffer.advance(seconds(60));
  b.sampler.stop();
  const auto r = b.sampler.record();
  ASSERT_EQ(static_cast<std::int64_t>(r.samples.size()), b.buffer.taken());
  for (std::size_t i = 0; i < r.samples.size(); ++i)
    EXPECT_EQ(r.samples[i].raw_mw, static_cast<std::int64_t>(i));
  b.expect_true_times(1000); // stamps are whole microseconds
  EXPECT_TRUE(r.clock_jumps_ns.empty());
  EXPECT_FALSE(r.failure);
}

TEST(PowerSampler, drains_twice_a_second_well_inside_the_buffer) {
  Bench b;
  b.sampler.start();
  b.buffer.advance(seconds(10));
  b.sampler.stop();
  const auto r = b.sampler.record();
  ASSERT_EQ(r.drains.size(), 22U); // at the start, 20, at the end
  std::int64_t sum = 0;
  for (std::size_t i = 2; i < r.drains.size(); ++i) {
    sum += r.drains[i].samples;
    EXPECT_LE(r.drains[i].samples, 26);
    EXPECT_LE(r.drains[i].newest_age_ns, 21'000'000);
    EXPECT_EQ(r.drains[i].offset_ns, r.drains[0].offset_ns);
  }
}

TEST(PowerSampler, extra_drains_do_not_double_anything) {
  Bench b;
  b.sampler.start();
  for (int i = 0; i < 50; ++i) {
    b.buffer.advance(milliseconds(33));
    b.sampler.drain_now();
    b.sampler.drain_now();
  }
  b.sampler.stop();
  EXPECT_EQ(static_cast<std::int64_t>(b.sampler.record().samples.size()), b.buffer.taken());
  b.expect_true_times(1000);
}

TEST(PowerSampler, a_driver_that_gives_its_whole_buffer_every_time_doubles_nothing) {
  Bench b;
  b.buffer.ignores_since = true;
  b.sampler.start();
  b.buffer.advance(seconds(10));
  b.sampler.stop();
  EXPECT_EQ(static_cast<std::int64_t>(b.sampler.record().samples.size()), b.buffer.taken());
  b.expect_true_times(1000);
}

TEST(PowerSampler, after_stop_nothing_is_read) {
  Bench b;
  b.sampler.start();
  b.buffer.advance(seconds(1));
  b.sampler.stop();
  const int calls = b.buffer.calls;
  b.buffer.advance(seconds(5));
  EXPECT_EQ(b.buffer.calls, calls);
}

TEST(PowerSampler, a_forward_clock_jump_is_recorded_and_its_samples_are_not_trusted) {
  Bench b;
  b.sampler.start();
  b.buffer.advance(milliseconds(5200));
  const auto at = b.clock.now().time_since_epoch().count();
  b.clock.jump_wall(seconds(2));
  b.buffer.advance(seconds(5));
  b.sampler.stop();
  const auto r = b.sampler.record();
  ASSERT_EQ(r.clock_jumps_ns.size(), 1U);
  EXPECT_GE(r.clock_jumps_ns[0], at);
  EXPECT_LE(r.clock_jumps_ns[0], at + 500'000'000); // seen at the next drain
  EXPECT_TRUE(b.sampler.jumped_in(at, at + 500'000'000));
  EXPECT_FALSE(b.sampler.jumped_in(0, at - 1));
  b.expect_true_times(1000);
  // Only what was stamped by the old clock since the last drain is missing: at most half a second
  // of it.
  EXPECT_GE(static_cast<std::int64_t>(r.samples.size()), b.buffer.taken() - 26);
  EXPECT_LT(static_cast<std::int64_t>(r.samples.size()), b.buffer.taken());
}

TEST(PowerSampler, a_backward_clock_jump_is_recorded_and_later_samples_are_all_there) {
  using std::chrono::microseconds;
  for (const auto by : {microseconds(-13'457), microseconds(-1'003'457), microseconds(-2'345'678),
                        microseconds(-3'600'000'001)}) {
    Bench b;
    b.sampler.start();
    b.buffer.advance(milliseconds(5200));
    const auto at = b.clock.now().time_since_epoch().count();
    b.clock.jump_wall(by);
    b.buffer.advance(seconds(8));
    b.sampler.stop();
    const auto r = b.sampler.record();
    ASSERT_EQ(r.clock_jumps_ns.size(), 1U);
    EXPECT_TRUE(b.sampler.jumped_in(at, at + 500'000'000));
    b.expect_true_times(1000);
    EXPECT_GE(static_cast<std::int64_t>(r.samples.size()), b.buffer.taken() - 26) << by.count();
  }
}

TEST(PowerSampler, a_small_jump_is_a_jump_and_slewing_is_none) {
  Bench b;
  b.sampler.start();
  for (int i = 0; i < 20; ++i) {
    b.buffer.advance(milliseconds(500));
    b.clock.jump_wall(std::chrono::microseconds(250)); // 500 ppm, the most that the kernel slews
  }
  EXPECT_TRUE(b.sampler.record().clock_jumps_ns.empty());
  b.clock.jump_wall(milliseconds(10));
  b.buffer.advance(seconds(2));
  b.sampler.stop();
  EXPECT_EQ(b.sampler.record().clock_jumps_ns.size(), 1U);
}

TEST(PowerSampler, a_failure_is_kept_and_sampling_ends_there) {
  Bench b;
  b.sampler.start();
  b.buffer.advance(seconds(1));
  const auto kept = b.sampler.record().samples.size();
  b.buffer.refusal = Refusal{RefusalCode::device_error, "GPU is lost", {}, {}, {}};
  b.buffer.advance(seconds(1));
  const int calls = b.buffer.calls;
  b.buffer.refusal->what = "another";
  b.buffer.advance(seconds(1));
  b.buffer.refusal.reset();
  b.buffer.advance(seconds(1));
  b.sampler.stop();
  ASSERT_TRUE(b.sampler.failure());
  EXPECT_EQ(b.sampler.failure()->what, "GPU is lost"); // the first one
  EXPECT_EQ(b.sampler.record().samples.size(), kept);
  EXPECT_EQ(b.buffer.calls, calls);
}

TEST(PowerSampler, an_empty_buffer_is_a_drain_of_nothing_not_a_failure) {
  Bench b;
  b.buffer.empty = true;
  b.sampler.start();
  b.buffer.advance(seconds(3));
  b.sampler.stop();
  const auto r = b.sampler.record();
  EXPECT_FALSE(r.failure);
  EXPECT_TRUE(r.samples.empty());
  for (const auto& d : r.drains) EXPECT_EQ(d.samples, 0);
  EXPECT_TRUE(b.sampler.between(0, INT64_MAX).empty());
}

TEST(PowerSampler, between_gives_the_samples_of_a_closed_span) {
  Bench b;
  b.sampler.start();
  b.buffer.advance(seconds(2));
  b.sampler.stop();
  const auto all = b.sampler.record().samples;
  const auto some = b.sampler.between(all[10].t_mono_ns, all[20].t_mono_ns);
  ASSERT_EQ(some.size(), 11U);
  EXPECT_EQ(some.front().raw_mw, 10);
  EXPECT_EQ(some.back().raw_mw, 20);
  EXPECT_TRUE(b.sampler.between(all[10].t_mono_ns + 1, all[11].t_mono_ns - 1).empty());
}

TEST(PowerSampler, on_the_real_clock_it_drains_on_its_own_thread) {
  RealClock clock;
  VirtualClock still;
  StampedBuffer buffer(still);
  buffer.empty = true;
  PowerSampler sampler(buffer, clock, milliseconds(1));
  sampler.start();
  while (sampler.record().drains.size() < 4) clock.sleep_for(milliseconds(1));
  sampler.stop();
  const auto drains = sampler.record().drains.size();
  clock.sleep_for(milliseconds(5));
  EXPECT_EQ(sampler.record().drains.size(), drains);
}

} // namespace
} // namespace hebe::meter
