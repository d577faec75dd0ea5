// Facts about a whole job: kernels/vector_add.py through the real compile worker, on the simulated
// GPU.
#include "campaign/job.hpp"

#include "evidence/verify.hpp"

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"
#include "../data/support/sim_gpu.hpp"

namespace hebe::campaign {
namespace {
namespace fs = std::filesystem;

JobRequest request_in(const test::ScratchFolder& scratch, std::uint64_t seed = 1) {
  JobRequest r;
  r.subject.file = HEBE_SOURCE_DIR "/kernels/vector_add.py";
  r.subject.parameters = {{"n", 5000}};
  r.tier = measure::tier_named("smoke-v1").value();
  r.pairs = 2;
  r.window = Seconds(0.5);
  r.warm_up = Seconds(1);
  r.seed = seed;
  r.machine.selector = "sim";
  r.machine.seed = seed;
  r.worker = {{HEBE_PYTHON, "-m", "hebe.worker"},
              {{"PYTHONPATH", HEBE_SOURCE_DIR "/python"}, {"PYTHONDONTWRITEBYTECODE", "1"}}};
  r.scratch = scratch.path();
  r.argv = {"hebe", "run-aa"};
  return r;
}

// One worker's start and compile take seconds: the facts about the whole way share three jobs.
TEST(Job, one_seed_gives_one_seal_in_any_data_root_and_another_seed_another) {
  const test::ScratchFolder scratch, first, second;
  const evidence::DataRoot root(first.path()), other_root(second.path());
  const auto a = run_job(root, request_in(scratch), {});
  ASSERT_TRUE(a) << a.error().what;
  EXPECT_TRUE(a->simulated);
  EXPECT_FALSE(a->analysis.qualified);

  const auto report = evidence::verify_run(a->run.directory).value();
  EXPECT_TRUE(report.valid()) << (report.problems.empty() ? "" : report.problems[0].what);
  EXPECT_TRUE(report.not_checked.empty()); // the cubin lies in the root
  EXPECT_EQ(root.newest_run(), a->run.directory);
  EXPECT_TRUE(fs::is_empty(scratch.path())); // nothing is left

  // The same again, elsewhere, from a request with a lease file and a cache of its own.
  const auto b = run_job(other_root, request_in(scratch), {});
  ASSERT_TRUE(b) << b.error().what;
  EXPECT_EQ(a->run.seal, b->run.seal);
  EXPECT_EQ(a->plan_id, b->plan_id);

  const auto c = run_job(other_root, request_in(scratch, 2), {});
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_NE(c->run.seal, a->run.seal);
  EXPECT_NE(c->plan_id, a->plan_id);
}

TEST(Job, a_preview_freezes_the_same_plan_and_records_nothing) {
  const test::ScratchFolder scratch, folder;
  const evidence::DataRoot root(folder.path());
  const auto preview = preview_job(root, request_in(scratch), {});
  ASSERT_TRUE(preview) << preview.error().what;
  EXPECT_EQ(preview->plan_id, content_id(preview->plan).value());
  EXPECT_FALSE(root.newest_run());
  EXPECT_FALSE(fs::exists(root.leases()));
  EXPECT_GT(preview->estimated.value(), 2);
}

// A worker that must not be reached.
JobRequest unreachable(const test::ScratchFolder& scratch) {
  auto r = request_in(scratch);
  r.worker = {{"/bin/false"}, {}};
  return r;
}

TEST(Job, what_can_be_refused_early_costs_no_compile) {
  const test::ScratchFolder scratch, folder;
  const evidence::DataRoot root(folder.path());
  auto below = unreachable(scratch);
  below.pairs = 1;
  EXPECT_EQ(run_job(root, below, {}).error().code, RefusalCode::below_tier_minimum);
  EXPECT_TRUE(fs::is_empty(folder.path())); // not even the layout

  for (const auto& [fault, code] : {std::pair{"mig", RefusalCode::mig_enabled},
                                    std::pair{"foreign_process", RefusalCode::gpu_busy},
                                    std::pair{"nvml_lost", RefusalCode::device_error}}) {
    auto request = unreachable(scratch);
    request.machine.faults = test::faults_from({fault});
    const auto outcome = run_job(root, request, {});
    ASSERT_FALSE(outcome) << fault;
    EXPECT_EQ(name_of(outcome.error().code), name_of(code)) << outcome.error().what;
  }
  EXPECT_NE(run_job(root, unreachable(scratch), {}).error().code, RefusalCode::internal);
  EXPECT_FALSE(root.newest_run());
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(Job, a_leased_gpu_is_refused_before_the_compile) {
  const test::ScratchFolder scratch, folder;
  const evidence::DataRoot root(folder.path());
  const auto held =
      Lease::acquire(root.leases(), gpu::sim_device_info().uuid, "node17", "now", "another run")
          .value();
  const auto outcome = run_job(root, unreachable(scratch), {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, RefusalCode::lease_held);
  EXPECT_NE(outcome.error().what.find("another run"), std::string::npos);
}

TEST(Job, a_dead_worker_ends_the_job_with_the_worker_s_refusal) {
  const test::ScratchFolder scratch, folder;
  const auto outcome = run_job(evidence::DataRoot(folder.path()), unreachable(scratch), {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, RefusalCode::worker_failed);
}

TEST(Job, a_half_written_run_is_told_and_left_alone) {
  const test::ScratchFolder scratch, folder;
  const evidence::DataRoot root(folder.path());
  const auto half = root.runs() / "2026/01/01/.unsealed-20260101T000000Z-aa-0-1";
  fs::create_directories(half);
  std::vector<std::string> told;
  (void)run_job(root, unreachable(scratch),
                {{}, {}, [&](const std::string& line) { told.push_back(line); }});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find(half.string()), std::string::npos);
  EXPECT_TRUE(fs::exists(half));
}

// A wrong output is in measure_workload_test: a job costs a worker's start and a compile.
TEST(Job, what_goes_wrong_on_the_gpu_leaves_no_record) {
  const test::ScratchFolder scratch, folder;
  const evidence::DataRoot root(folder.path());
  auto request = request_in(scratch);
  request.machine.faults = test::faults_from({"lease_removed@6"});
  const auto lost = run_job(root, request, {});
  ASSERT_FALSE(lost);
  EXPECT_EQ(name_of(lost.error().code), name_of(RefusalCode::lease_lost)) << lost.error().what;
  int asked = 0;
  const auto interrupted =
      run_job(root, request_in(scratch), {[&] { return ++asked > 5; }, {}, {}});
  ASSERT_FALSE(interrupted);
  EXPECT_EQ(interrupted.error().code, RefusalCode::interrupted);
  EXPECT_FALSE(root.newest_run());
  EXPECT_TRUE(root.unsealed().empty());
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

} // namespace
} // namespace hebe::campaign
