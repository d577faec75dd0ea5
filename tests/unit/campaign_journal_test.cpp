// Facts about a campaign's journal and its jobs' locks.
#include "campaign/journal.hpp"

#include "core/philox.hpp"

#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::campaign {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000, kNow = 1'790'000'000 * kSecond;
const std::string kSeal(64, 'a');

struct JournalTest : testing::Test {
  test::ScratchFolder folder;
  FrozenCampaign campaign{"c-1", "c", folder.path(), false, {}, {}};
  fs::path file = folder.path() / "state.jsonl";

  JournalTest() {
    for (const char* id : {"a", "b", "c"}) campaign.jobs.push_back({id, "", ""});
  }
  Journal open() { return Journal::open(campaign).value(); }
  static Json started(const char* job) { return {{"event", "started"}, {"job", job}}; }
  static Json sealed(const char* job) {
    return {{"event", "sealed"}, {"job", job},         {"run", "runs/x"},
            {"seal", kSeal},     {"verdict", "lower"}, {"exit", 0}};
  }
  void fill() {
    auto journal = open();
    for (const char* job : {"a", "b"}) {
      ASSERT_TRUE(journal.append(started(job), kNow));
      ASSERT_TRUE(journal.append(sealed(job), kNow + kSecond));
    }
  }
};

TEST_F(JournalTest, a_campaign_that_nobody_began_has_no_file_and_everything_pending) {
  EXPECT_EQ(open().state().pending(), 3U);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(Journal::glance(campaign)->pending(), 3U);
}

TEST_F(JournalTest, what_is_appended_is_read_back_by_everybody) {
  auto one = open(), other = open();
  ASSERT_TRUE(one.append(started("a"), kNow));
  ASSERT_TRUE(other.append(started("b"), kNow)); // it read the first on the way
  ASSERT_TRUE(one.append(sealed("a"), kNow));
  ASSERT_TRUE(one.refresh());
  ASSERT_TRUE(other.refresh());
  EXPECT_EQ(open().state().jobs[0].seal, kSeal);
  for (const auto& state :
       {one.state(), other.state(), open().state(), Journal::glance(campaign).value()}) {
    EXPECT_EQ(state.events, 3U);
    EXPECT_EQ(state.jobs[0].state, JobState::sealed);
    EXPECT_EQ(state.jobs[1].state, JobState::started);
    EXPECT_EQ(state.jobs[1].attempts, 1);
    EXPECT_EQ(state.pending(), 2U);
  }
}

TEST_F(JournalTest, a_sealed_job_stays_sealed_whatever_a_late_process_still_says) {
  auto journal = open();
  ASSERT_TRUE(journal.append(sealed("a"), kNow));
  ASSERT_TRUE(journal.append(
      {{"event", "refused"}, {"job", "a"}, {"code", "gpu_busy"}, {"what", ""}}, kNow));
  ASSERT_TRUE(journal.append(started("a"), kNow));
  EXPECT_EQ(journal.state().jobs[0].state, JobState::sealed);
}

TEST_F(JournalTest, many_processes_append_in_turn_and_no_line_is_lost) {
  constexpr int kWriters = 4, kLines = 25;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto journal = open();
      for (int i = 0; i < kLines; ++i)
        if (!journal.append(started("b"), kNow)) ::_exit(1);
      ::_exit(0);
    }
    children.push_back(pid);
  }
  for (const auto pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto journal = open();
  EXPECT_EQ(journal.state().events, static_cast<std::size_t>(kWriters * kLines));
  EXPECT_EQ(journal.state().jobs[1].attempts, kWriters * kLines);
}

TEST_F(JournalTest, one_flipped_bit_anywhere_is_found_and_its_line_or_a_later_one_named) {
  fill();
  const auto whole = test::bytes_of(file);
  Philox random(3, 0);
  for (int i = 0; i < 500; ++i) {
    auto bad = whole;
    const auto at = random.below(static_cast<std::uint32_t>(bad.size()));
    bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
    std::ofstream(file, std::ios::binary) << bad;
    const auto journal = Journal::open(campaign);
    // The very last line feed: then the last line is one that was cut off, and does not count.
    if (at == whole.size() - 1) {
      ASSERT_TRUE(journal);
      EXPECT_EQ(journal->state().events, 3U);
      continue;
    }
    ASSERT_FALSE(journal) << "byte " << at;
    EXPECT_EQ(journal.error().code, RefusalCode::digest_mismatch);
    EXPECT_EQ(journal.error().where.rfind(file.string() + ":", 0), 0U);
  }
}

TEST_F(JournalTest, a_line_that_was_cut_off_anywhere_never_counted_and_the_next_append_says_so) {
  fill();
  const auto whole = test::bytes_of(file);
  const auto last = whole.rfind('\n', whole.size() - 2) + 1;
  for (auto size = last + 1; size < whole.size(); size += 7) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, size);
    auto journal = open();
    EXPECT_EQ(journal.state().jobs[1].state, JobState::started);
    ASSERT_TRUE(journal.append(sealed("b"), kNow + kSecond));
    EXPECT_EQ(open().state().jobs[1].state, JobState::sealed);
    EXPECT_NE(test::bytes_of(file).find("\"cut_off_bytes_before\":" + std::to_string(size - last)),
              std::string::npos);
  }
}

TEST_F(JournalTest, lines_that_vanish_while_it_is_open_are_noticed_before_the_next_is_written) {
  fill();
  auto journal = open();
  const auto whole = test::bytes_of(file);
  const auto shorter = whole.substr(0, whole.rfind('\n', whole.size() - 2) + 1);
  std::ofstream(file, std::ios::binary) << shorter;
  EXPECT_EQ(journal.append(started("c"), kNow).error().code, RefusalCode::digest_mismatch);
  EXPECT_EQ(test::bytes_of(file), shorter);
}

TEST_F(JournalTest, a_clock_behind_the_last_event_is_refused_beyond_what_hosts_differ) {
  auto journal = open();
  ASSERT_TRUE(journal.append(started("a"), kNow));
  EXPECT_TRUE(journal.append(started("a"), kNow - 10 * kSecond));
  const auto before = test::bytes_of(file);
  const auto late = journal.append(started("a"), kNow - 10 * kSecond - 1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, RefusalCode::clock_jump);
  EXPECT_EQ(test::bytes_of(file), before);
}

TEST_F(JournalTest, a_full_disk_leaves_the_journal_as_it_was) {
  fill();
  const auto before = test::bytes_of(file);
  const int code = test::exit_code_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{before.size() + 40, before.size() + 40};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto journal = open();
    return journal.append(started("c"), kNow + kSecond) ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(test::bytes_of(file), before);
  EXPECT_EQ(open().state().events, 4U);
}

TEST_F(JournalTest, a_journal_that_is_a_link_is_refused) {
  std::ofstream(folder.path() / "elsewhere");
  fs::create_symlink(folder.path() / "elsewhere", file);
  EXPECT_EQ(Journal::open(campaign).error().code, RefusalCode::unsafe_path);
}

TEST_F(JournalTest, a_job_is_locked_by_one_process_until_it_dies) {
  auto ours = JobLocks::open(campaign).value();
  {
    test::WaitingChild child([&] {
      static auto locks = JobLocks::open(campaign).value();
      return locks.try_lock(1).value() && locks.try_lock_submission().value();
    });
    EXPECT_TRUE(ours.locked(1));
    EXPECT_FALSE(ours.locked(0));
    EXPECT_TRUE(ours.submission_locked());
    EXPECT_FALSE(ours.try_lock(1).value());
    EXPECT_TRUE(ours.try_lock(0).value());
    EXPECT_FALSE(ours.try_lock_submission().value());
    const auto look = JobLocks::look(campaign);
    ASSERT_TRUE(look);
    EXPECT_TRUE(look->locked(1));
    child.kill();
  }
  EXPECT_FALSE(ours.locked(1));
  EXPECT_TRUE(ours.try_lock(1).value());
}

TEST(CampaignSeed, depends_on_the_campaign_s_seed_and_the_job_alone) {
  EXPECT_EQ(seed_for("7", "a"), seed_for("7", "a"));
  EXPECT_NE(seed_for("7", "a"), seed_for("7", "b"));
  EXPECT_NE(seed_for("7", "a"), seed_for("8", "a"));
}

} // namespace
} // namespace hebe::campaign
