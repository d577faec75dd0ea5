#include "campaign/submission.hpp"

#include "core/command.hpp"
#include "core/crash_point.hpp"
#include "evidence/analysis_store.hpp"
#include "evidence/derived_analysis.hpp"
#include "evidence/ladder_analysis.hpp"
#include "evidence/study_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace hebe::campaign {
namespace {

std::int64_t now_us() { return RealClock().wall_us(); }

std::unexpected<Refusal> submitted_before(const FrozenCampaign& campaign,
                                          const CampaignState& state) {
  const auto& last = state.submissions.back();
  std::string jobs;
  for (const auto& id : last.slurm_jobs) jobs += (jobs.empty() ? ", Slurm job " : ", ") + id;
  return refuse(
      RefusalCode::already_submitted,
      fmt::format("the campaign was submitted at {} (engine {}{}); {} of {} jobs are sealed",
                  utc_text(last.at_us), last.engine, jobs, state.count(JobState::sealed),
                  state.jobs.size()),
      "go on with `hebe resume " + campaign.id + "`", campaign.directory.string());
}

std::unexpected<Refusal> submitter_at_work(const FrozenCampaign& campaign) {
  return refuse(RefusalCode::already_submitted, "another process is submitting this campaign now",
                "watch it with `hebe queue-status " + campaign.id + " --watch`",
                campaign.directory.string());
}

// What a study is analysed with: it must be there before minutes are measured.
Result<evidence::StoredRecord> qualification_of(const evidence::DataRoot& root,
                                                const FrozenCampaign& campaign) {
  const auto id = campaign.design.at("qualification").get<std::string>();
  const auto file = evidence::kernel_qualification_file(root, id);
  std::error_code ec;
  if (!std::filesystem::exists(file, ec))
    return refuse(RefusalCode::not_found,
                  "the qualification that the study was frozen from is gone",
                  "restore it from a copy", file.string());
  return evidence::load_record(file, evidence::kKernelQualification);
}

class Submitter {
public:
  Submitter(const evidence::DataRoot& root, const FrozenCampaign& campaign,
            const SubmitRequest& request, const JobCallbacks& callbacks, Journal journal,
            JobLocks& locks)
      : root_(root), campaign_(campaign), request_(request), callbacks_(callbacks),
        journal_(std::move(journal)), locks_(locks) {}

  Result<SubmitOutcome> run() {
    HEBE_CHECK(may_submit());
    HEBE_CHECK(check_integrity(root_, campaign_, journal_.state()));
    if (!campaign_.design.is_null()) HEBE_CHECK(qualification_of(root_, campaign_));
    if (request_.accept_clock) HEBE_CHECK(write_down(Json::array()));
    HEBE_CHECK(Reconciler{root_, campaign_, journal_, locks_, request_.work.sealer,
                          request_.work.ingest, callbacks_}
                   .all_jobs());
    SubmitOutcome outcome;
    outcome.engine = engine();
    const auto before = journal_.state().count(JobState::sealed);
    if (journal_.state().pending() > 0) {
      if (outcome.engine == "slurm") {
        HEBE_TRY(outcome.slurm, to_slurm());
      } else {
        HEBE_TRY(outcome.work, locally());
      }
    }
    HEBE_CHECK(journal_.refresh());
    outcome.work.sealed_now = journal_.state().count(JobState::sealed) - before;
    HEBE_TRY(outcome.analysis, finish_campaign(root_, campaign_, journal_));
    outcome.state = journal_.state();
    return outcome;
  }

private:
  std::string engine() const {
    if (!request_.engine.empty()) return request_.engine;
    const auto& before = journal_.state().submissions;
    return before.empty() ? "local" : before.back().engine;
  }

  Status may_submit() const {
    const auto& state = journal_.state();
    if (!request_.resume && !state.submissions.empty()) return submitted_before(campaign_, state);
    if (request_.devices.size() > 1 && campaign_.study)
      return refuse(RefusalCode::bad_argument, "a study is measured on one board",
                    "give one --device, or plan the campaign with session = \"free\"",
                    campaign_.directory.string());
    // Tasks that still wait or run in Slurm would be given the same jobs again.
    bool slurm = engine() == "slurm";
    for (const auto& submission : state.submissions) slurm = slurm || submission.engine == "slurm";
    if (!slurm) return {};
    HEBE_TRY(const auto living, living_slurm_jobs(campaign_.id));
    if (living.empty()) return {};
    return refuse(RefusalCode::already_submitted,
                  fmt::format("Slurm job {} of this campaign waits or runs", living.front()),
                  "wait for it, or `scancel " + living.front() + "`, then resume",
                  campaign_.directory.string());
  }

  Status write_down(Json slurm_jobs) {
    Json event{{"event", "submitted"},
               {"engine", engine()},
               {"pending", journal_.state().pending()},
               {"argv", request_.work.argv}};
    if (!slurm_jobs.empty()) event["slurm_jobs"] = std::move(slurm_jobs);
    if (request_.accept_clock) event["clock_accepted"] = true;
    crash_point("submit: write down");
    return journal_.append(std::move(event), now_us());
  }

  Result<WorkOutcome> locally() {
    HEBE_CHECK(write_down(Json::array()));
    crash_point("submit: begin");
    if (request_.devices.size() <= 1)
      return work_on_reconciled(root_, campaign_, request_.work, callbacks_);
    return side_by_side();
  }

  // One process a board: a board's process is then the only one that its meter sees.
  Result<WorkOutcome> side_by_side() {
    std::vector<std::optional<Result<CommandResult>>> ends(request_.devices.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < ends.size(); ++i)
        threads.emplace_back([&, i] {
          std::vector<std::string> argv{"/proc/self/exe",    "--data-root", root_.path().string(),
                                        "campaign-work",     campaign_.id,  "--device",
                                        request_.devices[i], "--quiet"};
          argv.insert(argv.end(), request_.worker_options.begin(), request_.worker_options.end());
          constexpr Seconds kAMonth{30 * 86400.0};
          ends[i].emplace(run_command(std::move(argv), kAMonth, callbacks_.interrupted));
        });
    }
    WorkOutcome outcome;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      auto& end = *ends[i];
      if (!end) {
        outcome.refusals.push_back(end.error());
      } else if (end->exit == static_cast<int>(ExitCode::interrupted)) {
        outcome.refusals.push_back({RefusalCode::interrupted, "interrupted", {}, "resume", {}});
      } else if (end->exit > static_cast<int>(ExitCode::claim_fails) &&
                 end->exit != static_cast<int>(ExitCode::inconclusive)) {
        outcome.refusals.push_back({RefusalCode::worker_failed,
                                    fmt::format("the process of {} ended with exit code {}: {}",
                                                request_.devices[i], end->exit, end->err),
                                    "--device " + request_.devices[i],
                                    "see what it said, then resume",
                                    {}});
      }
    }
    return outcome;
  }

  Result<SlurmSubmission> to_slurm() {
    SlurmRequest r;
    r.program = request_.program;
    r.data_root = root_.path();
    r.folder = campaign_.directory / "slurm";
    HEBE_CHECK(check_inside(root_.path(), r.folder));
    r.campaign = campaign_.id;
    for (std::size_t i = 0; i < campaign_.jobs.size(); ++i)
      if (journal_.state().jobs[i].pending()) r.jobs.push_back(i);
    r.one_task = campaign_.study;
    r.device = request_.work.machine.selector;
    r.options = request_.slurm;
    r.environment = request_.slurm_environment;
    crash_point("submit: to Slurm");
    HEBE_TRY(auto submission, submit_to_slurm(r));
    Json ids = Json::array();
    for (const auto& id : submission.job_ids) ids.push_back(id);
    HEBE_CHECK(write_down(std::move(ids)));
    return submission;
  }

  const evidence::DataRoot& root_;
  const FrozenCampaign& campaign_;
  const SubmitRequest& request_;
  const JobCallbacks& callbacks_;
  Journal journal_;
  JobLocks& locks_;
};

} // namespace

Result<SubmitOutcome> submit_campaign(const evidence::DataRoot& root,
                                      const FrozenCampaign& campaign, const SubmitRequest& request,
                                      const JobCallbacks& callbacks) {
  HEBE_CHECK(root.initialise());
  HEBE_TRY(auto locks, JobLocks::open(campaign));
  HEBE_TRY(const bool alone, locks.try_lock_submission());
  if (!alone) return submitter_at_work(campaign);
  HEBE_TRY(auto journal, Journal::open(campaign));
  return Submitter(root, campaign, request, callbacks, std::move(journal), locks).run();
}

Result<std::string> finish_campaign(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                                    Journal& journal) {
  HEBE_CHECK(journal.refresh());
  const auto& state = journal.state();
  if (state.pending() > 0) return std::string();
  // Made again where it was lost: it is a function of the runs.
  const auto whole_as_stored = [&](const std::string& id) {
    return !id.empty() && evidence::load_analysis(root, id).has_value();
  };
  if (whole_as_stored(state.analysis) && (!campaign.ladder || whole_as_stored(state.ladder)) &&
      (campaign.design.is_null() || whole_as_stored(state.study)))
    return state.analysis;
  std::vector<evidence::CampaignJob> jobs;
  for (std::size_t i = 0; i < campaign.jobs.size(); ++i) {
    const auto run = root.path() / state.jobs[i].run;
    HEBE_TRY(const auto point, evidence::point_analysis(run));
    crash_point("finish: store a point analysis");
    HEBE_CHECK(evidence::store_analysis(root, point));
    jobs.push_back({campaign.jobs[i].id, run, {}});
  }
  HEBE_TRY(const auto whole_campaign, evidence::campaign_analysis(campaign.id, jobs));
  crash_point("finish: store the campaign analysis");
  HEBE_TRY(const auto stored, evidence::store_analysis(root, whole_campaign));
  Json event{{"event", "finished"}, {"analysis", stored.id}};
  if (campaign.ladder) {
    std::vector<std::pair<std::string, std::filesystem::path>> steps;
    for (const auto& job : jobs) steps.emplace_back(job.job_id, *job.run);
    HEBE_TRY(const auto ladder, evidence::ladder_analysis(campaign.id, steps));
    crash_point("finish: store the ladder");
    HEBE_TRY(const auto kept, evidence::store_analysis(root, ladder));
    event["ladder"] = kept.id;
  }
  if (!campaign.design.is_null()) {
    std::vector<std::pair<std::string, std::filesystem::path>> runs;
    for (const auto& job : jobs) runs.emplace_back(job.job_id, *job.run);
    HEBE_TRY(const auto qualification, qualification_of(root, campaign));
    HEBE_TRY(const auto study,
             evidence::study_analysis(campaign.id, campaign.design, qualification.json, runs));
    crash_point("finish: store the study");
    HEBE_TRY(const auto kept, evidence::store_analysis(root, study));
    event["study"] = kept.id;
  }
  crash_point("finish: write down");
  HEBE_CHECK(journal.append(std::move(event), now_us()));
  return stored.id;
}

ExitCode exit_code_of(const CampaignState& state) {
  bool inconclusive = false;
  for (const auto& job : state.jobs) {
    if (job.state != JobState::sealed) return ExitCode::unfit_environment;
    if (job.exit == static_cast<int>(ExitCode::claim_fails)) return ExitCode::claim_fails;
    inconclusive = inconclusive || job.exit == static_cast<int>(ExitCode::inconclusive);
  }
  return inconclusive ? ExitCode::inconclusive : ExitCode::done;
}

} // namespace hebe::campaign
