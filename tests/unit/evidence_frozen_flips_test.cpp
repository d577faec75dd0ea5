// Facts about damage to frozen records: whatever happens to any byte of a dataset or an analysis,
// the file it happened to is named, and put back it verifies.
#include "evidence/analysis_store.hpp"
#include "evidence/dataset.hpp"
#include "evidence/dataset_verify.hpp"
#include "evidence/derived_analysis.hpp"

#include <random>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "../data/support/sealed_runs.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

constexpr int kFlips = 1'200; // of the dataset, and of the analyses

class FrozenFlipsTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};
  fs::path first = test::sealed_with_seed(root, 1), second = test::sealed_with_seed(root, 2, 1);

  fs::path taken() {
    DatasetRequest all;
    all.all = true;
    PartBounds small; // so that there is more than one telemetry part
    small.rows = 150;
    return take_dataset(root, plan_dataset(root, all).value(), small)->directory;
  }
  std::string campaign_id() {
    const std::vector<CampaignJob> jobs = {{"a", first, {}}, {"b", second, {}}};
    return store_analysis(root, campaign_analysis("c", jobs).value())->id;
  }

  static std::vector<fs::path> files_of(const fs::path& top) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(top))
      if (entry.is_regular_file()) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    for (const auto& file : out)
      fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
    return out;
  }
  static bool names(const VerifyReport& r, const fs::path& file) {
    for (const auto& p : r.problems)
      if (p.where == file.string()) return true;
    return false;
  }
  // Flips bytes in turn over all files; the larger ones get no more of them than the smaller.
  template <class Verify>
  static void flip(const std::vector<fs::path>& files, unsigned seed, const Verify& verify) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < kFlips; ++i) {
      const auto& file = files[static_cast<std::size_t>(i) % files.size()];
      std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
      const auto at = static_cast<std::streamoff>(random() % fs::file_size(file));
      const auto put = [&](char c) { stream.seekp(at).put(c).flush(); };
      const auto old = static_cast<char>(stream.seekg(at).get());
      put(static_cast<char>(old ^ static_cast<char>(1 + random() % 255)));
      const VerifyReport damaged = verify();
      put(old);
      ASSERT_FALSE(damaged.valid()) << file << " at " << at;
      ASSERT_TRUE(names(damaged, file))
          << file << " at " << at << ": " << damaged.problems[0].where;
      if (i % 50 == 0) {
        ASSERT_TRUE(verify().valid()) << file;
      }
    }
    ASSERT_TRUE(verify().valid());
  }
};

DatasetVerifyRequest without_runs() {
  DatasetVerifyRequest r;
  r.recompute = false;
  r.threads = 1;
  return r;
}

TEST_F(FrozenFlipsTest, every_flipped_byte_of_a_dataset_is_named_by_its_file) {
  const auto dataset = taken();
  const auto files = files_of(dataset);
  ASSERT_GE(files.size(), 6U);
  flip(files, 7, [&] { return verify_dataset(root, dataset, without_runs()).value(); });
  EXPECT_TRUE(verify_dataset(root, dataset)->valid()); // and against the runs
}

TEST_F(FrozenFlipsTest, every_flipped_byte_of_an_analysis_is_named_by_its_file) {
  const auto id = campaign_id();
  // Without the runs: what is checked here is the analysis alone.
  fs::rename(root.runs(), folder / "away");
  flip(files_of(root.analyses()), 8, [&] { return verify_analysis(root, id).value(); });
  fs::rename(folder / "away", root.runs());
  EXPECT_TRUE(verify_analysis(root, id)->valid());
}

// Everything but a flip that can happen to one file; `undo` by writing it again.
struct Damage {
  const char* name;
  const char* said; ///< of a dataset's file
  std::function<void(const fs::path&)> doit;
};
const Damage kDamages[] = {
    {"truncated", "bytes, found",
     [](const fs::path& f) { fs::resize_file(f, fs::file_size(f) / 2); }},
    {"emptied", "bytes, found", [](const fs::path& f) { fs::resize_file(f, 0); }},
    {"longer", "bytes, found", [](const fs::path& f) { fs::resize_file(f, fs::file_size(f) + 1); }},
    {"missing", "missing", [](const fs::path& f) { fs::remove(f); }},
    {"a link to its own copy", "link",
     [](const fs::path& f) {
       const auto copy = f.parent_path().parent_path().parent_path() / "copy-of-it";
       fs::copy_file(f, copy, fs::copy_options::overwrite_existing);
       fs::remove(f);
       fs::create_symlink(copy, f);
     }},
    {"a directory", "directory",
     [](const fs::path& f) {
       fs::remove(f);
       fs::create_directory(f);
     }},
    {"a pipe", "plain file",
     [](const fs::path& f) {
       fs::remove(f);
       ::mkfifo(f.c_str(), 0644);
     }},
};

template <class Verify>
void damage_each(const std::vector<fs::path>& files, const Verify& verify, bool said = false) {
  for (const auto& file : files)
    for (const auto& damage : kDamages) {
      const auto good = test::bytes_of(file);
      damage.doit(file);
      const VerifyReport r = verify();
      bool named = false;
      for (const auto& p : r.problems)
        named =
            named || (p.where == file.string() && (!said || file.filename() == "manifest.json" ||
                                                   p.what.find(damage.said) != std::string::npos));
      EXPECT_TRUE(named) << file << " " << damage.name;
      fs::remove_all(file);
      fs::remove(file.parent_path().parent_path().parent_path() / "copy-of-it");
      test::overwrite(file, good);
      EXPECT_TRUE(verify().valid()) << file << " " << damage.name;
    }
}

TEST_F(FrozenFlipsTest, whatever_else_happens_to_a_file_of_a_dataset_is_named) {
  const auto dataset = taken();
  damage_each(
      files_of(dataset), [&] { return verify_dataset(root, dataset, without_runs()).value(); },
      true);
}

TEST_F(FrozenFlipsTest, whatever_else_happens_to_a_file_of_an_analysis_is_named) {
  const auto id = campaign_id();
  damage_each(files_of(root.analyses()), [&] { return verify_analysis(root, id).value(); });
}

TEST_F(FrozenFlipsTest, whatever_is_added_is_named) {
  const auto dataset = taken();
  const auto id = campaign_id();
  const auto in_dataset = [&] { return verify_dataset(root, dataset, without_runs()).value(); };
  const auto in_analysis = [&] { return verify_analysis(root, id).value(); };
  for (const auto& folder_of : {dataset, dataset / "runs", root.analyses() / id}) {
    const auto added = folder_of / "added";
    const auto verify = [&] {
      return folder_of == root.analyses() / id ? in_analysis() : in_dataset();
    };
    test::overwrite(added, "trust me");
    EXPECT_TRUE(names(verify(), added)) << added;
    fs::remove(added);
    fs::create_directory(added);
    EXPECT_TRUE(names(verify(), added)) << added;
    fs::remove(added);
    fs::create_symlink("/", added);
    EXPECT_TRUE(names(verify(), added)) << added;
    fs::remove(added);
    EXPECT_TRUE(verify().valid());
  }
}

} // namespace
} // namespace hebe::evidence
