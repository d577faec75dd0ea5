// Facts about the Slurm engine against a sbatch that only writes down what it is given: scripts,
// quoting, chunks, and what becomes of a refusal half way. tests/slurm has the real one.
#include "campaign/slurm_engine.hpp"

#include "core/command.hpp"

#include <algorithm>

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::campaign {
namespace {
namespace fs = std::filesystem;
using test::ScratchFolder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void write_program(const fs::path& path, const std::string& body) {
  std::ofstream(path) << "#!/bin/bash\n" << body << "\n";
  ::chmod(path.c_str(), 0755);
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

class SlurmEngine : public ::testing::Test {
protected:
  SlurmEngine() {
    fs::create_directory(bin_);
    // One call a line group, "|" between the words; ids 1, 2, 3, …
    write_program(bin_ / "sbatch", "printf '%s|' \"$@\" >>" + (scratch_ / "calls").string() +
                                       "; echo >>" + (scratch_ / "calls").string() + "; wc -l <" +
                                       (scratch_ / "calls").string());
    write_program(bin_ / "scontrol", "echo 'MaxArraySize            = 5'");
    write_program(bin_ / "scancel", "echo \"$@\" >>" + (scratch_ / "cancelled").string());
    ::setenv("PATH", (bin_.string() + ":" + path_).c_str(), 1);
    request_.program = "/opt/hebe/hebe";
    request_.data_root = scratch_ / "root";
    request_.folder = scratch_ / "root/campaigns/c1/slurm";
    request_.campaign = "c1";
    request_.jobs = {0, 1, 2};
    request_.device = "auto";
  }
  ~SlurmEngine() override { ::setenv("PATH", path_.c_str(), 1); }

  std::vector<std::string> calls() const { return lines_of(scratch_ / "calls"); }
  Refusal refusal() const {
    const auto done = submit_to_slurm(request_);
    return done ? Refusal{RefusalCode::internal, "it was submitted", {}, {}, {}} : done.error();
  }

  ScratchFolder scratch_;
  fs::path bin_ = scratch_ / "bin";
  std::string path_ = std::getenv("PATH");
  SlurmRequest request_;
};

TEST_F(SlurmEngine, options_say_requeue_append_exclusive_and_a_time_to_stop) {
  request_.options.partition = "gpu";
  request_.options.account = "me";
  request_.options.time_limit = "01:00:00";
  request_.options.extra = {"--nice=5", "--comment=two words"};
  const auto done = submit_to_slurm(request_);
  ASSERT_TRUE(done) << to_text(done.error());
  EXPECT_THAT(done->job_ids, ElementsAre("1"));
  const auto call = "|" + calls().at(0);
  for (const char* option :
       {"--parsable", "--requeue", "--open-mode=append", "--exclusive", "--gres=gpu:1",
        "--partition=gpu", "--account=me", "--time=01:00:00", "--signal=B:TERM@120", "--export=ALL",
        "--array=0-2", "--nice=5", "--comment=two words"})
    EXPECT_THAT(call, HasSubstr("|" + std::string(option) + "|"));
  EXPECT_THAT(call, Not(HasSubstr("--no-kill")));
  EXPECT_THAT(call, HasSubstr("--output=" + request_.folder.string() + "/0001-%A_%a.log|"));
  EXPECT_TRUE(call.ends_with("|" + done->scripts.at(0).string() + "|")) << call;
}

TEST_F(SlurmEngine, an_array_task_runs_the_job_of_its_own_line) {
  request_.program = scratch_ / "it's a \"program\"";
  write_program(request_.program, "printf '<%s>' \"$@\" \"$HEBE_PYTHON\"");
  request_.data_root = scratch_ / "data $root";
  request_.folder = scratch_ / "data $root/50% of it";
  request_.campaign = "c 1";
  request_.device = "GPU-1`id`";
  request_.jobs = {7, 3, 100000};
  request_.environment = {{"HEBE_PYTHON", "/a b/'python'"}};
  const auto done = submit_to_slurm(request_);
  ASSERT_TRUE(done) << to_text(done.error());
  EXPECT_THAT(calls().at(0), HasSubstr("50%% of it/0001-%A_%a.log"));
  for (std::size_t i = 0; i < request_.jobs.size(); ++i) {
    const auto ran = run_command(
        {"env", "SLURM_ARRAY_TASK_ID=" + std::to_string(i), "bash", done->scripts.at(0).string()});
    ASSERT_TRUE(ran);
    EXPECT_EQ(ran->out, "<--data-root><" + request_.data_root.string() +
                            "><campaign-work><c 1><--task><" + std::to_string(request_.jobs[i]) +
                            "><--device><GPU-1`id`></a b/'python'>")
        << ran->err;
  }
}

TEST_F(SlurmEngine, a_task_without_a_line_runs_nothing) {
  request_.program = "/bin/echo";
  const auto done = submit_to_slurm(request_);
  ASSERT_TRUE(done);
  const auto ran =
      run_command({"env", "SLURM_ARRAY_TASK_ID=3", "bash", done->scripts.at(0).string()});
  ASSERT_TRUE(ran);
  EXPECT_NE(ran->exit, 0);
  EXPECT_EQ(ran->out, "");
}

TEST_F(SlurmEngine, a_study_is_one_task_without_an_array) {
  request_.program = "/bin/echo";
  request_.one_task = true;
  request_.jobs = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto done = submit_to_slurm(request_);
  ASSERT_TRUE(done) << to_text(done.error());
  EXPECT_EQ(calls().size(), 1U);
  EXPECT_THAT(calls().at(0), Not(HasSubstr("--array")));
  EXPECT_THAT(calls().at(0), HasSubstr("-%j.log"));
  const auto ran = run_command({"bash", done->scripts.at(0).string()});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->out,
            "--data-root " + request_.data_root.string() + " campaign-work c1 --device auto\n");
}

TEST_F(SlurmEngine, more_jobs_than_an_array_may_have_become_several_arrays_of_each_job_once) {
  request_.jobs.clear();
  for (std::size_t i = 0; i < 12; ++i) request_.jobs.push_back(i * 2);
  const auto done = submit_to_slurm(request_);
  ASSERT_TRUE(done) << to_text(done.error());
  EXPECT_THAT(done->job_ids, ElementsAre("1", "2", "3"));
  EXPECT_THAT(calls().at(0), HasSubstr("|--array=0-4|"));
  EXPECT_THAT(calls().at(1), HasSubstr("|--array=0-4|"));
  EXPECT_THAT(calls().at(2), HasSubstr("|--array=0-1|"));
  std::vector<std::size_t> seen;
  for (auto script : done->scripts)
    for (const auto& line : lines_of(script.replace_extension(".jobs")))
      seen.push_back(std::stoul(line));
  EXPECT_EQ(seen, request_.jobs);
}

TEST_F(SlurmEngine, a_limit_of_parallel_tasks_holds_over_several_arrays) {
  request_.jobs = {0, 1, 2, 3, 4, 5};
  request_.options.max_parallel = 2;
  ASSERT_TRUE(submit_to_slurm(request_));
  EXPECT_THAT(calls().at(0), HasSubstr("|--array=0-4%2|"));
  EXPECT_THAT(calls().at(0), Not(HasSubstr("--dependency")));
  EXPECT_THAT(calls().at(1), HasSubstr("|--array=0-0%2|--dependency=afterany:1|"));
}

TEST_F(SlurmEngine, a_second_submission_leaves_the_scripts_of_the_first) {
  const auto first = submit_to_slurm(request_);
  ASSERT_TRUE(first);
  const auto text = test::bytes_of(first->scripts.at(0));
  const auto second = submit_to_slurm(request_);
  ASSERT_TRUE(second);
  EXPECT_NE(first->scripts, second->scripts);
  EXPECT_EQ(test::bytes_of(first->scripts.at(0)), text);
}

TEST_F(SlurmEngine, a_cluster_name_after_the_id_is_not_part_of_it) {
  write_program(bin_ / "sbatch", "echo '42;cluster'");
  const auto done = submit_to_slurm(request_);
  ASSERT_TRUE(done) << to_text(done.error());
  EXPECT_THAT(done->job_ids, ElementsAre("42"));
}

TEST_F(SlurmEngine, what_sbatch_says_is_in_the_refusal) {
  write_program(bin_ / "sbatch",
                "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1");
  const auto r = refusal();
  EXPECT_EQ(r.code, RefusalCode::slurm_failed);
  EXPECT_EQ(exit_code_of(r.code), ExitCode::unfit_environment);
  EXPECT_THAT(r.what, HasSubstr("invalid partition specified: x"));
  EXPECT_FALSE(r.next.empty());
  write_program(bin_ / "sbatch", "echo surprise");
  EXPECT_THAT(refusal().what, HasSubstr("\"surprise\" instead of a job id"));
}

TEST_F(SlurmEngine, a_refusal_half_way_cancels_what_was_submitted) {
  request_.jobs = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  write_program(bin_ / "sbatch",
                "n=" + (scratch_ / "n").string() +
                    "; echo x >>$n; [ $(wc -l <$n) -lt 3 ] || { echo no more >&2; exit 1; }; "
                    "echo 1$(wc -l <$n)");
  auto r = refusal();
  EXPECT_EQ(r.code, RefusalCode::slurm_failed);
  EXPECT_THAT(r.what, HasSubstr("no more"));
  EXPECT_THAT(r.what, HasSubstr("cancelled: 11 12"));
  EXPECT_THAT(lines_of(scratch_ / "cancelled"), ElementsAre("11 12"));
  fs::remove(scratch_ / "n");
  write_program(bin_ / "scancel", "exit 1");
  EXPECT_THAT(refusal().next, HasSubstr("scancel 11 12"));
}

TEST_F(SlurmEngine, without_slurm_nothing_is_written) {
  ::setenv("PATH", (scratch_ / "nowhere").c_str(), 1);
  const auto r = refusal();
  EXPECT_EQ(r.code, RefusalCode::slurm_failed);
  EXPECT_THAT(r.what, HasSubstr("not on PATH"));
  EXPECT_FALSE(fs::exists(request_.folder));
  EXPECT_EQ(slurm_states({"1"}).error().code, RefusalCode::slurm_failed);
}

TEST_F(SlurmEngine, what_cannot_be_handed_on_faithfully_is_refused_before_any_write) {
  const auto good = request_;
  const std::vector<std::function<void()>> wrong = {
      [&] { request_.jobs.clear(); },
      [&] {
        request_.jobs = {1, 2, 1};
      },
      [&] { request_.campaign = "a\n#"; },
      [&] { request_.options.extra = {"--comment=a\nb"}; },
      [&] { request_.options.max_parallel = -1; },
      [&] {
        request_.environment = {{"A=B; rm", "x"}};
      },
      [&] {
        request_.environment = {{"1A", "x"}};
      },
      [&] { request_.program = "hebe"; },
      [&] { request_.folder = scratch_ / "back\\slash"; },
  };
  for (const auto& change : wrong) {
    request_ = good;
    change();
    EXPECT_EQ(refusal().code, RefusalCode::bad_argument);
    EXPECT_FALSE(fs::exists(request_.folder));
    EXPECT_FALSE(fs::exists(scratch_ / "calls"));
  }
}

TEST_F(SlurmEngine, a_cluster_without_arrays_is_refused) {
  for (const char* config : {"MaxArraySize = 0", "MaxArraySize = x", "Other = 5"}) {
    write_program(bin_ / "scontrol", "echo '" + std::string(config) + "'");
    EXPECT_EQ(refusal().code, RefusalCode::slurm_failed) << config;
  }
}

TEST_F(SlurmEngine, states_of_an_array_are_one_word_and_an_unknown_id_is_gone) {
  write_program(bin_ / "squeue", "printf '1 PENDING\\n1 RUNNING\\n1 COMPLETED\\n2 COMPLETED\\n2 "
                                 "PENDING\\n3 COMPLETED\\n3 FAILED\\n4 COMPLETED\\n99 RUNNING\\n'");
  const auto states = slurm_states({"1", "2", "3", "4", "5"});
  ASSERT_TRUE(states) << to_text(states.error());
  EXPECT_EQ(
      *states,
      (std::map<std::string, std::string>{
          {"1", "RUNNING"}, {"2", "PENDING"}, {"3", "FAILED"}, {"4", "COMPLETED"}, {"5", "GONE"}}));
}

} // namespace
} // namespace hebe::campaign
