// Facts about whose context and stream a CUDA device works on, with a driver that only remembers
// (cuda.cpp). What work costs there is for a real GPU to say (tests/gpu).
#include "fake_cuda.hpp"
#include "gpu/cuda_device.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>

namespace hebe::gpu {
namespace {

constexpr const char* kFirst = "GPU-00000000-0000-0000-0000-000000000000";
constexpr const char* kSecond = "GPU-01010101-0101-0101-0101-010101010101";

class CallersStream : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(list_cuda_devices()) << list_cuda_devices().error().what;
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    auto* get = reinterpret_cast<test::FakeCuda* (*)()>(::dlsym(library, "fake_cuda"));
    ASSERT_NE(get, nullptr) << "a real driver is in the fake one's place";
    driver = get();
    *driver = {};
  }
  // As torch leaves a thread: the primary context of the device is current.
  void use(int device) { driver->current = primary(device); }
  static void* primary(int device) {
    return reinterpret_cast<void*>(0x1000 + std::uintptr_t(device));
  }
  static void* stream_of(int device) {
    return reinterpret_cast<void*>(0x500 + std::uintptr_t(device));
  }

  RealClock clock;
  test::FakeCuda* driver = nullptr;
};

TEST_F(CallersStream, without_one_a_stream_is_made_and_destroyed_and_the_context_made_current) {
  {
    const auto device = open_cuda_device(kFirst, clock);
    ASSERT_TRUE(device);
    EXPECT_EQ(driver->current, primary(0));
    EXPECT_EQ(driver->retained, 1);
  }
  EXPECT_EQ(driver->retained, 0);
  ASSERT_EQ(driver->calls.back().first, "cuStreamDestroy");
  EXPECT_EQ(driver->count("cuStreamCreate", driver->calls.back().second), 1);
}

TEST_F(CallersStream, it_is_worked_on_and_left_to_its_owner) {
  for (void* stream : {stream_of(0), static_cast<void*>(nullptr)}) { // null: the default stream
    *driver = {};
    use(0);
    std::vector<void*> seen;
    {
      const auto device = open_cuda_device(kFirst, clock, stream);
      ASSERT_TRUE(device) << device.error().what;
      auto graph = (*device)->external(
          [&](void* s) -> Status {
            seen.push_back(s);
            return {};
          },
          3);
      auto event = (*device)->make_event();
      ASSERT_TRUE(graph && event);
      ASSERT_TRUE((*device)->replay(**graph));
      ASSERT_TRUE((*device)->record(**event));
      EXPECT_EQ(driver->count("cuStreamSynchronize", stream), 0) << "a replay is asynchronous";
    }
    EXPECT_EQ(seen, std::vector<void*>(3, stream));
    EXPECT_EQ(driver->count("cuEventRecord", stream), 1);
    EXPECT_EQ(driver->count("cuStreamSynchronize", stream), 1) << "what was in flight is awaited";
    for (const auto& [call, handle] : driver->calls) {
      EXPECT_NE(call, "cuStreamDestroy");
      EXPECT_NE(call, "cuStreamCreate");
      EXPECT_NE(call, "cuCtxSetCurrent") << "the caller's context stays as it was";
    }
    EXPECT_EQ(driver->current, primary(0));
    EXPECT_EQ(driver->retained, 0);
  }
}

TEST_F(CallersStream, another_devices_or_contexts_is_refused_and_nothing_is_left_behind) {
  struct Wrong {
    int current;
    void* stream;
  };
  for (const auto& [current, stream] :
       {Wrong{0, stream_of(1)}, Wrong{1, stream_of(0)}, Wrong{1, nullptr}}) {
    use(current);
    const auto device = open_cuda_device(kFirst, clock, stream);
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, RefusalCode::bad_argument);
    EXPECT_NE(device.error().what.find(kFirst), std::string::npos);
    EXPECT_EQ(driver->retained, 0);
  }
  driver->current = nullptr; // no context at all
  EXPECT_FALSE(open_cuda_device(kFirst, clock, nullptr));
}

TEST_F(CallersStream, work_that_refuses_ends_the_replay_and_what_was_enqueued_is_awaited) {
  use(0);
  int calls = 0;
  {
    const auto device = open_cuda_device(kFirst, clock, stream_of(0));
    ASSERT_TRUE(device);
    auto graph = (*device)->external(
        [&](void*) -> Status {
          return ++calls < 2 ? Status{} : refuse(RefusalCode::case_failed, "as the test asked");
        },
        5);
    const auto replayed = (*device)->replay(**graph);
    ASSERT_FALSE(replayed);
    EXPECT_EQ(replayed.error().code, RefusalCode::case_failed);
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(driver->count("cuStreamSynchronize", stream_of(0)), 1);
}

TEST_F(CallersStream, the_current_device_is_that_of_the_current_context) {
  const auto none = current_cuda_device();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, RefusalCode::no_device);
  use(1);
  EXPECT_EQ(current_cuda_device().value(), kSecond);
  use(0);
  EXPECT_EQ(current_cuda_device().value(), kFirst);
}

} // namespace
} // namespace hebe::gpu
