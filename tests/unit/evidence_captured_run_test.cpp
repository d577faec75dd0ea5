// Facts about finished measurements that are not compacted yet.
#include "evidence/captured_run.hpp"

#include "core/files.hpp"
#include "core/philox.hpp"
#include "evidence/verify.hpp"

#include <sys/resource.h>

#include <csignal>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kWhen = 1'790'000'123'456'789; // 2026-09-21T14:15:23Z

const RunParts& parts() {
  static const auto made = [] {
    auto p = test::made_run(test::smoke_plan());
    p.campaign = JobIdentity{"floor-0011", "small-1"};
    return p;
  }();
  return made;
}

TEST(CapturedRun, sealed_from_its_capture_it_has_the_seal_of_one_sealed_at_once) {
  const test::ScratchFolder one, two;
  const auto at_once = seal_run(DataRoot(one.path()), parts(), kWhen).value();
  const DataRoot root(two.path());
  const auto captured = capture_run(root, parts(), kWhen).value();
  EXPECT_EQ(root.captured(), std::vector{captured});
  EXPECT_TRUE(root.sealed().empty());
  const auto sealed = seal_captured(root, captured);
  ASSERT_TRUE(sealed) << sealed.error().what;
  EXPECT_EQ(sealed->seal, at_once.seal);
  EXPECT_EQ(sealed->run_id, at_once.run_id);
  EXPECT_EQ(sealed->bytes, at_once.bytes);
  EXPECT_TRUE(verify_run(sealed->directory)->valid());
  EXPECT_FALSE(fs::exists(captured)); // the raw samples go when the run has verified
}

TEST(CapturedRun, whose_job_it_is_is_in_the_capture_and_in_the_manifest) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto captured = capture_run(root, parts(), kWhen).value();
  EXPECT_EQ(job_identity_in(capture_record(captured).value()), parts().campaign);
  const auto sealed = seal_captured(root, captured).value();
  const auto manifest =
      parse_json(test::bytes_of(sealed.directory / "manifest.json"), "manifest").value();
  EXPECT_EQ(job_identity_in(manifest), parts().campaign);
}

TEST(CapturedRun, it_is_never_read_as_a_run) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto captured = capture_run(root, parts(), kWhen).value();
  EXPECT_FALSE(root.newest_run());
  EXPECT_EQ(root.find_run(captured.string()).error().code, RefusalCode::half_written);
}

TEST(CapturedRun, sealing_again_after_a_crash_before_the_raw_samples_went_finds_the_sealed_run) {
  const test::ScratchFolder folder, aside;
  const DataRoot root(folder.path());
  const auto captured = capture_run(root, parts(), kWhen).value();
  fs::copy(captured, aside.path() / "copy");
  const auto first = seal_captured(root, captured).value();
  EXPECT_EQ(seal_captured(root, captured).error().code, RefusalCode::not_found);
  fs::copy(aside.path() / "copy", captured);
  const auto second = seal_captured(root, captured);
  ASSERT_TRUE(second) << second.error().what;
  EXPECT_EQ(second->directory, first.directory);
  EXPECT_EQ(second->seal, first.seal);
  EXPECT_FALSE(fs::exists(captured));
  EXPECT_EQ(root.sealed().size(), 1U);
}

TEST(CapturedRun, two_processes_that_seal_one_capture_make_one_run) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto captured = capture_run(root, parts(), kWhen).value();
  const test::WaitingChild other([&] {
    const auto run = seal_captured(root, captured);
    return run || run.error().code == RefusalCode::not_found;
  });
  const auto ours = seal_captured(root, captured);
  EXPECT_TRUE(ours || ours.error().code == RefusalCode::not_found);
  EXPECT_EQ(root.sealed().size(), 1U);
  EXPECT_TRUE(root.captured().empty());
}

// One wrong bit anywhere: nothing is sealed, the file is named, and the raw samples are kept.
TEST(CapturedRun, one_flipped_bit_in_any_file_is_named_and_nothing_is_sealed) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto captured = capture_run(root, parts(), kWhen).value();
  Philox random(7, 0);
  int flips = 0;
  for (const auto& entry : fs::directory_iterator(captured)) {
    fs::permissions(entry.path(), fs::perms::owner_all);
    const auto whole = test::bytes_of(entry.path());
    for (int i = 0; i < 40; ++i, ++flips) {
      auto bad = whole;
      const auto at = random.below(static_cast<std::uint32_t>(bad.size()));
      bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
      std::ofstream(entry.path(), std::ios::binary) << bad;
      const auto run = seal_captured(root, captured);
      ASSERT_FALSE(run) << entry.path() << " at " << at;
      EXPECT_NE(run.error().where.find(entry.path().string()), std::string::npos)
          << run.error().where;
    }
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
  EXPECT_EQ(flips, 6 * 40);
  EXPECT_TRUE(root.sealed().empty());
  EXPECT_TRUE(root.unsealed().empty());
  EXPECT_TRUE(seal_captured(root, captured));
}

TEST(CapturedRun, a_disk_that_fills_up_while_compacting_keeps_the_capture) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto captured = capture_run(root, parts(), kWhen).value();
  const int code = test::exit_code_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2048, 2048};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return seal_captured(root, captured) ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(root.sealed().empty());
  EXPECT_TRUE(root.unsealed().empty());
  EXPECT_TRUE(seal_captured(root, captured));
}

TEST(CapturedRun, a_link_planted_where_the_day_belongs_is_refused_before_any_write) {
  const test::ScratchFolder folder, elsewhere;
  const DataRoot root(folder.path());
  fs::create_directories(root.runs() / "2026");
  fs::create_directory_symlink(elsewhere.path(), root.runs() / "2026" / "09");
  EXPECT_EQ(capture_run(root, parts(), kWhen).error().code, RefusalCode::unsafe_path);
  EXPECT_EQ(seal_run(root, parts(), kWhen).error().code, RefusalCode::unsafe_path);
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
}

} // namespace
} // namespace hebe::evidence
