// Facts about the two clocks. Nothing here depends on how fast the host is.
#include "core/clock.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hebe {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(VirtualClock, stands_still_until_somebody_waits) {
  VirtualClock clock;
  const auto start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.sleep_for(milliseconds(20));
  EXPECT_EQ(clock.now() - start, milliseconds(20));
}

TEST(VirtualClock, never_goes_back) {
  VirtualClock clock;
  const auto start = clock.now();
  clock.sleep_until(start - seconds(1));
  EXPECT_EQ(clock.now(), start);
}

TEST(VirtualClock, tasks_run_when_they_fall_due_in_the_order_of_time) {
  VirtualClock clock;
  const auto start = clock.now();
  std::vector<std::string> log;
  const auto note = [&](const char* name) {
    log.push_back(
        name +
        std::to_string(std::chrono::duration_cast<milliseconds>(clock.now() - start).count()));
  };
  const auto slow = clock.every(milliseconds(30), [&] { note("slow"); });
  const auto fast = clock.every(milliseconds(20), [&] { note("fast"); });
  clock.sleep_for(milliseconds(70));
  EXPECT_EQ(log, (std::vector<std::string>{"fast20", "slow30", "fast40", "slow60", "fast60"}));
  EXPECT_EQ(clock.now() - start, milliseconds(70));
}

TEST(VirtualClock, a_task_due_exactly_at_the_end_of_a_wait_runs) {
  VirtualClock clock;
  int runs = 0;
  const auto task = clock.every(milliseconds(10), [&] { ++runs; });
  clock.sleep_for(milliseconds(10));
  EXPECT_EQ(runs, 1);
}

TEST(VirtualClock, a_task_that_takes_time_moves_the_clock_but_starts_no_other_task) {
  VirtualClock clock;
  const auto start = clock.now();
  int depth = 0, deepest = 0, runs = 0;
  const auto costly = [&] {
    deepest = std::max(deepest, ++depth);
    clock.sleep_for(milliseconds(25)); // longer than the period
    --depth;
    ++runs;
  };
  const auto a = clock.every(milliseconds(10), costly), b = clock.every(milliseconds(10), costly);
  clock.sleep_for(milliseconds(40));
  EXPECT_EQ(deepest, 1);
  EXPECT_EQ(runs, 8); // four each, late but none left out
  EXPECT_GE(clock.now() - start, milliseconds(200));
}

TEST(VirtualClock, a_subscription_ends_its_task_when_it_goes) {
  VirtualClock clock;
  int runs = 0;
  {
    const auto task = clock.every(milliseconds(10), [&] { ++runs; });
    clock.sleep_for(milliseconds(10));
  }
  clock.sleep_for(seconds(1));
  EXPECT_EQ(runs, 1);
}

TEST(VirtualClock, a_jump_moves_the_wall_and_not_the_monotonic_time) {
  VirtualClock clock;
  const auto now = clock.now();
  const auto wall = clock.wall_us();
  clock.jump_wall(seconds(-2));
  EXPECT_EQ(clock.now(), now);
  EXPECT_EQ(clock.wall_us() - wall, -2'000'000);
}

TEST(VirtualClock, starts_alike_every_time) {
  EXPECT_EQ(VirtualClock().now(), VirtualClock().now());
  EXPECT_EQ(VirtualClock().wall_us(), VirtualClock().wall_us());
}

TEST(RealClock, does_not_run_backwards_and_sleeps_at_least_as_long_as_asked) {
  RealClock clock;
  const auto start = clock.now();
  clock.sleep_for(milliseconds(2));
  EXPECT_GE(clock.now() - start, milliseconds(2));
  clock.sleep_until(start); // past: returns at once
}

TEST(RealClock, a_task_runs_on_its_own_thread_and_has_stopped_when_cancel_returns) {
  RealClock clock;
  std::atomic<int> runs = 0;
  std::atomic<bool> foreign = false;
  const auto here = std::this_thread::get_id();
  auto task = clock.every(milliseconds(1), [&] {
    foreign = std::this_thread::get_id() != here;
    ++runs;
  });
  while (runs < 3) std::this_thread::yield();
  task.cancel();
  const int at_cancel = runs;
  clock.sleep_for(milliseconds(5));
  EXPECT_EQ(runs, at_cancel);
  EXPECT_TRUE(foreign);
}

TEST(RealClock, a_task_that_was_never_due_does_not_delay_the_end) {
  RealClock clock;
  std::atomic<int> runs = 0;
  {
    const auto task = clock.every(std::chrono::hours(1), [&] { ++runs; });
  }
  EXPECT_EQ(runs, 0);
}

TEST(Subscription, stops_once_and_the_moved_from_one_never) {
  int stops = 0;
  {
    Subscription a([&] { ++stops; });
    Subscription b(std::move(a));
    Subscription c([&] { ++stops; });
    c = std::move(b); // ends c's own first
    EXPECT_EQ(stops, 1);
    c.cancel();
    EXPECT_EQ(stops, 2);
  }
  EXPECT_EQ(stops, 2);
}

} // namespace
} // namespace hebe
