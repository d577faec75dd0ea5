#include "campaign/frozen_campaign.hpp"

#include "campaign/job.hpp"
#include "campaign/scratch_folder.hpp"
#include "core/crash_point.hpp"
#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include <unistd.h>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kDigitsInName = 16;

Result<std::string> canonical_line(const Json& j) {
  HEBE_TRY(auto text, canonical_json(j));
  return text + "\n";
}

// One arm as frozen; each stored file against its digest.
Result<PreparedCase> case_from_store(const kernel::ArtifactStore& store, const Json& subject,
                                     const Json& inputs, const Json& oracle,
                                     const std::string& where) {
  PreparedCase out;
  HEBE_TRY(out.compiled.launch, kernel::LaunchSpec::from_json(subject.at("launch"), where));
  for (const auto& [kind, digest] : subject.at("artifacts").items()) {
    out.compiled.artifacts[kind] = digest.get<std::string>();
    HEBE_TRY(auto bytes, store.get(out.compiled.artifacts[kind]));
    if (kind == "cubin") out.compiled.cubin = std::move(bytes);
  }
  out.compiled.provenance = subject.at("compile");
  HEBE_TRY(out.inputs, measure::input_digests(out.compiled.launch));
  if (out.inputs != inputs)
    return refuse(RefusalCode::digest_mismatch,
                  fmt::format("inputs generated here have digests {}, the plan has {}",
                              out.inputs.dump(), inputs.dump()),
                  "use the build of Hebe that planned the campaign", where);
  for (const auto& [name, made] : oracle.items()) {
    const auto digest = made.at("sha256").get<std::string>();
    HEBE_TRY(const auto found, sha256_of_file(store.path_of(digest)));
    if (found != digest)
      return refuse(RefusalCode::digest_mismatch, "required sha256 " + digest + ", found " + found,
                    "restore the artifact from a copy", store.path_of(digest).string());
    HEBE_TRY(const auto dtype, kernel::dtype_from(made.at("dtype").get<std::string>()));
    out.expected[name] = {store.path_of(digest), dtype};
  }
  return out;
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
    campaign.id = spec_.name + "-" + sha256_hex(plan).substr(0, kDigitsInName);
    campaign.name = spec_.name;
    campaign.directory = root_.campaigns() / campaign.id;
    campaign.study = spec_.study;
    campaign.ladder = spec_.ladder;
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
    HEBE_TRY(const auto* a, compile(spec.job.subject));
    PreparedArms arms{a->prepared, {}};
    job.oracle = a->oracle;
    if (spec.job.subject_b) {
      HEBE_TRY(const auto* b, compile(*spec.job.subject_b));
      arms.b = b->prepared;
      job.oracle_b = b->oracle;
    }
    HEBE_TRY(job.plan_id, freeze(job.plan, arms, request_.target, spec.job.seed.has_value()));
    return job;
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

Result<fs::path> find_campaign(const evidence::DataRoot& root, const std::string& name) {
  std::vector<fs::path> hits;
  auto wanted = fs::path(name).lexically_normal();
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  const bool is_path = name.find('/') != std::string::npos;
  for (const auto& directory : campaign_directories(root)) {
    const auto id = directory.filename().string();
    if (is_path ? fs::absolute(wanted) == directory : id == name) return directory;
    if (!is_path && !name.empty() && id.find(name) != std::string::npos) hits.push_back(directory);
  }
  if (is_path) HEBE_CHECK(check_inside(root.path(), fs::absolute(wanted)));
  if (hits.empty())
    return refuse(RefusalCode::not_found, "no campaign is named \"" + name + "\"",
                  "freeze one with `hebe campaign-plan`, or see `hebe queue-status`",
                  root.campaigns().string());
  if (hits.size() > 1)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("\"{}\" fits {} campaigns", name, hits.size()),
                  "give more of the id, e.g. " + hits.front().filename().string());
  return hits.front();
}

} // namespace

Result<PlanOutcome> plan_campaign(const evidence::DataRoot& root, const CampaignSpec& spec,
                                  const PlanRequest& request) {
  if (!request.dry_run) HEBE_CHECK(root.initialise());
  return Planner(root, spec, request).run();
}

std::vector<fs::path> campaign_directories(const evidence::DataRoot& root) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(root.campaigns(), ec))
    if (!entry.path().filename().string().starts_with('.') && entry.is_directory(ec) &&
        !entry.is_symlink(ec))
      out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

Result<FrozenCampaign> load_campaign(const evidence::DataRoot& root, const std::string& name) {
  FrozenCampaign c;
  HEBE_TRY(c.directory, find_campaign(root, name));
  const auto path = c.directory / "plan.json";
  HEBE_CHECK(check_inside(root.path(), path));
  HEBE_TRY(const auto text, read_file(path));
  c.id = c.directory.filename().string();
  if (const auto digits = sha256_hex(text).substr(0, kDigitsInName); !c.id.ends_with("-" + digits))
    return refuse(
        RefusalCode::digest_mismatch,
        fmt::format("the plan's digest begins with {}, the campaign is named {}", digits, c.id),
        "restore it from a copy", path.string());
  // The digest says that these are the bytes we wrote: no need to look for duplicate members.
  const auto json = Json::parse(text, nullptr, false);
  HEBE_CHECK(check_schema(json, "hebe.campaign.plan/1", path.string()));
  c.name = json.at("name");
  c.study = json.at("session") == "study";
  c.ladder = json.value("purpose", "") == "control_ladder";
  c.device = json.at("device");
  c.jobs.reserve(json.at("jobs").size());
  for (const auto& digest : json.at("artifacts")) c.artifacts.push_back(digest);
  for (const auto& j : json.at("jobs"))
    c.jobs.push_back({j.at("id"), j.at("plan_id"), j.at("file_sha256")});
  return c;
}

namespace {
fs::path job_path(const FrozenCampaign& campaign, std::size_t index) {
  return campaign.directory / "jobs" / (campaign.jobs[index].id + ".json");
}

Result<std::string> job_text(const FrozenCampaign& campaign, std::size_t index) {
  constexpr std::uint64_t kLargestJob = 64 << 20;
  const auto path = job_path(campaign, index);
  const auto& required = campaign.jobs[index].file_sha256;
  HEBE_CHECK(check_inside(campaign.directory, path));
  std::error_code ec;
  HashedBytes file{{}, "no file"};
  if (fs::exists(path, ec)) {
    HEBE_TRY(file, read_record(path, kLargestJob));
  }
  if (file.sha256 != required)
    return refuse(RefusalCode::digest_mismatch,
                  fmt::format("required sha256 {}, found {}", required, file.sha256),
                  "restore it from a copy", path.string());
  return std::move(file.bytes);
}
} // namespace

Status check_job_file(const FrozenCampaign& campaign, std::size_t index) {
  HEBE_TRY(const auto text, job_text(campaign, index));
  return {};
}

Result<FrozenJob> load_job(const FrozenCampaign& campaign, std::size_t index) {
  const auto& row = campaign.jobs[index];
  const auto path = job_path(campaign, index);
  HEBE_TRY(const auto text, job_text(campaign, index));
  HEBE_TRY(const auto json, parse_json(text, path.string()));
  HEBE_CHECK(check_schema(json, "hebe.campaign.job/1", path.string()));
  FrozenJob job;
  job.id = json.at("id");
  job.oracle = json.at("oracle");
  job.oracle_b = json.value("oracle_b", Json());
  HEBE_TRY(job.plan, measure::plan_from(json.at("plan"), path.string()));
  HEBE_TRY(job.plan_id, content_id(json.at("plan")));
  if (job.plan.subject_b.is_null() != job.oracle_b.is_null())
    return refuse(RefusalCode::bad_schema, "the job's oracles are not those of its plan's arms", {},
                  path.string());
  if (job.id != row.id || job.plan_id != row.plan_id)
    return refuse(RefusalCode::digest_mismatch,
                  fmt::format("required job \"{}\" with plan {}, found \"{}\" with {}", row.id,
                              row.plan_id, job.id, job.plan_id),
                  "restore it from a copy", path.string());
  return job;
}

Result<PreparedArms> prepared_from_store(const evidence::DataRoot& root, const FrozenJob& job) {
  const kernel::ArtifactStore store(root.path());
  const auto where = "the plan of job \"" + job.id + "\"";
  PreparedArms out;
  HEBE_TRY(out.a, case_from_store(store, job.plan.subject, job.plan.inputs, job.oracle, where));
  if (!job.plan.subject_b.is_null()) {
    HEBE_TRY(out.b,
             case_from_store(store, job.plan.subject_b, job.plan.inputs, job.oracle_b, where));
  }
  return out;
}

} // namespace hebe::campaign
