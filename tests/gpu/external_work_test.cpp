// Facts about work that a caller enqueues onto its own stream of a real GPU. Skipped out loud where
// there is none.
#include "gpu/cuda_device.hpp"
#include "measure/arms.hpp"
#include "measure/replay_stream.hpp"

#include <gtest/gtest.h>

#include <cuda.h>

#include <dlfcn.h>

namespace hebe {
namespace {

class ExternalWorkTest : public testing::Test {
protected:
  void SetUp() override {
    const auto devices = gpu::list_cuda_devices();
    if (!devices || devices->empty())
      GTEST_SKIP() << "no GPU: " << (devices ? "the driver sees none" : devices.error().what);
    uuid = devices->front().uuid;
    auto opened = gpu::open_cuda_device(uuid, clock); // makes the primary context current
    ASSERT_TRUE(opened) << opened.error().what;
    owner = std::move(*opened);
    void* driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_NE(driver, nullptr);
    create = reinterpret_cast<decltype(create)>(::dlsym(driver, "cuStreamCreate"));
    destroy = reinterpret_cast<decltype(destroy)>(::dlsym(driver, "cuStreamDestroy_v2"));
    fill = reinterpret_cast<decltype(fill)>(::dlsym(driver, "cuMemsetD8Async"));
    wait = reinterpret_cast<decltype(wait)>(::dlsym(driver, "cuStreamSynchronize"));
    ASSERT_TRUE(create && destroy && fill && wait);
    ASSERT_EQ(create(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    memory = owner->allocate({kBytes}).value();
  }
  void TearDown() override {
    if (owner == nullptr) return;
    EXPECT_EQ(wait(stream), CUDA_SUCCESS) << "the caller's stream is no longer good";
    owner->release(memory);
    EXPECT_EQ(destroy(stream), CUDA_SUCCESS);
  }
  // A fill of the whole buffer, asynchronous.
  gpu::ExternalWork filling() {
    return [this](void* onto) -> Status {
      seen = onto;
      if (fill(memory, 1, kBytes, static_cast<CUstream>(onto)) == CUDA_SUCCESS) return {};
      return refuse(RefusalCode::case_failed, "cuMemsetD8Async");
    };
  }

  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  RealClock clock;
  std::string uuid;
  std::unique_ptr<gpu::Device> owner;
  CUstream stream = nullptr;
  gpu::DevicePointer memory = 0;
  void* seen = nullptr;
  CUresult (*create)(CUstream*, unsigned) = nullptr;
  CUresult (*destroy)(CUstream) = nullptr;
  CUresult (*fill)(CUdeviceptr, unsigned char, std::size_t, CUstream) = nullptr;
  CUresult (*wait)(CUstream) = nullptr;
};

TEST_F(ExternalWorkTest, it_runs_on_the_callers_stream_and_fills_a_replay) {
  EXPECT_EQ(gpu::current_cuda_device().value(), uuid);
  auto device = gpu::open_cuda_device(uuid, clock, stream);
  ASSERT_TRUE(device) << device.error().what;
  auto arms = measure::prepare_external_arms(**device, {{{filling(), 1}, {filling(), 1}}}, true);
  ASSERT_TRUE(arms) << arms.error().what;
  EXPECT_EQ(seen, stream);
  EXPECT_GT(arms->launches_per_replay[0], 1U);
  EXPECT_EQ(arms->launches_per_replay[0], arms->launches_per_replay[1]);
  auto replays =
      measure::ReplayStream::make(**device, {arms->graphs[0].get(), arms->graphs[1].get()});
  ASSERT_TRUE(replays);
  while (!replays->full()) ASSERT_TRUE(replays->enqueue(0));
  EXPECT_FALSE(replays->running_dry(arms->call_times()[0]).value());
  ASSERT_TRUE(replays->drain());
}

TEST_F(ExternalWorkTest, the_default_stream_of_the_runtime_is_one_of_its_streams) {
  auto device = gpu::open_cuda_device(uuid, clock, nullptr);
  ASSERT_TRUE(device) << device.error().what;
  auto graph = (*device)->external(filling(), 4);
  auto done = (*device)->make_event();
  ASSERT_TRUE(graph && done && (*device)->replay(**graph) && (*device)->record(**done));
  EXPECT_TRUE((*device)->wait(**done));
  EXPECT_EQ(seen, nullptr);
}

} // namespace
} // namespace hebe
