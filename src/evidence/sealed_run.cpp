#include "evidence/sealed_run.hpp"

#include "core/files.hpp"
#include "core/sha256.hpp"
#include "evidence/telemetry.hpp"

#include <fmt/format.h>

#include <ctime>

#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

std::tm utc(std::int64_t wall_us) {
  const std::time_t t = wall_us / 1'000'000;
  std::tm out{};
  gmtime_r(&t, &out);
  return out;
}

std::string stamp(const char* format, std::int64_t wall_us) {
  const auto t = utc(wall_us);
  char text[64];
  text[std::strftime(text, sizeof text, format, &t)] = '\0';
  return text;
}

struct NamedBytes {
  std::string name, bytes;
};

Result<std::string> canonical_line(const Json& j) {
  HEBE_TRY(auto text, canonical_json(j));
  return text + "\n";
}

Result<std::vector<NamedBytes>> files_of(const RunParts& parts) {
  std::vector<NamedBytes> files;
  HEBE_TRY(auto plan, canonical_line(to_json(parts.plan)));
  files.push_back({"plan.json", std::move(plan)});
  HEBE_TRY(auto environment, canonical_line(parts.environment));
  files.push_back({"environment.json", std::move(environment)});
  HEBE_TRY(auto windows, windows_jsonl(parts.acquisition, parts.windows));
  files.push_back({"windows.jsonl", std::move(windows)});
  HEBE_TRY(auto telemetry, telemetry_parquet(parts.samples, parts.windows, parts.acquisition));
  files.push_back({"telemetry.parquet", std::move(telemetry)});
  HEBE_TRY(auto analysis, canonical_line(parts.analysis.json));
  files.push_back({"analysis.json", std::move(analysis)});
  return files;
}

Json manifest_of(const RunParts& parts, const std::vector<NamedBytes>& files) {
  Json list = Json::array();
  for (const auto& f : files)
    list.push_back({{"path", f.name}, {"bytes", f.bytes.size()}, {"sha256", sha256_hex(f.bytes)}});
  return {{"schema", "hebe.run.manifest/1"},
          {"plan_id", parts.plan_id},
          {"provenance", name_of(parts.acquisition.provenance)},
          {"files", list}};
}

} // namespace

Result<std::string> windows_jsonl(const measure::Acquisition& acquisition,
                                  std::span<const measure::Window> windows) {
  HEBE_TRY(auto text, canonical_line(to_json(acquisition)));
  for (const auto& w : windows) {
    HEBE_TRY(const auto line, canonical_line(to_json(w, acquisition.provenance)));
    text += line;
  }
  return text;
}

Result<SealedRun> seal_run(const DataRoot& root, const RunParts& parts, std::int64_t wall_us,
                           const SealObserver& observer) {
  const auto step = [&](std::string_view name) {
    if (observer) observer(name);
  };
  HEBE_TRY(auto files, files_of(parts));
  HEBE_TRY(auto manifest, canonical_line(manifest_of(parts, files)));
  SealedRun run;
  run.seal = sha256_hex(manifest);
  files.push_back({"manifest.json", std::move(manifest)});
  run.run_id = fmt::format("{}-{}-{}", stamp("%Y%m%dT%H%M%SZ", wall_us), parts.plan.kind,
                           run.seal.substr(0, kSealDigitsInName));
  const auto day = root.runs() / stamp("%Y", wall_us) / stamp("%m", wall_us) / stamp("%d", wall_us);
  run.directory = day / run.run_id;
  const auto temporary = day / fmt::format("{}{}-{}", kUnsealedPrefix, run.run_id, ::getpid());

  bool sealed = false;
  const auto write_all = [&]() -> Status {
    step("make the day's folder");
    HEBE_CHECK(make_directories(day));
    std::error_code ec;
    if (fs::exists(run.directory, ec))
      return refuse(RefusalCode::already_exists, "a run with this id exists already",
                    "wait a second and run again", run.directory.string());
    step("make the unsealed directory");
    HEBE_CHECK(make_directories(temporary));
    for (const auto& f : files) {
      step("write " + f.name);
      HEBE_CHECK(write_new_file(temporary / f.name, f.bytes));
      run.bytes += f.bytes.size();
    }
    step("sync the unsealed directory");
    HEBE_CHECK(sync_directory(temporary));
    step("rename");
    fs::rename(temporary, run.directory, ec);
    if (ec) return std::unexpected(io_refusal(ec.value(), "rename", run.directory));
    sealed = true;
    step("sync the day's folder");
    // Up to runs/: a new month's folder is only as durable as its parent's entry for it.
    for (auto folder = day; folder != root.path() && folder.has_relative_path();
         folder = folder.parent_path())
      HEBE_CHECK(sync_directory(folder));
    return {};
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

} // namespace hebe::evidence
