#include "measure/replay_stream.hpp"

#include "gpu/sim_device.hpp"
#include "measure/arms.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

Status enqueue(void* stream, double each, double host) {
  const gpu::TimedWork launch{Seconds(each), Watts(200)};
  return gpu::enqueue_timed_work(stream, {&launch, 1}, 1, Seconds(host));
}

/// Work that somebody else's code enqueues, call by call: `each` on the GPU, `host` on the host.
class Called : public testing::Test {
protected:
  Result<Stretch> replayed(double each, double host) {
    const gpu::ExternalWork work = [each, host](void* stream) {
      return enqueue(stream, each, host);
    };
    auto arms = prepare_external_arms(device_, {{{work, 1}, {work, 1}}}, true).value();
    auto stream = ReplayStream::make(device_, {arms.graphs[0].get(), arms.graphs[1].get()}).value();
    stream.refuse_starvation("board", arms.call_times());
    auto out = stream.replay_for(0, Seconds(2), arms.replay_time[0], Seconds(1));
    EXPECT_TRUE(stream.drain());
    return out;
  }
  VirtualClock clock_;
  gpu::SimBoard board_{clock_, gpu::BoardModel{}, 3, {}};
  gpu::SimDevice device_{board_, gpu::sim_device_info()};
};

// Replays of 25 ms hold more calls of 16 us than the driver's queue: of six in flight the GPU has
// always done five, and is busy all the time. (On an H200 running_dry() said so of 64 MiB fills.)
TEST_F(Called, a_full_queue_of_short_calls_is_no_starving_gpu) {
  for (const double each : {4e-6, 16e-6, 1e-4, 5e-3, 0.1}) {
    const auto s = replayed(each, each / 8);
    EXPECT_TRUE(s) << each << ": " << to_text(s.error());
  }
}

TEST_F(Called, a_host_that_enqueues_more_slowly_than_the_gpu_runs_is_refused) {
  for (const double each : {4e-6, 16e-6, 1e-4, 5e-3}) {
    const auto s = replayed(each, each * 1.3);
    ASSERT_FALSE(s) << each;
    EXPECT_EQ(s.error().code, RefusalCode::gate_failed);
    EXPECT_NE(s.error().what.find("slower than the GPU"), std::string::npos) << s.error().what;
  }
}

/// The same, with calls that take `each` when the stretch begins, and one pause of the host.
class Slowed : public Called {
protected:
  Result<Stretch> tried(double sized, double each, double pause, bool watched) {
    double now = sized, wait = 0, late = 1e-5;
    int calls = 0;
    const gpu::ExternalWork work = [&](void* stream) {
      ++calls;
      const double host = wait > 0 && calls == 20 ? wait : calls <= late_calls_ ? late_host_ : late;
      return enqueue(stream, now, host);
    };
    auto arms = prepare_external_arms(device_, {{{work, 1}, {work, 1}}}, true).value();
    now = each;
    wait = pause;
    late = host_;
    auto stream = ReplayStream::make(device_, {arms.graphs[0].get(), arms.graphs[1].get()}).value();
    if (watched) stream.refuse_starvation("board", arms.call_times());
    calls = 0;
    auto out = stream.replay_for(0, Seconds(2), arms.replay_time[0], Seconds(0.005));
    EXPECT_TRUE(stream.drain());
    return out;
  }
  Stretch stretch(double sized, double each, double pause) {
    return tried(sized, each, pause, false).value();
  }
  int late_calls_ = 0; ///< so many take the host late_host_
  double late_host_ = 0;
  double host_ = 1e-5; ///< of each call, once it is sized
};

// A product at the power limit, whose clock falls after it was sized.
TEST_F(Slowed, replays_that_have_all_become_slower_are_no_idleness) {
  for (const double slower : {1.0, 1.01, 1.05, 1.5}) {
    const auto s = stretch(0.01, 0.01 * slower, 0);
    EXPECT_LT(s.idle.value(), 0.002) << slower;
    EXPECT_GE(s.device.value(), 2) << slower;
    EXPECT_EQ(std::ssize(s.times), s.replays);
  }
}

// The driver's queue holds less than a replay of short calls: of six the GPU has always done five.
TEST_F(Slowed, of_short_calls_only_the_power_limit_explains_that_they_have_become_slower) {
  host_ = 1e-6;
  auto s = stretch(16e-6, 16.8e-6, 0);
  EXPECT_FALSE(s.fed);
  EXPECT_FALSE(s.ran_dry);
  EXPECT_GT(s.idle.value(), 0.05);
  count_idle(s, Seconds(25e-3), {0.1, 0});
  EXPECT_LT(s.idle.value(), 0.002);
}

TEST_F(Slowed, a_pause_of_the_host_is_idleness_however_slow_the_replays_have_become) {
  for (const double slower : {1.0, 1.05})
    EXPECT_GT(stretch(0.01, 0.01 * slower, 0.5).idle.value(), 0.3) << slower;
}

TEST_F(Slowed, a_host_that_is_late_for_every_replay_is_no_slower_board) {
  host_ = 0.011; // of work that takes 10 ms, as it was sized
  EXPECT_GT(stretch(0.01, 0.01, 0).idle.value(), 0.1);
}

TEST_F(Slowed, a_host_that_comes_back_to_a_gpu_with_nothing_to_do_has_let_it_wait) {
  const gpu::ExternalWork work = [](void* stream) { return enqueue(stream, 0.01, 1e-5); };
  auto arms = prepare_external_arms(device_, {{{work, 1}, {work, 1}}}, true).value();
  for (const double pause : {0.0, 1.0}) {
    auto stream = ReplayStream::make(device_, {arms.graphs[0].get(), arms.graphs[1].get()}).value();
    while (!stream.full()) ASSERT_TRUE(stream.enqueue(0));
    ASSERT_TRUE(stream.complete());
    clock_.sleep_for(to_nanos(Seconds(pause)));
    const auto s = stream.replay_for(0, Seconds(1), arms.replay_time[0], Seconds(0.005)).value();
    EXPECT_EQ(s.ran_dry, pause > 0);
    EXPECT_TRUE(stream.drain());
  }
}

TEST_F(Slowed, a_host_that_is_late_for_some_replays_has_let_the_gpu_wait) {
  late_calls_ = 16;
  late_host_ = 0.013;
  const auto s = tried(0.01, 0.01, 0, true);
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_TRUE(s->ran_dry);
  EXPECT_GT(s->idle.value(), 0.02);
}

} // namespace
} // namespace hebe::measure
