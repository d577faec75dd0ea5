#include "campaign/frozen_campaign.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

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
  if (is_path) {
    HEBE_CHECK(there_is(wanted));
    HEBE_CHECK(check_inside(root.path(), fs::absolute(wanted)));
  }
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
  if (const auto digits = sha256_hex(text).substr(0, kDigestDigitsInName);
      !c.id.ends_with("-" + digits))
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
  if (json.value("purpose", "") == "study") c.design = json.at("study");
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

Result<PreparedCase> case_from_store(const kernel::ArtifactStore& store, const Json& subject,
                                     const Json& inputs, const Json& oracle,
                                     const std::string& where) {
  PreparedCase out;
  HEBE_TRY(out.compiled.launch, kernel::LaunchSpec::from_json(subject.at("launch"), where));
  for (const auto& [kind, digest] : subject.at("artifacts").items()) {
    out.compiled.artifacts[kind] = digest.get<std::string>();
    HEBE_TRY(auto bytes, store.get(out.compiled.artifacts[kind]));
    if (kind == "ttgir") out.compiled.ttgir = bytes;
    if (kind == "cubin") out.compiled.cubin = std::move(bytes);
  }
  out.compiled.provenance = subject.at("compile");
  HEBE_TRY(out.inputs, qualify::input_digests(out.compiled.launch));
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
