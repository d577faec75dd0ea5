// Facts about sealing: a crash at any step leaves no run or a whole one.
#include "evidence/sealed_run.hpp"

#include "core/files.hpp"
#include "core/sha256.hpp"
#include "evidence/verify.hpp"

#include <set>

#include <sys/resource.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/crash_points.hpp"
#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kWhen = 1'790'000'123'456'789; // 2026-09-21T14:15:23Z

const RunParts& parts() {
  static const auto made = test::made_run(test::smoke_plan());
  return made;
}

TEST(SealedRun, lies_in_its_day_and_carries_its_seal_in_its_name) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto run = seal_run(root, parts(), kWhen);
  ASSERT_TRUE(run) << run.error().what;
  EXPECT_EQ(run->directory.parent_path(), root.runs() / "2026" / "09" / "21");
  EXPECT_EQ(run->directory.filename(), run->run_id);
  EXPECT_EQ(run->run_id, "20260921T141523Z-aa-" + run->seal.substr(0, 16));
  EXPECT_EQ(run->seal, sha256_hex(test::bytes_of(run->directory / "manifest.json")));
  std::set<std::string> names;
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(run->directory)) {
    names.insert(entry.path().filename().string());
    bytes += entry.file_size();
    struct stat info {};
    ::stat(entry.path().c_str(), &info);
    EXPECT_EQ(info.st_mode & 0777, 0444U) << entry.path();
  }
  EXPECT_EQ(names, (std::set<std::string>{"plan.json", "environment.json", "windows.jsonl",
                                          "telemetry.parquet", "analysis.json", "manifest.json"}));
  EXPECT_EQ(bytes, run->bytes);
}

TEST(SealedRun, equal_parts_have_equal_seals_whenever_they_are_sealed) {
  const test::ScratchFolder one, two;
  const auto a = seal_run(DataRoot(one.path()), parts(), kWhen).value(),
             b = seal_run(DataRoot(two.path()), parts(), kWhen + 86'400'000'000).value();
  EXPECT_EQ(a.seal, b.seal);
  EXPECT_NE(a.run_id, b.run_id);
}

TEST(SealedRun, a_run_is_never_written_over) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto first = seal_run(root, parts(), kWhen).value();
  const auto again = seal_run(root, parts(), kWhen);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, RefusalCode::already_exists);
  EXPECT_TRUE(verify_run(first.directory)->valid());
  EXPECT_TRUE(root.unsealed().empty());
}

TEST(SealedRun, what_cannot_be_written_as_json_is_refused_before_anything_exists) {
  const test::ScratchFolder folder;
  auto bad = parts();
  bad.environment["facts"].push_back({{"name", "x"}, {"source", "y"}, {"value", std::nan("")}});
  EXPECT_FALSE(seal_run(DataRoot(folder.path()), bad, kWhen));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(SealedRun, killed_at_any_step_there_is_no_run_or_one_that_verifies) {
  const test::ScratchFolder once;
  const auto all =
      test::crash_points_of([&] { (void)seal_run(DataRoot(once.path()), parts(), kWhen).value(); });
  ASSERT_GE(all.size(), 10U); // two folders, six files, two syncs, the rename
  for (std::size_t at = 0; at < all.size(); ++at) {
    const test::ScratchFolder folder;
    const DataRoot root(folder.path());
    ASSERT_TRUE(test::ends_at_crash_point(at, [&] { (void)seal_run(root, parts(), kWhen); }))
        << all[at];
    const auto run = root.newest_run();
    const auto half = root.unsealed();
    if (run) {
      EXPECT_TRUE(verify_run(*run)->valid()) << all[at];
      EXPECT_TRUE(half.empty()) << all[at];
      EXPECT_EQ(at, all.size() - 1) << all[at]; // only after the rename
    } else {
      EXPECT_EQ(half.size(), at < 2 ? 0U : 1U) << all[at];
      for (const auto& directory : half)
        EXPECT_EQ(root.find_run(directory.string()).error().code, RefusalCode::half_written);
    }
    // and the next attempt is not in its way
    const auto again = seal_run(root, parts(), kWhen);
    EXPECT_EQ(again.has_value(), !run) << all[at];
    EXPECT_EQ(root.unsealed(), half) << all[at]; // reported, never touched
  }
}

TEST(SealedRun, a_disk_that_fills_up_leaves_nothing_under_any_name) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const int code = test::exit_code_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2048, 2048};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto run = seal_run(root, parts(), kWhen);
    if (run) return 1;
    return run.error().not_written.find("20260921T141523Z-aa-") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_FALSE(root.newest_run());
  EXPECT_TRUE(root.unsealed().empty());
}

TEST(SealedRun, a_folder_that_may_not_be_written_is_no_permission) {
  const test::ScratchFolder folder;
  fs::permissions(folder.path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const int code = test::exit_code_in_child([&] {
    if (!test::become_ordinary_user()) return 77;
    if (::geteuid() != 65534)
      fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
    const auto run = seal_run(DataRoot(folder.path()), parts(), kWhen);
    return !run && run.error().code == RefusalCode::no_permission ? 0 : 1;
  });
  fs::permissions(folder.path(), fs::perms::owner_all);
  if (code == 77) GTEST_SKIP() << "root that cannot become an ordinary user";
  EXPECT_EQ(code, 0);
}

} // namespace
} // namespace hebe::evidence
