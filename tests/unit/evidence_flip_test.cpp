// Facts about damage: whatever happens to a file of a sealed run, verification names that file.
// Thousands of single bytes are flipped in place; files are cut, locked, linked and replaced.
#include "evidence/verify.hpp"

#include "core/files.hpp"

#include <random>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kWhen = 1'790'000'123'456'789;
constexpr int kFlipsPerFile = 1000; // of 18 files
constexpr std::uint64_t kSeed = 20260921;

/// A confirmation-sized run: 12 pairs of 5 s windows.
measure::Plan confirmation_plan() {
  auto plan = test::smoke_plan();
  plan.tier = measure::tier_named("confirmation-v1").value();
  plan.pairs = plan.tier.min_pairs;
  plan.window = plan.tier.min_window;
  plan.warm_up = plan.tier.min_warm_up;
  plan.order.clear();
  plan.resamples = 1000;
  (void)measure::complete_plan(plan).value();
  return plan;
}

class FlipTest : public testing::Test {
protected:
  test::ScratchFolder folder;

  fs::path made(const measure::Plan& plan, const char* root) {
    return writable(
        seal_run(DataRoot(folder / root), test::made_run(plan), kWhen).value().directory);
  }
  /// A copy of the record under evidence/, alone.
  fs::path recorded() {
    for (const auto& e :
         fs::recursive_directory_iterator(fs::path(HEBE_SOURCE_DIR) / "evidence/h200-aa/runs"))
      if (e.path().filename() == "manifest.json") {
        const auto run = e.path().parent_path();
        const auto copy = folder / "copy" / run.filename().string();
        fs::create_directories(copy.parent_path());
        fs::copy(run, copy, fs::copy_options::recursive);
        return writable(copy);
      }
    throw std::runtime_error("no record under evidence/");
  }
  static fs::path writable(const fs::path& run) {
    for (const auto& f : files_of(run))
      fs::permissions(f, fs::perms::owner_write, fs::perm_options::add);
    return run;
  }
  static std::vector<fs::path> files_of(const fs::path& run) {
    std::vector<fs::path> out;
    for (const auto& e : fs::directory_iterator(run)) out.push_back(e.path());
    std::sort(out.begin(), out.end());
    return out;
  }

  /// A problem whose place is exactly this file, or a line of it.
  static bool names(const VerifyReport& r, const fs::path& file) {
    for (const auto& p : r.problems)
      if (p.where == file.string() || p.where.starts_with(file.string() + ":")) return true;
    return false;
  }
  static std::string problems(const VerifyReport& r) {
    std::string text;
    for (const auto& p : r.problems) text += to_text(p) + "\n";
    return text;
  }
};

void change_byte(const fs::path& file, off_t at, unsigned char mask) {
  const FileDescriptor fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  unsigned char byte = 0;
  ASSERT_EQ(::pread(fd.get(), &byte, 1, at), 1) << file;
  byte = static_cast<unsigned char>(byte ^ mask);
  ASSERT_EQ(::pwrite(fd.get(), &byte, 1, at), 1) << file;
}

TEST_F(FlipTest, every_flipped_byte_is_named_by_its_file) {
  RecordProperty("seed", std::to_string(kSeed));
  std::mt19937_64 random(kSeed); // the standard fixes its output
  int flips = 0;
  for (const auto& run :
       {made(test::smoke_plan(), "smoke"), made(confirmation_plan(), "confirm"), recorded()}) {
    const auto files = files_of(run);
    ASSERT_EQ(files.size(), 6U) << run;
    for (const auto& file : files)
      for (int i = 0; i < kFlipsPerFile; ++i, ++flips) {
        const auto at = static_cast<off_t>(random() % fs::file_size(file));
        const auto mask = static_cast<unsigned char>(1 + random() % 255);
        change_byte(file, at, mask);
        const auto r = verify_run(run).value();
        change_byte(file, at, mask);
        ASSERT_FALSE(r.valid()) << file << " byte " << at << " mask " << int(mask) << ", flip "
                                << flips << " of seed " << kSeed;
        ASSERT_TRUE(names(r, file)) << file << " byte " << at << " mask " << int(mask) << ", flip "
                                    << flips << " of seed " << kSeed << ": " << problems(r);
        // Nothing is read out of a file that is not the sealed one.
        ASSERT_TRUE(r.analysis.is_null());
      }
    const auto r = verify_run(run).value();
    EXPECT_TRUE(r.valid()) << problems(r);
  }
  EXPECT_EQ(flips, 18 * kFlipsPerFile);
}

TEST_F(FlipTest, a_file_that_is_cut_to_nothing_replaced_or_linked_is_named) {
  const auto run = made(test::smoke_plan(), "root");
  const auto elsewhere = folder / "elsewhere";
  fs::create_directories(elsewhere);
  for (const auto& file : files_of(run)) {
    const auto kept = elsewhere / file.filename();
    fs::rename(file, kept);
    struct Row {
      const char* what;
      std::function<void()> replace;
    };
    const Row table[] = {
        {"cut to nothing", [&] { test::overwrite(file, ""); }},
        {"a directory", [&] { fs::create_directory(file); }},
        {"a link to the same bytes", [&] { fs::create_symlink(kept, file); }},
        {"a relative link to the same bytes",
         [&] { fs::create_symlink(fs::relative(kept, run), file); }},
        {"a link to nothing", [&] { fs::create_symlink("nowhere", file); }},
        {"a link to itself", [&] { fs::create_symlink(file.filename(), file); }},
        {"a pipe that nobody writes", [&] { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); }},
        {"nothing", [] {}},
    };
    for (const auto& row : table) {
      row.replace();
      const auto r = verify_run(run);
      ASSERT_TRUE(r) << row.what;
      EXPECT_FALSE(r->valid()) << file << ": " << row.what;
      EXPECT_TRUE(names(*r, file)) << file << ": " << row.what << ": " << problems(*r);
      fs::remove(file);
    }
    fs::rename(kept, file);
  }
  const auto r = verify_run(run).value();
  EXPECT_TRUE(r.valid()) << problems(r);
}

TEST_F(FlipTest, a_file_that_may_not_be_read_is_named) {
  const auto run = made(test::smoke_plan(), "root");
  fs::permissions(folder.path(), fs::perms::others_read | fs::perms::others_exec,
                  fs::perm_options::add);
  for (const auto& file : files_of(run)) {
    fs::permissions(file, fs::perms::none);
    const int code = test::exit_code_in_child([&] {
      if (!test::become_ordinary_user()) return 77;
      const auto r = verify_run(run);
      return r && !r->valid() && names(*r, file) ? 0 : 1;
    });
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read);
    if (code == 77) GTEST_SKIP() << "root that cannot become an ordinary user";
    EXPECT_EQ(code, 0) << file;
  }
}

} // namespace
} // namespace hebe::evidence
