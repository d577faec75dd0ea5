// Freezing a campaign (declared in campaign/frozen_campaign.hpp): each job compiled, checked,
// hashed and written below a temporary name, which the whole campaign then loses.
#include "campaign/frozen_campaign.hpp"
#include "campaign/job.hpp"
#include "campaign/scratch_folder.hpp"
#include "core/crash_point.hpp"
#include "core/files.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include <unistd.h>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

Result<std::string> canonical_line(const Json& j) {
  HEBE_TRY(auto text, canonical_json(j));
  return text + "\n";
}

// What is compiled once for all jobs that have it in common.
struct Compiled {
  PreparedCase prepared;
  Json oracle;
};

class Planner {
public:
  Planner(const evidence::DataRoot& root, const CampaignSpec& spec, const PlanRequest& request)
      : root_(root), spec_(spec), request_(request), store_(root.path()) {}

  Result<PlanOutcome> run() {
    HEBE_TRY(scratch_, ScratchFolder::make(request_.scratch));
    preparer_.emplace(Preparation{request_.worker, root_.path(), root_.cache(), scratch_->path(),
                                  request_.memory});
    HEBE_CHECK(begin_writing());
    PlanOutcome outcome;
    auto& jobs = outcome.campaign.jobs;
    for (std::size_t i = 0; i < spec_.jobs.size(); ++i) {
      if (request_.interrupted && request_.interrupted())
        return refuse(RefusalCode::interrupted, "interrupted; nothing was frozen", "plan it again");
      auto job = freeze_job(spec_.jobs[i]);
      if (!job) {
        job.error().where = fmt::format("jobs[{}] \"{}\"{}{}", i, spec_.jobs[i].id,
                                        job.error().where.empty() ? "" : ": ", job.error().where);
        return std::unexpected(std::move(job).error());
      }
      outcome.estimated = outcome.estimated + estimated_duration(job->plan);
      Json file{{"schema", "hebe.campaign.job/1"},
                {"id", job->id},
                {"oracle", job->oracle},
                {"plan", to_json(job->plan)}};
      if (!job->oracle_b.is_null()) file["oracle_b"] = job->oracle_b;
      HEBE_TRY(auto text, canonical_line(file));
      jobs.push_back({job->id, job->plan_id, sha256_hex(text)});
      for (int arm = 0; arm < 2; ++arm)
        for (const auto& [kind, digest] :
             measure::subject_of(job->plan, arm).at("artifacts").items())
          artifacts_.insert(digest.get<std::string>());
      for (const auto& oracle : {job->oracle, job->oracle_b})
        for (const auto& [name, made] : oracle.items())
          artifacts_.insert(made.at("sha256").get<std::string>());
      HEBE_CHECK(write_job(job->id, text)); // at once: memory does not hold every job
      if (request_.progress) request_.progress(i + 1, spec_.jobs.size());
    }
    HEBE_TRY(const auto plan, plan_text(jobs));
    auto& campaign = outcome.campaign;
    campaign.id = spec_.name + "-" + sha256_hex(plan).substr(0, kDigestDigitsInName);
    campaign.name = spec_.name;
    campaign.directory = root_.campaigns() / campaign.id;
    campaign.study = spec_.study;
    campaign.ladder = spec_.ladder;
    campaign.design = spec_.design;
    std::error_code ec;
    outcome.existed = fs::exists(campaign.directory, ec);
    if (!outcome.existed && !request_.dry_run) HEBE_CHECK(finish_writing(campaign.directory, plan));
    if (outcome.existed || !request_.dry_run) {
      HEBE_TRY(campaign, load_campaign(root_, campaign.id));
      for (std::size_t i = 0; outcome.existed && i < campaign.jobs.size(); ++i)
        HEBE_CHECK(check_job_file(campaign, i));
    }
    return outcome;
  }

  ~Planner() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

private:
  std::string provenance() const { return request_.target.simulated ? "simulated" : "measured"; }

  Result<FrozenJob> freeze_job(const CampaignJobSpec& spec) {
    FrozenJob job;
    job.id = spec.id;
    if (!spec.plan.empty()) return job_of_plan(std::move(job), spec.plan);
    HEBE_TRY(job.plan, drafted(spec.job));
    PreparedArms arms;
    if (spec.qualified) {
      HEBE_TRY(arms, spec_.arms->compiled(*spec.qualified));
      HEBE_TRY(job.oracle, oracle_for(arms.a));
      if (arms.b) {
        HEBE_TRY(job.oracle_b, oracle_for(*arms.b));
      }
    } else {
      HEBE_TRY(const auto* a, compile(spec.job.subject));
      arms.a = a->prepared;
      job.oracle = a->oracle;
      if (spec.job.subject_b) {
        HEBE_TRY(const auto* b, compile(*spec.job.subject_b));
        arms.b = b->prepared;
        job.oracle_b = b->oracle;
      }
    }
    if (spec.predict) {
      HEBE_TRY(job.plan.prediction, spec.predict(arms));
    }
    auto target = request_.target;
    target.faults.insert(target.faults.end(), spec.faults.begin(), spec.faults.end());
    HEBE_TRY(job.plan_id, freeze(job.plan, arms, target, spec.job.seed.has_value()));
    return job;
  }

  // The oracle's outputs for a qualified kernel, made once for all that are launched alike.
  Result<Json> oracle_for(const PreparedCase& arm) {
    const auto key = QualifiedArms::oracle_key(arm);
    auto hit = compiled_.find(key);
    if (hit == compiled_.end()) {
      Compiled made;
      HEBE_TRY(made.prepared, preparer_->with_oracle(arm.compiled));
      HEBE_CHECK(keep(key, std::move(made)));
      hit = compiled_.find(key);
    }
    if (hit->second.prepared.inputs != arm.inputs)
      return refuse(RefusalCode::not_qualified,
                    fmt::format("inputs made here have digests {}, the qualified ones {}",
                                hit->second.prepared.inputs.dump(), arm.inputs.dump()),
                    "use the build of Hebe that qualified, or qualify again");
    return hit->second.oracle;
  }

  // A plan that was frozen before, to be measured again as it is.
  Result<FrozenJob> job_of_plan(FrozenJob job, const std::string& relative) {
    const auto path = root_.path() / relative;
    HEBE_CHECK(fs::path(relative).is_absolute()
                   ? refuse(RefusalCode::unsafe_path, "a plan is named relative to the data root",
                            {}, relative)
                   : check_inside(root_.path(), path));
    HEBE_TRY(const auto text, read_file(path));
    HEBE_TRY(const auto json, parse_json(text, path.string()));
    HEBE_TRY(job.plan, measure::plan_from(json, path.string()));
    HEBE_TRY(job.plan_id, content_id(json));
    if (job.plan.device.at("provenance") != provenance())
      return refuse(RefusalCode::bad_spec,
                    fmt::format("the plan is for a {} GPU, this campaign for a {} one",
                                job.plan.device.at("provenance").get<std::string>(), provenance()),
                    "choose --device accordingly", path.string());
    for (int arm = 0; arm < 2; ++arm)
      for (const auto& [kind, digest] : measure::subject_of(job.plan, arm).at("artifacts").items())
        if (!store_.has(digest))
          return refuse(RefusalCode::bad_spec,
                        fmt::format("the plan names the {} {}, which is not in the data root", kind,
                                    digest.get<std::string>()),
                        "copy the artifact from where the plan was made, or plan the case anew",
                        path.string());
    HEBE_TRY(const auto* a, oracle_of(job, 0));
    job.oracle = a->oracle;
    if (!job.plan.subject_b.is_null()) {
      HEBE_TRY(const auto* b, oracle_of(job, 1));
      job.oracle_b = b->oracle;
    }
    return job;
  }

  // The oracle's outputs for a plan made before, from the case as it was then: its source is an
  // artifact. Nothing is compiled.
  Result<const Compiled*> oracle_of(const FrozenJob& job, int arm) {
    const auto& subject = measure::subject_of(job.plan, arm);
    HEBE_TRY(const auto key, content_id({subject, job.plan.inputs}));
    if (const auto hit = compiled_.find(key); hit != compiled_.end()) return &hit->second;
    HEBE_TRY(auto stored, case_from_store(store_, subject, job.plan.inputs, Json::object(),
                                          "the plan of job \"" + job.id + "\""));
    HEBE_TRY(const auto source, store_.get(subject.at("artifacts").at("source")));
    const auto folder = scratch_->path() / key;
    HEBE_CHECK(make_directories(folder));
    auto& request = stored.compiled.request;
    request.file = folder / fs::path(subject.value("source", "case.py")).filename();
    HEBE_CHECK(write_new_file(request.file, source, false));
    request.function = subject.value("function", "case");
    request.parameters = subject.at("launch").value("parameters", Json::object());
    Compiled made;
    HEBE_TRY(made.prepared, preparer_->with_oracle(std::move(stored.compiled)));
    return keep(key, std::move(made));
  }

  Result<const Compiled*> compile(kernel::CaseRequest subject) {
    subject.arch = request_.target.arch;
    const auto key = Json{subject.file.string(), subject.function, subject.parameters,
                          subject.options, subject.arch}
                         .dump();
    if (const auto hit = compiled_.find(key); hit != compiled_.end()) return &hit->second;
    Compiled made;
    HEBE_TRY(made.prepared, preparer_->prepare(subject));
    return keep(key, std::move(made));
  }

  // Stores the oracle's outputs, which the preparer left in the scratch folder.
  Result<const Compiled*> keep(const std::string& key, Compiled made) {
    made.oracle = Json::object();
    for (auto& [name, output] : made.prepared.expected) {
      HEBE_TRY(const auto bytes, read_file(output.file));
      HEBE_TRY(const auto digest, store_.put(bytes));
      made.oracle[name] = {{"dtype", kernel::name_of(output.dtype)}, {"sha256", digest}};
      std::error_code ignored;
      fs::remove(output.file, ignored);
    }
    return &compiled_.emplace(key, std::move(made)).first->second;
  }

  Result<std::string> plan_text(const std::vector<CampaignJob>& jobs) const {
    Json rows = Json::array(), artifacts = Json::array();
    for (const auto& job : jobs)
      rows.push_back({{"id", job.id}, {"plan_id", job.plan_id}, {"file_sha256", job.file_sha256}});
    for (const auto& digest : artifacts_) artifacts.push_back(digest);
    Json document{{"schema", "hebe.campaign.plan/1"},
                  {"name", spec_.name},
                  {"session", spec_.study ? "study" : "free"},
                  {"device", {{"provenance", provenance()}, {"arch", request_.target.arch}}},
                  {"artifacts", artifacts},
                  {"jobs", rows}};
    if (spec_.ladder) document["purpose"] = "control_ladder";
    if (!spec_.design.is_null()) document.update({{"purpose", "study"}, {"study", spec_.design}});
    return canonical_line(document);
  }

  Status begin_writing() {
    if (request_.dry_run) return {};
    const auto folder = root_.campaigns() /
                        fmt::format("{}{}-{}", evidence::kUnsealedPrefix, ::getpid(), spec_.name);
    HEBE_CHECK(check_inside(root_.path(), folder));
    std::error_code ec;
    fs::remove_all(folder, ec); // of a process with our id that died
    temporary_ = folder;
    crash_point("plan: make the directory");
    return make_directories(temporary_ / "jobs");
  }

  Status write_job(const std::string& id, const std::string& text) const {
    if (request_.dry_run) return {};
    crash_point("plan: write a job");
    return write_new_file(temporary_ / "jobs" / (id + ".json"), text, false);
  }

  Status finish_writing(const fs::path& directory, const std::string& plan) {
    const auto write_rest = [&]() -> Status {
      crash_point("plan: write plan.json");
      HEBE_CHECK(write_new_file(temporary_ / "plan.json", plan, false));
      HEBE_CHECK(sync_file_system(temporary_));
      crash_point("plan: rename");
      std::error_code ec;
      fs::rename(temporary_, directory, ec);
      if (ec && !fs::exists(directory / "plan.json")) // two planners of one campaign: one wins
        return std::unexpected(io_refusal(ec.value(), "rename", directory));
      if (!ec) temporary_.clear();
      crash_point("plan: sync");
      return sync_directory(root_.campaigns());
    };
    auto written = write_rest();
    if (!written) written.error().not_written = directory.string();
    return written;
  }

  const evidence::DataRoot& root_;
  const CampaignSpec& spec_;
  const PlanRequest& request_;
  kernel::ArtifactStore store_;
  std::optional<ScratchFolder> scratch_;
  std::optional<CasePreparer> preparer_;
  std::map<std::string, Compiled> compiled_;
  std::set<std::string> artifacts_;
  fs::path temporary_; ///< where the campaign is being written; removed unless it was renamed
};

} // namespace

Result<PlanOutcome> plan_campaign(const evidence::DataRoot& root, const CampaignSpec& spec,
                                  const PlanRequest& request) {
  if (!request.dry_run) HEBE_CHECK(root.initialise());
  return Planner(root, spec, request).run();
}

} // namespace hebe::campaign
