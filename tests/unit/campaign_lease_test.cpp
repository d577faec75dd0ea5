// Facts about leases: one process at a time, released by the kernel when it dies.
#include "campaign/lease.hpp"

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::campaign {
namespace {

class LeaseTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  Result<Lease> acquire(const std::string& uuid = "GPU-1") {
    return Lease::acquire(folder / "leases", uuid, "node17", "2026-01-01T00:00:00Z",
                          "run-aa vector_add");
  }
  bool in_child_too(const std::string& uuid = "GPU-1") {
    return test::exit_code_in_child([&] { return acquire(uuid) ? 0 : 1; }) == 0;
  }
};

TEST_F(LeaseTest, a_free_gpu_is_leased_and_the_file_says_by_whom) {
  const auto lease = acquire();
  ASSERT_TRUE(lease) << lease.error().what;
  EXPECT_EQ(lease->path(), folder / "leases" / "GPU-1.lease");
  const auto text = Json::parse(test::bytes_of(lease->path()));
  EXPECT_EQ(text, (Json{{"pid", ::getpid()},
                        {"host", "node17"},
                        {"since", "2026-01-01T00:00:00Z"},
                        {"what", "run-aa vector_add"}}));
  EXPECT_TRUE(lease->still_held());
}

TEST_F(LeaseTest, a_second_process_is_refused_by_the_first_ones_pid) {
  std::optional<test::WaitingChild> holder(std::in_place, [&] {
    static std::optional<Lease> kept;
    if (auto lease = acquire()) kept.emplace(std::move(*lease));
    return kept.has_value();
  });
  const auto second = acquire();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, RefusalCode::lease_held);
  EXPECT_EQ(second.error().what, "the GPU is leased to process " + std::to_string(holder->pid()) +
                                     " on node17 since 2026-01-01T00:00:00Z for run-aa vector_add");
  EXPECT_EQ(second.error().where, (folder / "leases" / "GPU-1.lease").string());
  EXPECT_TRUE(acquire("GPU-2")); // another board is free
  holder->kill();                // SIGKILL: no destructor runs
  EXPECT_TRUE(acquire());
}

TEST_F(LeaseTest, within_one_process_it_is_exclusive_too_and_free_after_release) {
  {
    const auto first = acquire();
    ASSERT_TRUE(first);
    EXPECT_EQ(acquire().error().code, RefusalCode::lease_held);
    EXPECT_FALSE(in_child_too());
  }
  EXPECT_TRUE(in_child_too());
  EXPECT_TRUE(acquire());
}

TEST_F(LeaseTest, a_file_left_by_a_dead_process_is_not_a_lease) {
  ASSERT_TRUE(in_child_too()); // the child has ended; its file is still there
  ASSERT_TRUE(std::filesystem::exists(folder / "leases" / "GPU-1.lease"));
  const auto lease = acquire();
  ASSERT_TRUE(lease);
  EXPECT_EQ(Json::parse(test::bytes_of(lease->path())).at("pid"),
            ::getpid()); // and nothing of the old text
}

TEST_F(LeaseTest, a_lease_whose_file_was_removed_or_replaced_is_lost) {
  for (const bool replace : {false, true}) {
    auto lease = acquire();
    ASSERT_TRUE(lease);
    // Kept aside, so that the file system does not give its number to the new one.
    std::filesystem::rename(lease->path(), folder / "aside");
    if (replace) test::overwrite(lease->path(), "{}");
    const auto held = lease->still_held();
    ASSERT_FALSE(held);
    EXPECT_EQ(held.error().code, RefusalCode::lease_lost);
    EXPECT_EQ(held.error().where, lease->path().string());
    EXPECT_TRUE(in_child_too()); // which is why it has to be noticed
  }
}

TEST_F(LeaseTest, moving_a_lease_keeps_it) {
  auto first = acquire();
  ASSERT_TRUE(first);
  Lease moved(std::move(*first));
  EXPECT_FALSE(in_child_too());
  EXPECT_TRUE(moved.still_held());
}

TEST_F(LeaseTest, a_holder_that_wrote_garbage_is_still_a_holder) {
  const auto lease = acquire();
  ASSERT_TRUE(lease);
  for (const char* text :
       {"", "garbage", "[]", "{}", R"({"pid":"x","host":3,"since":null,"what":[]})"}) {
    test::overwrite(lease->path(), text);
    Result<Lease> second = refuse(RefusalCode::internal, "");
    ASSERT_NO_THROW(second = acquire()) << text;
    ASSERT_FALSE(second) << text;
    EXPECT_EQ(second.error().code, RefusalCode::lease_held) << text;
  }
}

} // namespace
} // namespace hebe::campaign
