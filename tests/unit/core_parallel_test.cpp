// Facts about parallel work: every item once, refusals and exceptions come back, no needless
// thread.
#include "core/parallel.hpp"

#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace hebe {
namespace {

TEST(Parallel, every_index_is_done_exactly_once) {
  for (const unsigned threads : {0U, 1U, 2U, 7U})
    for (const std::size_t count : {0UL, 1UL, 2UL, 1000UL}) {
      std::vector<std::atomic<int>> done(count);
      ASSERT_TRUE(for_each_index(count, threads, [&](std::size_t i) -> Status {
        ++done[i];
        return {};
      }));
      for (const auto& d : done) EXPECT_EQ(d, 1) << count << " on " << threads;
    }
}

TEST(Parallel, a_single_item_runs_on_the_callers_thread) {
  std::thread::id where;
  ASSERT_TRUE(for_each_index(1, 8, [&](std::size_t) -> Status {
    where = std::this_thread::get_id();
    return {};
  }));
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Parallel, a_refusal_comes_back_and_no_new_item_begins) {
  std::atomic<int> begun = 0;
  const auto status = for_each_index(1'000'000, 3, [&](std::size_t i) -> Status {
    ++begun;
    if (i == 10) return refuse(RefusalCode::no_space, "item " + std::to_string(i));
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, RefusalCode::no_space);
  EXPECT_EQ(status.error().what, "item 10");
  EXPECT_LT(begun, 1'000'000);
}

TEST(Parallel, of_several_refusals_the_first_item_speaks) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<int> waiting = 0;
    const auto status = for_each_index(2, 2, [&](std::size_t i) -> Status {
      for (++waiting; waiting < 2;) std::this_thread::yield(); // both are at work
      return refuse(RefusalCode::io_failed, std::to_string(i));
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().what, "0");
  }
}

TEST(Parallel, an_exception_is_thrown_to_the_caller_after_all_threads_ended) {
  std::atomic<int> at_work = 0;
  EXPECT_THROW(
      {
        (void)for_each_index(100, 4, [&](std::size_t i) -> Status {
          ++at_work;
          if (i == 3) {
            --at_work;
            throw std::runtime_error("item 3");
          }
          std::this_thread::yield();
          --at_work;
          return {};
        });
      },
      std::runtime_error);
  EXPECT_EQ(at_work, 0);
}

} // namespace
} // namespace hebe
