#include "evidence/sealed_run.hpp"

#include "core/crash_point.hpp"
#include "core/files.hpp"
#include "core/sha256.hpp"
#include "evidence/telemetry.hpp"

#include <fmt/format.h>

#include <ctime>

#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

Result<std::string> canonical_line(const Json& j) {
  HEBE_TRY(auto text, canonical_json(j));
  return text + "\n";
}

Json manifest_of(const RunFiles& run) {
  Json manifest{{"schema", "hebe.run.manifest/1"},
                {"plan_id", run.plan_id},
                {"provenance", run.provenance},
                {"files", file_list(run.files)}};
  if (run.campaign) manifest["campaign"] = to_json(*run.campaign);
  return manifest;
}

// Up to runs/: a new month's folder is only as durable as its parent's entry for it.
Status sync_up(const DataRoot& root, const fs::path& day) {
  for (auto folder = day; folder != root.path() && folder.has_relative_path();
       folder = folder.parent_path())
    HEBE_CHECK(sync_directory(folder));
  return {};
}

} // namespace

Json to_json(const JobIdentity& identity) {
  return {{"id", identity.campaign}, {"job", identity.job}};
}

std::optional<JobIdentity> job_identity_in(const Json& record) {
  const auto hit = record.find("campaign");
  if (hit == record.end()) return std::nullopt;
  return JobIdentity{hit->at("id"), hit->at("job")};
}

std::string utc_stamp(const char* format, std::int64_t wall_us) {
  const std::time_t t = wall_us / 1'000'000;
  std::tm utc{};
  gmtime_r(&t, &utc);
  char text[64];
  text[std::strftime(text, sizeof text, format, &utc)] = '\0';
  return text;
}

fs::path day_folder(const DataRoot& root, std::int64_t wall_us) {
  return root.runs() / utc_stamp("%Y", wall_us) / utc_stamp("%m", wall_us) /
         utc_stamp("%d", wall_us);
}

Json file_list(const std::vector<NamedBytes>& files) {
  Json list = Json::array();
  for (const auto& f : files)
    list.push_back({{"path", f.name}, {"bytes", f.bytes.size()}, {"sha256", sha256_hex(f.bytes)}});
  return list;
}

Result<std::string> windows_jsonl(const measure::Acquisition& acquisition,
                                  std::span<const measure::Window> windows) {
  HEBE_TRY(auto text, canonical_line(to_json(acquisition)));
  for (const auto& w : windows) {
    HEBE_TRY(const auto line, canonical_line(to_json(w, acquisition.provenance)));
    text += line;
  }
  return text;
}

Result<std::vector<NamedBytes>> text_files_of(const RunParts& parts) {
  std::vector<NamedBytes> files;
  HEBE_TRY(auto plan, canonical_line(to_json(parts.plan)));
  files.push_back({"plan.json", std::move(plan)});
  HEBE_TRY(auto environment, canonical_line(parts.environment));
  files.push_back({"environment.json", std::move(environment)});
  HEBE_TRY(auto windows, windows_jsonl(parts.acquisition, parts.windows));
  files.push_back({"windows.jsonl", std::move(windows)});
  HEBE_TRY(auto analysis, canonical_line(parts.analysis.json));
  files.push_back({"analysis.json", std::move(analysis)});
  return files;
}

Result<SealedRun> seal_files(const DataRoot& root, RunFiles content, std::int64_t wall_us,
                             const Acceptance& accept) {
  HEBE_TRY(auto manifest, canonical_line(manifest_of(content)));
  auto files = std::move(content.files);
  SealedRun run;
  run.seal = sha256_hex(manifest);
  files.push_back({"manifest.json", std::move(manifest)});
  run.run_id = fmt::format("{}-{}-{}", utc_stamp("%Y%m%dT%H%M%SZ", wall_us), content.kind,
                           run.seal.substr(0, kSealDigitsInName));
  const auto day = day_folder(root, wall_us);
  run.directory = day / run.run_id;
  // It ends as the sealed name does, so that it can be verified as it lies.
  const auto temporary = day / fmt::format("{}{}-{}", kUnsealedPrefix, ::getpid(), run.run_id);

  bool sealed = false;
  const auto write_all = [&]() -> Status {
    HEBE_CHECK(check_inside(root.path(), day));
    crash_point("seal: make the day's folder");
    HEBE_CHECK(make_directories(day));
    std::error_code ec;
    if (fs::exists(run.directory, ec))
      return refuse(RefusalCode::already_exists, "a run with this id exists already",
                    "wait a second and run again", run.directory.string());
    fs::remove_all(temporary, ec); // of a process with our id that died
    crash_point("seal: make the unsealed directory");
    HEBE_CHECK(make_directories(temporary));
    for (const auto& f : files) {
      crash_point("seal: write " + f.name);
      HEBE_CHECK(write_new_file(temporary / f.name, f.bytes));
      run.bytes += f.bytes.size();
    }
    crash_point("seal: sync the unsealed directory");
    HEBE_CHECK(sync_directory(temporary));
    if (accept) {
      crash_point("seal: verify");
      HEBE_CHECK(accept(temporary));
    }
    crash_point("seal: rename");
    fs::rename(temporary, run.directory, ec);
    if (ec) return std::unexpected(io_refusal(ec.value(), "rename", run.directory));
    sealed = true;
    crash_point("seal: sync the day's folder");
    return sync_up(root, day);
  };
  if (auto written = write_all(); !written) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    auto refusal = std::move(written).error();
    if (sealed)
      refusal.what += "; the run is sealed, but a power cut could still lose it";
    else
      refusal.not_written = run.directory.string();
    return std::unexpected(std::move(refusal));
  }
  return run;
}

Result<SealedRun> seal_run(const DataRoot& root, const RunParts& parts, std::int64_t wall_us) {
  RunFiles run{parts.plan.kind,
               parts.plan_id,
               std::string(name_of(parts.acquisition.provenance)),
               parts.campaign,
               {}};
  HEBE_TRY(run.files, text_files_of(parts));
  HEBE_TRY(auto telemetry, telemetry_parquet(parts.samples, parts.windows, parts.acquisition));
  // In the order they were always listed: equal content keeps its seal.
  run.files.insert(run.files.end() - 1, {"telemetry.parquet", std::move(telemetry)});
  return seal_files(root, std::move(run), wall_us);
}

} // namespace hebe::evidence
