// Facts about the simulated device: memory that is checked, time that is the board's.
#include "gpu/sim_device.hpp"

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::gpu {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(SimDevice, memory_holds_what_was_written) {
  test::SimGpu sim;
  const auto p = sim.device.allocate({16}).value();
  ASSERT_TRUE(sim.device.fill(p, std::byte{7}, {16}));
  ASSERT_TRUE(sim.device.write(p + 14, bytes({1, 2})));
  std::vector<std::byte> out(4);
  ASSERT_TRUE(sim.device.read(out, p + 12));
  EXPECT_EQ(out, bytes({7, 7, 1, 2}));
}

TEST(SimDevice, access_outside_every_allocation_is_refused) {
  test::SimGpu sim;
  const auto p = sim.device.allocate({16}).value(), q = sim.device.allocate({16}).value();
  std::vector<std::byte> two(2);
  EXPECT_NE(p, q);
  for (const auto at : {p + 15, p - 1, q + 16, DevicePointer{0}}) {
    EXPECT_FALSE(sim.device.read(two, at));
    EXPECT_FALSE(sim.device.write(at, two));
    EXPECT_FALSE(sim.device.fill(at, std::byte{0}, {2}));
  }
  sim.device.release(p);
  EXPECT_FALSE(sim.device.read(two, p));
}

TEST(SimDevice, events_tell_the_time_of_the_work_before_them) {
  test::SimGpu sim(1, {}, test::still_model());
  auto& d = sim.device;
  auto graph = d.capture(*sim.kernels[0], 100).value();
  auto begin = d.make_event().value(), middle = d.make_event().value(),
       end = d.make_event().value();
  ASSERT_TRUE(d.record(*begin));
  ASSERT_TRUE(d.replay(*graph));
  ASSERT_TRUE(d.record(*middle));
  ASSERT_TRUE(d.replay(*graph));
  ASSERT_TRUE(d.record(*end));
  EXPECT_TRUE(d.reached(*begin).value());
  EXPECT_FALSE(d.reached(*end).value()); // asynchronous
  ASSERT_TRUE(d.wait(*end));
  EXPECT_TRUE(d.reached(*end).value());
  const auto one = d.elapsed(*begin, *middle).value(), two = d.elapsed(*begin, *end).value();
  EXPECT_NEAR(two / one, 2, 1e-9);
  EXPECT_NEAR(one.value(), 100 * (1e8 / 4.28e12 + 1.1e-6), 1e-6);
}

TEST(SimDevice, a_launch_runs_the_functional_model_once_and_hands_on_its_refusal) {
  test::SimGpu sim;
  int runs = 0;
  auto kernel = sim.device
                    .load({&sim.launches[0],
                           {},
                           {},
                           [&]() -> Status {
                             ++runs;
                             return {};
                           }},
                          sim.buffers)
                    .value();
  ASSERT_TRUE(sim.device.launch_once(*kernel));
  EXPECT_EQ(runs, 1);
  auto bad = sim.device
                 .load({&sim.launches[0],
                        {},
                        {},
                        []() -> Status { return refuse(RefusalCode::case_failed, "no oracle"); }},
                       sim.buffers)
                 .value();
  EXPECT_EQ(sim.device.launch_once(*bad).error().what, "no oracle");
}

TEST(SimDevice, the_wrong_output_fault_changes_an_output_and_no_input) {
  test::SimGpu sim(1, test::faults_from({"wrong_output@1"}));
  const auto contents = [&] {
    std::vector<std::vector<std::byte>> all(3, std::vector<std::byte>(4096));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(sim.device.read(all[i], sim.buffers[i]));
    return all;
  };
  const auto before = contents();
  ASSERT_TRUE(sim.device.launch_once(*sim.kernels[0]));
  EXPECT_EQ(contents(), before); // not yet
  sim.clock.sleep_for(std::chrono::seconds(1));
  ASSERT_TRUE(sim.device.launch_once(*sim.kernels[0]));
  const auto after = contents();
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(after[1], before[1]);
  EXPECT_NE(after[2], before[2]);
}

// Entries of a driver's queue, each of so many launches; how far the host's clock was moved.
Nanos waited_for(std::size_t entries, std::uint32_t launches) {
  test::SimGpu sim;
  const TimedWork launch{Seconds(1e-4), Watts(200)};
  auto graph = sim.device
                   .external(
                       [&](void* stream) {
                         return enqueue_timed_work(stream, {&launch, 1}, launches, Seconds(0));
                       },
                       1)
                   .value();
  const auto from = sim.clock.now();
  for (std::size_t i = 0; i < entries; ++i) EXPECT_TRUE(sim.device.replay(*graph));
  return sim.clock.now() - from;
}

TEST(SimDevice, a_full_queue_makes_the_host_wait_and_a_graph_is_one_entry_of_it) {
  EXPECT_EQ(waited_for(1024, 1), Nanos(0));
  EXPECT_GT(waited_for(1025, 1), Nanos(0));
  EXPECT_EQ(waited_for(1024, 20), Nanos(0));
  EXPECT_GT(waited_for(1025, 20), Nanos(0));
}

TEST(SimDevice, a_case_without_declared_work_cannot_be_priced) {
  test::SimGpu sim;
  auto launch = sim.launches[0];
  launch.work.reset();
  const auto kernel = sim.device.load({&launch, {}, {}, {}}, sim.buffers);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, RefusalCode::bad_spec);
  EXPECT_NE(kernel.error().what.find("declares no work"), std::string::npos);
}

TEST(SimDevice, says_that_it_is_simulated_and_counts_no_registers) {
  test::SimGpu sim;
  EXPECT_TRUE(sim.device.info().simulated);
  EXPECT_NE(sim.device.info().name.find("simulated"), std::string::npos);
  EXPECT_FALSE(sim.device.occupancy(*sim.kernels[0]));
}

} // namespace
} // namespace hebe::gpu
