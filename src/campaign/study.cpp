#include "campaign/study.hpp"

#include "campaign/positive_control.hpp"
#include "campaign/scratch_folder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {
namespace {

// A copy cannot be evidence for anything but itself: a short A/A of it gives its joules.
JobSpec floor_job(const JobSpec& protocol) {
  auto job = protocol;
  job.kind = "aa";
  job.tier = measure::tier_named("smoke-v1").value();
  job.pairs = 4;
  job.window = Seconds(protocol.tier.is_evidence ? 1 : job.tier.min_window.value());
  job.warm_up = Seconds(protocol.tier.is_evidence ? 5 : job.tier.min_warm_up.value());
  return job;
}

Status declares_traffic(const kernel::LaunchSpec& launch, const char* what) {
  if (!launch.has_reference)
    return refuse(RefusalCode::bad_spec,
                  fmt::format("{}: case \"{}\" has no reference", what, launch.name),
                  "give the case a reference: an unchecked kernel is not measured");
  if (launch.work && launch.work->read.count + launch.work->written.count > 0) return {};
  return refuse(RefusalCode::bad_spec,
                fmt::format("{}: case \"{}\" declares no traffic", what, launch.name),
                "give the case its work: bytes read and written");
}

class Study {
public:
  Study(const evidence::DataRoot& root, const StudyRequest& request, const JobCallbacks& callbacks)
      : root_(root), request_(request), spec_(request.spec), callbacks_(callbacks) {}

  /// Everything that can be said no to without a board.
  Status look_at_everything() {
    for (const auto* kind : {"aa", "ab"}) HEBE_CHECK(drafted(as_kind(kind)));
    HEBE_TRY(arms_, QualifiedArms::open(root_, request_.qualification, request_.find_case));
    if (arms_->name() != spec_.qualification)
      return refuse(RefusalCode::not_qualified,
                    fmt::format("study \"{}\" is of the qualification \"{}\", this record is of "
                                "\"{}\"",
                                spec_.name, spec_.qualification, arms_->name()),
                    "give a record of that qualification, or another study",
                    arms_->record().file.string());
    for (const auto& contrast : spec_.contrasts) HEBE_CHECK(arms_->check(contrast));
    if (spec_.control) {
      HEBE_TRY(control_, control_request(job_of(spec_.control->subject), spec_.control->fraction));
    }
    return {};
  }

  Status look_at_board() {
    HEBE_TRY(machine_, Machine::open(request_.job.machine));
    HEBE_CHECK(arms_->fit_for(machine_->simulated(), machine_->info().arch));
    if (!machine_->simulated() && !spec_.faults.empty())
      return refuse(RefusalCode::bad_spec,
                    "simulated.faults are of the simulated GPU, this one is "
                    "real",
                    "leave them out, or use --device sim");
    target_ = {machine_->simulated(), machine_->info().arch, request_.job.machine.faults};
    memory_ = machine_->memory();
    return {};
  }

  // Control and floor are compiled before the board is used: what is wrong with them must not be
  // found when minutes have been measured.
  Status look_at_other_cases() const {
    HEBE_TRY(const auto scratch, ScratchFolder::make(request_.job.scratch));
    CasePreparer preparer(
        {request_.job.worker, root_.path(), root_.cache(), scratch.path(), memory_});
    const auto compiled = [&](kernel::CaseRequest subject) {
      subject.arch = target_.arch;
      return preparer.compile(subject);
    };
    if (control_)
      for (const auto* subject : {&control_->subject, &*control_->subject_b}) {
        HEBE_TRY(const auto made, compiled(*subject));
        HEBE_CHECK(declares_traffic(made.launch, "control"));
      }
    if (spec_.floor) {
      HEBE_TRY(const auto made, compiled(*spec_.floor));
      HEBE_CHECK(declares_traffic(made.launch, "floor"));
      if (made.launch.work->read.count != made.launch.work->written.count)
        return refuse(RefusalCode::bad_spec,
                      fmt::format("floor: case \"{}\" reads {} bytes and writes {}: it is no copy",
                                  made.launch.name, made.launch.work->read.count,
                                  made.launch.work->written.count),
                      "name a case that writes what it reads, e.g. traffic-control at fraction 0");
    }
    return {};
  }

  Result<StudyOutcome> run() {
    HEBE_CHECK(look_at_everything());
    HEBE_CHECK(look_at_board());
    HEBE_CHECK(look_at_other_cases());
    StudyOutcome out;
    if (request_.dry_run) {
      out.estimated = estimated();
      return out;
    }
    HEBE_TRY(auto leased, lease_machine(root_, named("study"), std::move(machine_), callbacks_));
    if (control_) {
      HEBE_TRY(calibration_, calibrate(leased));
      out.calibration = calibration_->run;
    }
    HEBE_CHECK(arms_->keep(root_));
    HEBE_TRY(auto planned, plan_campaign(root_, campaign_spec(), plan_request()));
    out.campaign = std::move(planned.campaign);
    out.estimated = planned.estimated;
    leased.machine.reset(); // its context: each job has one of its own
    if (callbacks_.notice)
      callbacks_.notice(fmt::format("study {}: {} jobs, about {:.0f} s of GPU time; if it stops, "
                                    "go on with `hebe resume {}`",
                                    out.campaign.id, out.campaign.jobs.size(),
                                    out.estimated.value(), out.campaign.id));
    auto submit = request_.submit;
    submit.work.lease = &leased.lease;
    HEBE_TRY(out.submitted, submit_campaign(root_, out.campaign, submit, callbacks_));
    return out;
  }

  Result<JobOutcome> run_primary() {
    HEBE_CHECK(look_at_everything());
    HEBE_CHECK(look_at_board());
    HEBE_TRY(auto leased, lease_machine(root_, named("run"), std::move(machine_), callbacks_));
    HEBE_CHECK(arms_->keep(root_));
    auto job = request_.job;
    static_cast<JobSpec&>(job) = as_kind("ab");
    job.arms = [this](CasePreparer& preparer) {
      return arms_->prepared(preparer, spec_.contrasts.front());
    };
    return run_leased(root_, job, *leased.machine, leased.lease, callbacks_);
  }

private:
  JobSpec as_kind(const std::string& kind) const {
    auto job = spec_.protocol;
    job.kind = kind;
    if (kind != "aa") job.subject_b = kernel::CaseRequest{};
    return job;
  }

  JobRequest job_of(const kernel::CaseRequest& subject) const {
    auto out = request_.job;
    static_cast<JobSpec&>(out) = spec_.protocol;
    out.subject = subject;
    if (spec_.protocol.seed) out.seed = seed_for(std::to_string(*spec_.protocol.seed), "control");
    return out;
  }

  // For the lease and its notices.
  JobRequest named(const std::string& what) const {
    auto out = request_.job;
    static_cast<JobSpec&>(out) = spec_.protocol;
    out.kind = what;
    out.subject.file = spec_.name;
    return out;
  }

  Result<JobOutcome> calibrate(LeasedMachine& leased) const {
    if (callbacks_.notice) callbacks_.notice("the control's calibration, then the study's jobs");
    const auto request = calibration_request(*control_, spec_.control->fraction);
    HEBE_CHECK(drafted(request));
    return run_leased(root_, request, *leased.machine, leased.lease, callbacks_);
  }

  // The jobs in their order: the A/A floor first, the control last but for the copy.
  CampaignSpec campaign_spec() const {
    CampaignSpec out;
    out.name = spec_.name;
    out.study = true;
    out.arms = &*arms_;
    Json roles = Json::array();
    const auto add = [&](CampaignJobSpec job, const char* role) {
      if (spec_.protocol.seed && !job.job.seed)
        job.job.seed = seed_for(std::to_string(*spec_.protocol.seed), job.id);
      if (const auto hit = spec_.faults.find(job.id); hit != spec_.faults.end())
        job.faults = hit->second;
      roles.push_back({{"job", job.id}, {"role", role}});
      out.jobs.push_back(std::move(job));
    };
    const auto unseeded = [](JobSpec job) {
      job.seed.reset();
      return job;
    };
    const auto& first = spec_.contrasts.front();
    add({"aa", unseeded(as_kind("aa")), {}, QualifiedContrast{first.point, first.a, first.a}},
        "aa");
    for (std::size_t i = 0; i < spec_.contrasts.size(); ++i)
      add({job_id_of(spec_, i), unseeded(as_kind("ab")), {}, spec_.contrasts[i]},
          i == 0 ? "primary" : "contrast");
    if (control_)
      add({"control",
           *control_,
           {},
           {},
           control_prediction(*calibration_, spec_.control->fraction)},
          "control");
    if (spec_.floor) {
      auto job = unseeded(floor_job(spec_.protocol));
      job.subject = *spec_.floor;
      add({"floor", std::move(job), {}, {}}, "floor");
    }
    auto asked = spec_.json; // as it was overridden
    const auto& p = spec_.protocol;
    asked.update({{"tier", p.tier.name},
                  {"pairs", p.pairs},
                  {"window_s", p.window.value()},
                  {"warm_up_s", p.warm_up.value()},
                  {"energy_margin_percent", p.margins.energy_percent},
                  {"latency_margin_percent", p.margins.latency_percent}});
    constexpr std::uint64_t kLargestNumber = 1ULL << 53; // of JSON
    if (p.seed)
      asked["seed"] = *p.seed <= kLargestNumber ? Json(*p.seed) : Json(std::to_string(*p.seed));
    Json calibration = nullptr;
    if (calibration_)
      calibration = {{"run_id", calibration_->run.run_id}, {"seal", calibration_->run.seal}};
    out.design = {{"name", spec_.name},
                  {"description", spec_.description},
                  {"tier", spec_.protocol.tier.name},
                  {"qualification", arms_->record().id},
                  {"qualification_name", arms_->name()},
                  {"calibration", calibration},
                  {"jobs", roles},
                  {"spec", asked}};
    return out;
  }

  PlanRequest plan_request() const {
    PlanRequest r;
    r.target = target_;
    r.memory = memory_;
    r.worker = request_.job.worker;
    r.scratch = request_.job.scratch;
    r.interrupted = callbacks_.interrupted;
    return r;
  }

  Seconds estimated() const {
    Seconds out(0);
    const auto add = [&](const JobSpec& job) {
      if (const auto plan = drafted(job)) out = out + estimated_duration(*plan);
    };
    add(as_kind("aa"));
    for (std::size_t i = 0; i < spec_.contrasts.size(); ++i) add(as_kind("ab"));
    if (control_) add(*control_), add(calibration_request(*control_, spec_.control->fraction));
    if (spec_.floor) add(floor_job(spec_.protocol));
    return out;
  }

  const evidence::DataRoot& root_;
  const StudyRequest& request_;
  const StudySpec& spec_;
  const JobCallbacks& callbacks_;
  std::optional<QualifiedArms> arms_;
  std::unique_ptr<Machine> machine_;
  Target target_;
  Bytes memory_{0};
  std::optional<JobRequest> control_;
  std::optional<JobOutcome> calibration_;
};

} // namespace

Result<StudyOutcome> run_study(const evidence::DataRoot& root, const StudyRequest& request,
                               const JobCallbacks& callbacks) {
  return Study(root, request, callbacks).run();
}

Result<JobOutcome> run_contrast(const evidence::DataRoot& root, const StudyRequest& request,
                                const JobCallbacks& callbacks) {
  return Study(root, request, callbacks).run_primary();
}

Result<FrozenCampaign> pending_study(const evidence::DataRoot& root, const std::string& study) {
  std::optional<FrozenCampaign> newest;
  std::filesystem::file_time_type when{};
  std::error_code ec;
  for (const auto& directory : campaign_directories(root)) {
    if (!directory.filename().string().starts_with(study + "-")) continue;
    auto loaded = load_campaign(root, directory.filename().string());
    if (!loaded) continue; // damaged, or somebody else's: `queue-status` names it
    auto& campaign = *loaded;
    if (campaign.name != study || campaign.design.is_null()) continue;
    const auto state = Journal::glance(campaign);
    // All sealed and not analysed: its process died before the end.
    if (!state || (state->pending() == 0 && !state->study.empty())) continue;
    const auto frozen = std::filesystem::last_write_time(directory / "plan.json", ec);
    if (newest && frozen <= when) continue;
    when = frozen;
    newest = std::move(*loaded);
  }
  if (newest) return std::move(*newest);
  return refuse(RefusalCode::not_found, "no study \"" + study + "\" is unfinished here",
                "begin one with `hebe study`, or see `hebe queue-status`",
                root.campaigns().string());
}

} // namespace hebe::campaign
