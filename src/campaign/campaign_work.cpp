#include "campaign/campaign_work.hpp"

#include "campaign/session.hpp"
#include "core/crash_point.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

std::int64_t now_us() { return RealClock().wall_us(); }

// Ends the worker: another job would meet the same. What is one job's own only stops that job.
bool stops_the_worker(RefusalCode code) {
  switch (code) {
  case RefusalCode::gate_failed:
  case RefusalCode::not_stable:
  case RefusalCode::throttled:
  case RefusalCode::wrong_output:
  case RefusalCode::meter_gap:
  case RefusalCode::meter_disagreement:
  case RefusalCode::bad_spec:
  case RefusalCode::below_tier_minimum:
  case RefusalCode::abi_mismatch:
    return false;
  default:
    return true;
  }
}

class CampaignWorker {
public:
  CampaignWorker(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                 const WorkRequest& request, const JobCallbacks& callbacks, Journal journal,
                 JobLocks locks)
      : root_(root), campaign_(campaign), request_(request), callbacks_(callbacks),
        journal_(std::move(journal)), locks_(std::move(locks)) {}

  Result<WorkOutcome> run() {
    HEBE_CHECK(identity_faults_only());
    HEBE_TRY(machine_, Machine::open(request_.machine));
    HEBE_CHECK(fits_the_plan());
    HEBE_TRY(const auto session, session_of(*machine_, request_.program_sha256));
    if (!journal_.state().sessions.empty())
      HEBE_CHECK(check_same_session(session_from(journal_.state().sessions.front()), session,
                                    campaign_.study, campaign_.directory.string()));
    lease_ = request_.lease;
    if (lease_ == nullptr) {
      HEBE_TRY(own_lease_, BoardLease::acquire(root_, *machine_, "campaign " + campaign_.id));
      lease_ = &*own_lease_;
    }
    HEBE_CHECK(board_is_free(*machine_));
    auto circumstances = who();
    circumstances["event"] = "session";
    circumstances["identity"] = to_json(session);
    HEBE_CHECK(journal_.append(circumstances, now_us()));
    // Two that begin at once both found no session to compare with: the first line decides.
    HEBE_CHECK(check_same_session(session_from(journal_.state().sessions.front()), session,
                                  campaign_.study, campaign_.directory.string()));
    return work();
  }

private:
  Status identity_faults_only() const {
    for (const auto& f : request_.machine.faults)
      if (!gpu::changes_identity(f.kind))
        return refuse(
            RefusalCode::bad_argument,
            "a frozen campaign cannot be given the fault " + gpu::to_string(f),
            "faults of the simulated board are part of a plan: give them to campaign-plan",
            "--sim-fault");
    return {};
  }

  Status fits_the_plan() const {
    const bool simulated = machine_->simulated();
    if (simulated != campaign_.simulated())
      return refuse(RefusalCode::no_device,
                    fmt::format("the campaign was planned for a {} GPU, this one is {}",
                                campaign_.simulated() ? "simulated" : "real",
                                simulated ? "simulated" : "real"),
                    campaign_.simulated() ? "use --device sim"
                                          : "run it where that GPU is (--device), or plan it anew",
                    campaign_.directory.string());
    if (const auto arch = campaign_.device.at("arch").get<int>(); arch != machine_->info().arch)
      return refuse(RefusalCode::no_device,
                    fmt::format("the campaign was compiled for sm_{}, this GPU is sm_{}", arch,
                                machine_->info().arch),
                    "run it on such a GPU, or plan it anew with --device here",
                    campaign_.directory.string());
    return {};
  }

  Json who() const {
    Json by{{"host", host_name()}, {"pid", ::getpid()}, {"argv", request_.argv}};
    for (const char* name : {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
                             "SLURM_RESTART_COUNT", "SLURMD_NODENAME"})
      if (const auto hit = request_.variables.find(name); hit != request_.variables.end())
        by[name] = hit->second;
    return {{"by", by}};
  }

  Result<WorkOutcome> work() {
    WorkOutcome outcome;
    auto wanted = request_.only;
    if (wanted.empty())
      for (std::size_t i = 0; i < campaign_.jobs.size(); ++i) wanted.push_back(i);
    for (const auto index : wanted) {
      if (!journal_.state().jobs[index].pending()) continue;
      HEBE_TRY(const bool ours, locks_.try_lock(index));
      if (!ours) {
        ++outcome.held_elsewhere;
        if (campaign_.study) break; // jobs of a study are measured in order
        continue;
      }
      auto done = one_job(index, outcome);
      locks_.unlock(index);
      if (done) continue;
      outcome.refusals.push_back(std::move(done).error());
      const auto code = outcome.refusals.back().code;
      if (campaign_.study || stops_the_worker(code)) break;
    }
    return outcome;
  }

  Status one_job(std::size_t index, WorkOutcome& outcome) {
    HEBE_CHECK(journal_.refresh()); // sealed by another while we waited?
    if (!journal_.state().jobs[index].pending()) return {};
    if (journal_.state().jobs[index].attempts > 0) { // its process may have died after it sealed
      HEBE_CHECK(reconciler().locked_job(index));
      if (!journal_.state().jobs[index].pending()) return {};
    }
    const auto& id = campaign_.jobs[index].id;
    if (request_.job_begins)
      request_.job_begins(id, journal_.state().count(JobState::sealed), campaign_.jobs.size());
    HEBE_CHECK(lease_->describe(fmt::format("campaign {}, job {}", campaign_.id, id)));
    crash_point("run: begin a job");
    HEBE_CHECK(journal_.append({{"event", "started"}, {"job", id}}, now_us()));
    auto done = measure_and_seal(index);
    if (!done) {
      const auto& r = done.error();
      Json event{{"event", r.code == RefusalCode::interrupted ? "interrupted" : "refused"},
                 {"job", id},
                 {"code", name_of(r.code)},
                 {"what", r.what},
                 {"where", r.where}};
      // A full disk may refuse this line as well: the job is pending either way.
      if (auto told = journal_.append(std::move(event), now_us()); !told && callbacks_.notice)
        callbacks_.notice("the journal could not be written: " + told.error().what);
      return std::unexpected(std::move(done).error());
    }
    ++outcome.sealed_now;
    return {};
  }

  Status measure_and_seal(std::size_t index) {
    HEBE_TRY(const auto job, load_job(campaign_, index));
    HEBE_CHECK(prepare(job));
    HEBE_CHECK(open_board_for(job));
    auto circumstances = circumstances_of();
    HEBE_TRY(circumstances.meter_qualification, qualified_meter(root_, *machine_, job.plan.tier));
    HEBE_TRY(circumstances.response,
             known_response(root_, *machine_, job.plan.tier, job.plan.window));
    auto callbacks = callbacks_;
    callbacks.may_continue = [this] { return locks_.still_ours(); };
    HEBE_TRY(auto parts, measure_job(job.plan, job.plan_id, *prepared_, *machine_, *lease_,
                                     circumstances, callbacks));
    parts.campaign = evidence::JobIdentity{campaign_.id, job.id};
    crash_point("run: measured");
    HEBE_CHECK(journal_.refresh());
    HEBE_CHECK(locks_.still_ours());
    if (!journal_.state().jobs[index].pending()) return {}; // sealed by another: one is enough
    // A clock set back meanwhile must not hide the run from those who look from the first day on.
    HEBE_TRY(const auto captured,
             evidence::capture_run(root_, parts, journal_.not_before_last(now_us())));
    crash_point("run: captured");
    const auto run =
        request_.sealer ? request_.sealer(captured) : evidence::seal_captured(root_, captured);
    crash_point("run: sealed");
    if (!run && run.error().code == RefusalCode::not_found) // `hebe ingest` by hand was faster
      return found_sealed(index);
    if (!run) return std::unexpected(run.error());
    HEBE_TRY(auto event, sealed_event(root_, job.id, run->directory));
    return journal_.append(std::move(event), now_us());
  }

  Status found_sealed(std::size_t index) {
    HEBE_CHECK(reconciler().locked_job(index));
    if (!journal_.state().jobs[index].pending()) return {};
    return refuse(RefusalCode::io_failed, "what was captured is gone and no run was made of it",
                  "see what removes it, then resume", campaign_.directory.string());
  }

  Reconciler reconciler() {
    return {root_, campaign_, journal_, locks_, request_.sealer, request_.ingest, callbacks_};
  }

  // Jobs of one subject follow each other: its cubin, inputs and oracle are checked once.
  Status prepare(const FrozenJob& job) {
    HEBE_TRY(auto key, content_id({job.plan.subject, job.plan.subject_b, job.plan.inputs,
                                   job.oracle, job.oracle_b}));
    if (key == prepared_key_) return {};
    prepared_key_.clear();
    HEBE_TRY(prepared_, prepared_from_store(root_, job));
    prepared_key_ = std::move(key);
    return {};
  }

  // A device context of its own, and for the simulated board the plan's seed and faults, as
  // `hebe run-…` has them.
  Status open_board_for(const FrozenJob& job) {
    auto request = request_.machine;
    if (!machine_->simulated()) request.selector = machine_->info().uuid;
    request.seed = job.plan.seed;
    for (const auto& text : job.plan.device.value("faults", Json::array())) {
      HEBE_TRY(const auto fault, gpu::fault_from(text.get<std::string>()));
      request.faults.push_back(fault);
    }
    machine_.reset(); // the context of the job before
    HEBE_TRY(machine_, Machine::open(request));
    return {};
  }

  Circumstances circumstances_of() const {
    Circumstances c;
    c.argv = request_.argv;
    if (machine_->simulated())
      c.no_argv = "a job of a simulated campaign: its record is the same whichever process made "
                  "it; the campaign's journal names that process";
    c.variables = request_.variables;
    c.no_toolchain = "not used: compiled when the campaign was planned, see subject.compile in "
                     "plan.json";
    c.redact = request_.redact;
    return c;
  }

  const evidence::DataRoot& root_;
  const FrozenCampaign& campaign_;
  const WorkRequest& request_;
  const JobCallbacks& callbacks_;
  Journal journal_;
  JobLocks locks_;
  std::unique_ptr<Machine> machine_;
  std::optional<BoardLease> own_lease_;
  BoardLease* lease_ = nullptr;
  std::optional<PreparedArms> prepared_;
  std::string prepared_key_;
};

// Jobs of a study are measured in order: a single one only when those before it are sealed.
Status in_order(const FrozenCampaign& campaign, const CampaignState& state,
                const std::vector<std::size_t>& only) {
  if (!campaign.study || only.empty()) return {};
  for (std::size_t i = 0; i < only.front(); ++i)
    if (state.jobs[i].pending())
      return refuse(
          RefusalCode::bad_argument,
          fmt::format("job \"{}\" of this study comes before and is pending", campaign.jobs[i].id),
          "work on the study as a whole: without --task", campaign.directory.string());
  return {};
}
} // namespace

Result<WorkOutcome> work_on_reconciled(const evidence::DataRoot& root,
                                       const FrozenCampaign& campaign, const WorkRequest& request,
                                       const JobCallbacks& callbacks) {
  HEBE_TRY(auto journal, Journal::open(campaign));
  HEBE_TRY(auto locks, JobLocks::open(campaign));
  HEBE_CHECK(in_order(campaign, journal.state(), request.only));
  if (journal.state().pending() == 0) return WorkOutcome{};
  return CampaignWorker(root, campaign, request, callbacks, std::move(journal), std::move(locks))
      .run();
}

Result<WorkOutcome> work_on_campaign(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                                     const WorkRequest& request, const JobCallbacks& callbacks) {
  HEBE_CHECK(root.initialise());
  if (request.only.empty()) { // of a single task its own job is looked for, under its lock
    HEBE_TRY(auto journal, Journal::open(campaign));
    HEBE_TRY(auto locks, JobLocks::open(campaign));
    HEBE_CHECK(Reconciler{root, campaign, journal, locks, request.sealer, request.ingest, callbacks}
                   .all_jobs());
  }
  return work_on_reconciled(root, campaign, request, callbacks);
}

} // namespace hebe::campaign
