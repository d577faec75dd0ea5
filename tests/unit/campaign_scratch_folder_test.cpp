// Facts about scratch folders: one's own while one lives, and nobody's after that.
#include "campaign/scratch_folder.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::campaign {
namespace {
namespace fs = std::filesystem;

class ScratchFolderTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
  /// A folder with a file, made by a process that ended without removing it.
  void abandoned() {
    ASSERT_EQ(test::exit_code_in_child([&] {
                const auto made = ScratchFolder::make(folder.path());
                if (!made) return 1;
                test::overwrite(made->path() / "input", "bytes");
                ::_exit(7); // no destructor runs, as with SIGKILL
              }),
              7);
    ASSERT_EQ(left().size(), 1U);
  }
};

TEST_F(ScratchFolderTest, it_is_private_named_after_its_process_and_gone_with_its_owner) {
  {
    auto made = ScratchFolder::make(folder.path());
    ASSERT_TRUE(made) << made.error().what;
    const auto name = made->path().filename().string();
    EXPECT_TRUE(name.starts_with("hebe-job-" + std::to_string(::getpid()) + "-")) << name;
    EXPECT_EQ(fs::status(made->path()).permissions(), fs::perms::owner_all);
    test::overwrite(made->path() / "input", "bytes");
    const auto moved = std::move(*made);
    EXPECT_EQ(left().size(), 1U);
  }
  EXPECT_TRUE(left().empty());
}

TEST_F(ScratchFolderTest, what_a_killed_process_left_is_removed_by_the_next) {
  abandoned();
  const auto next = ScratchFolder::make(folder.path());
  ASSERT_TRUE(next);
  EXPECT_EQ(left(), std::vector{next->path().filename().string()});
}

TEST_F(ScratchFolderTest, folders_of_processes_that_live_stay) {
  const auto first = ScratchFolder::make(folder.path());
  const auto second = ScratchFolder::make(folder.path());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(test::exit_code_in_child([&] {
              const auto third = ScratchFolder::make(folder.path());
              return third && fs::exists(first->path()) && fs::exists(second->path()) ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(fs::exists(first->path()) && fs::exists(second->path()));
}

TEST_F(ScratchFolderTest, one_that_somebody_holds_stays_though_no_process_has_its_number) {
  // As a process of another PID namespace looks from here.
  abandoned();
  const auto elsewhere = folder / left().front();
  EXPECT_EQ(test::exit_code_in_child([&] {
              const int fd = ::open(elsewhere.c_str(), O_RDONLY | O_DIRECTORY);
              if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return 1;
              return test::exit_code_in_child([&] {
                remove_abandoned_scratch(folder.path());
                return fs::exists(elsewhere / "input") ? 0 : 2;
              });
            }),
            0);
  remove_abandoned_scratch(folder.path());
  EXPECT_FALSE(fs::exists(elsewhere));
}

TEST_F(ScratchFolderTest, what_only_looks_alike_stays) {
  constexpr int kNobody = 999'999'999; // beyond any pid
  const auto number = std::to_string(kNobody);
  for (const auto& name :
       {"hebe-job-abcdef", "hebe-job--abcdef", "hebe-job-0-abcdef", "hebe-other-1-abcdef"})
    fs::create_directories(folder / name);
  for (const auto& name :
       {"hebe-job-" + number, "hebe-job-" + number + "-", "hebe-job-" + number + "-abcdefg",
        "hebe-job-" + number + "x-abcdef", "x-hebe-job-" + number + "-abcdef"})
    fs::create_directories(folder / name);
  test::overwrite(folder / ("hebe-job-" + number + "-a_file"), "bytes");
  fs::create_directories(folder / "mine");
  test::overwrite(folder / "mine/precious", "bytes");
  fs::create_directory_symlink(folder / "mine", folder / ("hebe-job-" + number + "-a_link"));
  const auto before = left();
  remove_abandoned_scratch(folder.path());
  EXPECT_EQ(left(), before);
  EXPECT_TRUE(fs::exists(folder / "mine/precious"));
  fs::create_directories(folder / ("hebe-job-" + number + "-abcdef")); // and this is one
  remove_abandoned_scratch(folder.path());
  EXPECT_EQ(left(), before);
}

TEST_F(ScratchFolderTest, where_none_can_be_made_it_is_refused) {
  const auto none = ScratchFolder::make(folder / "not-there");
  ASSERT_FALSE(none);
  EXPECT_EQ(exit_code_of(none.error().code), ExitCode::unfit_environment);
}

} // namespace
} // namespace hebe::campaign
