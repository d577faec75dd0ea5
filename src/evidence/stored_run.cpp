#include "evidence/stored_run.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

Result<std::string> sealed_file(const fs::path& directory, const Json& manifest,
                                const std::string& name) {
  const auto where = (directory / name).string();
  for (const auto& f : manifest.at("files")) {
    if (f.at("path") != name) continue;
    HEBE_TRY(auto bytes, read_file(directory / name));
    if (sha256_hex(bytes) != f.at("sha256"))
      return refuse(RefusalCode::digest_mismatch, "this is not the file that was sealed",
                    "see `hebe run-verify " + directory.string() + "`", where);
    return bytes;
  }
  return refuse(RefusalCode::bad_schema, "the manifest does not list it", {}, where);
}

Result<Json> sealed_json(const fs::path& directory, const Json& manifest, const std::string& name,
                         std::string_view schema) {
  const auto where = (directory / name).string();
  HEBE_TRY(const auto bytes, sealed_file(directory, manifest, name));
  HEBE_TRY(auto json, parse_json(bytes, where));
  HEBE_CHECK(check_schema(json, schema, where));
  return json;
}

Status read_windows(StoredRun& run, const fs::path& directory) {
  HEBE_TRY(const auto bytes, sealed_file(directory, run.manifest, "windows.jsonl"));
  std::string_view rest = bytes;
  for (int number = 1; !rest.empty(); ++number) {
    const auto where = fmt::format("{}:{}", (directory / "windows.jsonl").string(), number);
    const auto end = rest.find('\n');
    HEBE_TRY(auto line, parse_json(rest.substr(0, end), where));
    HEBE_CHECK(
        check_schema(line, number == 1 ? "hebe.run.acquisition/1" : "hebe.run.window/1", where));
    if (number == 1)
      run.acquisition = std::move(line);
    else
      run.windows.push_back(std::move(line));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (run.acquisition.is_null())
    return refuse(RefusalCode::bad_schema, "the file is empty", {},
                  (directory / "windows.jsonl").string());
  return {};
}

Json campaign_member(const Json& manifest, const char* member) {
  const auto hit = manifest.find("campaign");
  return hit != manifest.end() && hit->is_object() ? hit->value(member, Json()) : Json();
}

} // namespace

Json StoredRun::campaign_id() const { return campaign_member(manifest, "id"); }
Json StoredRun::job_id() const { return campaign_member(manifest, "job"); }

Result<StoredRun> read_stored_run(const fs::path& directory, Telemetry telemetry) {
  auto folder = fs::absolute(directory).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code ec;
  if (!fs::is_directory(folder, ec))
    return refuse(RefusalCode::not_found, "there is no such run directory", {}, folder.string());
  StoredRun run;
  run.run_id = folder.filename().string();
  const auto where = (folder / "manifest.json").string();
  HEBE_TRY(const auto bytes, read_file(folder / "manifest.json"));
  run.seal = sha256_hex(bytes);
  HEBE_TRY(run.manifest, parse_json(bytes, where));
  HEBE_CHECK(check_schema(run.manifest, "hebe.run.manifest/1", where));
  HEBE_TRY(run.plan, sealed_json(folder, run.manifest, "plan.json", "hebe.run.plan/1"));
  HEBE_TRY(run.environment,
           sealed_json(folder, run.manifest, "environment.json", "hebe.environment/1"));
  HEBE_TRY(run.analysis, sealed_json(folder, run.manifest, "analysis.json", "hebe.run.analysis/1"));
  HEBE_CHECK(read_windows(run, folder));
  if (telemetry == Telemetry::read) {
    HEBE_TRY(run.telemetry, sealed_file(folder, run.manifest, "telemetry.parquet"));
  }
  return run;
}

std::optional<fs::path> place_of_run(const DataRoot& root, const std::string& run_id) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (run_id.size() < 8 || !std::all_of(run_id.begin(), run_id.begin() + 8, is_digit) ||
      run_id.find('/') != std::string::npos)
    return std::nullopt;
  auto place =
      root.runs() / run_id.substr(0, 4) / run_id.substr(4, 2) / run_id.substr(6, 2) / run_id;
  std::error_code ec;
  if (!fs::is_directory(place, ec)) return std::nullopt;
  return place;
}

} // namespace hebe::evidence
