// Facts about the data root: what is a run, what is not, and how one is found.
#include "evidence/data_root.hpp"

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

class DataRootTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};

  fs::path run(const std::string& day, const std::string& name) {
    const auto directory = root.runs() / day / name;
    fs::create_directories(directory);
    return directory;
  }
};

TEST_F(DataRootTest, the_layout_is_made_once_and_making_it_again_changes_nothing) {
  ASSERT_TRUE(root.initialise());
  ASSERT_TRUE(root.initialise());
  for (const auto& f : root.folders()) EXPECT_TRUE(fs::is_directory(f)) << f;
  EXPECT_TRUE(fs::is_directory(folder / "runs"));
  EXPECT_TRUE(fs::is_directory(folder / "leases"));
}

TEST_F(DataRootTest, a_root_that_may_not_be_written_is_refused_at_once) {
  ASSERT_TRUE(root.initialise());
  fs::permissions(folder.path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const int code = test::exit_code_in_child([&] {
    if (::geteuid() != 0) {
      for (const auto& f : root.folders())
        fs::permissions(f, fs::perms::owner_read | fs::perms::owner_exec);
    } else if (!test::become_ordinary_user()) {
      return 77;
    }
    const auto status = root.initialise();
    return !status && status.error().code == RefusalCode::no_permission ? 0 : 1;
  });
  for (const auto& f : root.folders()) fs::permissions(f, fs::perms::owner_all);
  if (code == 77) GTEST_SKIP() << "root that cannot become an ordinary user";
  EXPECT_EQ(code, 0);
}

TEST_F(DataRootTest, a_file_where_a_folder_should_be_is_refused) {
  test::overwrite(folder / "runs", "");
  EXPECT_FALSE(root.initialise());
}

TEST_F(DataRootTest, the_newest_run_is_the_latest_by_its_day_and_name) {
  EXPECT_FALSE(root.newest_run());
  run("2026/09/21", "20260921T235959Z-aa-bb");
  const auto newest = run("2026/09/22", "20260922T000000Z-aa-aa");
  run("2025/12/31", "20251231T000000Z-aa-cc");
  run("2026/09/23", ".unsealed-20260923T000000Z-aa-dd-1");
  EXPECT_EQ(root.newest_run(), newest);
}

TEST_F(DataRootTest, half_written_runs_are_listed_and_never_found) {
  const auto half = run("2026/09/21", ".unsealed-20260921T000000Z-aa-dd-77");
  test::overwrite(half / "plan.json", "{");
  EXPECT_EQ(root.unsealed(), std::vector<fs::path>{half});
  EXPECT_EQ(root.find_run(half.string()).error().code, RefusalCode::half_written);
  EXPECT_EQ(root.find_run(half.string() + "/").error().code, RefusalCode::half_written);
  EXPECT_EQ(root.find_run("20260921T000000Z").error().code, RefusalCode::not_found);
}

TEST_F(DataRootTest, a_run_is_found_by_path_id_or_unique_part) {
  const auto a = run("2026/09/21", "20260921T141523Z-aa-0123456789abcdef");
  const auto b = run("2026/09/21", "20260921T150000Z-aa-fedcba9876543210");
  for (const auto& name : {a.string(), a.string() + "/", a.filename().string(),
                           std::string("0123456789"), std::string("T1415")})
    EXPECT_EQ(root.find_run(name).value(), a) << name;
  const auto both = root.find_run("20260921T1");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, RefusalCode::bad_argument);
  EXPECT_NE(both.error().what.find("fits 2 runs"), std::string::npos);
  EXPECT_EQ(root.find_run("20270101").error().code, RefusalCode::not_found);
}

TEST_F(DataRootTest, only_directories_four_below_runs_are_runs) {
  run("2026/09", "20260921T141523Z-aa-0123456789abcdef"); // a day's depth
  fs::create_directories(root.runs() / "2026/09/21");
  test::overwrite(root.runs() / "2026/09/21" / "20260921T141523Z-aa-0000000000000000", "a file");
  EXPECT_FALSE(root.newest_run());
  const auto inner = run("2026/09/21/20260921T141523Z-aa-1111111111111111",
                         "20260921T141523Z-aa-2222222222222222");
  EXPECT_EQ(root.newest_run(), inner.parent_path());
}

TEST_F(DataRootTest, the_root_of_a_run_is_four_above_it) {
  const auto a = run("2026/09/21", "20260921T141523Z-aa-0123456789abcdef");
  EXPECT_EQ(root_of_run(a)->path(), folder.path());
  EXPECT_EQ(root_of_run(a.string() + "/")->path(), folder.path());
  EXPECT_FALSE(root_of_run(folder / "copied-run"));
}

} // namespace
} // namespace hebe::evidence
