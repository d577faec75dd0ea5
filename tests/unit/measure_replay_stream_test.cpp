#include "measure/replay_stream.hpp"

#include "gpu/sim_device.hpp"
#include "measure/arms.hpp"

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

/// Work that somebody else's code enqueues, call by call: `each` on the GPU, `host` on the host.
class Called : public testing::Test {
protected:
  Result<Stretch> replayed(double each, double host) {
    const gpu::ExternalWork work = [each, host](void* stream) {
      return gpu::enqueue_timed_work(stream, Seconds(each), Watts(200), 1, Seconds(host));
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

} // namespace
} // namespace hebe::measure
