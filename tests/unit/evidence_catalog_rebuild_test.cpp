// Facts about rebuilding: nobody ever finds half a catalog or misses a run, whoever works or dies
// meanwhile.
#include "evidence/catalog_rebuild.hpp"

#include "evidence/catalog.hpp"
#include "evidence/sealed_run.hpp"

#include <csignal>
#include <fstream>
#include <thread>

#include <sched.h>
#include <sys/mount.h>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kWhen = 1'790'000'123'456'789;
constexpr std::int64_t kDay = 86'400'000'000;

class CatalogRebuildTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};

  void SetUp() override { ASSERT_TRUE(root.initialise()); }

  fs::path sealed(int number) {
    static const auto parts = test::made_run(test::smoke_plan());
    return seal_run(root, parts, kWhen + number * kDay).value().directory;
  }
  CatalogReport rebuilt() { return rebuild_catalog(root, 2).value(); }
  Catalog opened() { return Catalog::open(root).value(); }
  std::size_t leftovers() {
    std::size_t n = 0;
    for (const auto& e : fs::directory_iterator(root.path()))
      n += e.path().filename().string().ends_with(".tmp");
    return n;
  }
};

TEST_F(CatalogRebuildTest, no_run_is_missed_that_is_sealed_and_added_while_the_catalog_is_made) {
  rebuilt();
  const auto again_and_again = [&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const auto r = rebuild_catalog(root, 2);
      EXPECT_TRUE(r) << to_text(r.error());
    }
  };
  std::jthread one(again_and_again), another(again_and_again);
  constexpr int kRuns = 40;
  for (int i = 0; i < kRuns; ++i) {
    const auto run = sealed(i);
    const auto added = Catalog::add(root, run);
    ASSERT_TRUE(added) << to_text(added.error());
    ASSERT_EQ(opened().run_count().value(), i + 1);
  }
  for (auto* thread : {&one, &another}) thread->request_stop(), thread->join();
  EXPECT_EQ(opened().run_count().value(), kRuns);
  EXPECT_EQ(rebuilt().problems, 0);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(CatalogRebuildTest, a_writer_killed_at_any_moment_leaves_the_old_catalog_or_the_new_one) {
  sealed(0);
  rebuilt();
  for (int i = 1; i < 30; ++i) {
    if (i % 5 == 0) sealed(i);
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) (void)rebuild_catalog(root, 1);
    }
    ::usleep(static_cast<useconds_t>(i * 700));
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    auto catalog = Catalog::open(root);
    ASSERT_TRUE(catalog) << to_text(catalog.error());
    ASSERT_GE(catalog->run_count().value(), 1);
  }
  EXPECT_EQ(rebuilt().runs, 6);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(CatalogRebuildTest,
       the_file_of_a_living_writer_is_left_alone_and_that_of_a_dead_one_removed) {
  test::overwrite(folder / "catalog.sqlite.1.tmp", "left by one that died; 1 lives, as always");
  test::WaitingChild other([&] {
    static std::optional<CatalogAside> aside; // dies with its process
    auto made = CatalogAside::make(root);
    if (!made) return false;
    aside.emplace(std::move(*made));
    return true;
  });
  const auto of_other = folder / ("catalog.sqlite." + std::to_string(other.pid()) + ".tmp");
  rebuilt();
  EXPECT_FALSE(fs::exists(folder / "catalog.sqlite.1.tmp"));
  EXPECT_TRUE(fs::exists(of_other));
  other.kill();
  rebuilt();
  EXPECT_FALSE(fs::exists(of_other));
}

TEST_F(CatalogRebuildTest, the_journal_of_a_writer_that_died_is_not_played_into_the_new_catalog) {
  for (int i = 0; i < 20; ++i) sealed(i);
  rebuilt();
  const auto journal = fs::path(Catalog::file_of(root).string() + "-journal");
  { // a transaction that spilled to disk and never ended
    const int code = test::exit_code_in_child([&] {
      auto database = Database::open(Catalog::file_of(root), Database::Access::shared).value();
      (void)database.execute("PRAGMA cache_size=1; BEGIN IMMEDIATE; DELETE FROM runs").value();
      (void)database
          .execute("PRAGMA cache_spill=1; INSERT INTO problems "
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n "
                   "WHERE i < 5000) SELECT i, 'x', 'y' FROM n")
          .value();
      ::_exit(9);
      return 0;
    });
    ASSERT_EQ(code, 9);
  }
  ASSERT_TRUE(fs::exists(journal));
  EXPECT_EQ(rebuilt().runs, 20);
  EXPECT_FALSE(fs::exists(journal));
  EXPECT_EQ(opened().run_count().value(), 20);
  EXPECT_EQ(rebuilt().problems, 0);
}

TEST_F(CatalogRebuildTest, a_full_disk_refuses_an_added_run_and_leaves_the_catalog) {
  const int code = test::exit_code_in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0)
      return 77;
    if (!root.initialise()) return 1;
    sealed(0);
    rebuilt();
    const auto run = sealed(1);
    std::ofstream fill(folder / "fill");
    while (fill << std::string(512, 'x') << std::flush) {
    }
    const auto before = test::bytes_of(Catalog::file_of(root));
    const auto added = Catalog::add(root, run);
    if (added || added.error().code != RefusalCode::no_space) return 2;
    const auto again = rebuild_catalog(root, 1);
    if (again || again.error().code != RefusalCode::no_space || leftovers() != 0) return 3;
    fill.close(); // an open file keeps its space
    fs::remove(folder / "fill");
    if (opened().run_count().value() != 1) return 4;
    if (test::bytes_of(Catalog::file_of(root)) != before) return 5;
    return Catalog::add(root, run) && opened().run_count().value() == 2 ? 0 : 6;
  });
  if (code == 77) GTEST_SKIP() << "needs root and mount namespaces";
  EXPECT_EQ(code, 0);
}

} // namespace
} // namespace hebe::evidence
