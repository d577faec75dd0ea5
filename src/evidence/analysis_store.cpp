#include "evidence/analysis_store.hpp"

#include "core/crash_point.hpp"
#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

struct AnalysisFiles {
  std::string id, analysis, manifest; ///< the bytes of both files
};

Result<AnalysisFiles> files_for(const Json& analysis, std::string_view where) {
  const auto schema = analysis.is_object() ? analysis.value("schema", Json()) : Json();
  const bool known = schema == "hebe.analysis.campaign/1" || schema == "hebe.analysis.ladder/1" ||
                     schema == "hebe.analysis.study/1";
  HEBE_CHECK(check_schema(
      analysis, known ? schema.get<std::string>() : std::string("hebe.analysis.point/1"), where));
  HEBE_TRY(const auto text, canonical_json(analysis));
  AnalysisFiles files;
  const auto digest = sha256_hex(text);
  files.id = std::string(kAnalysisPrefix) + digest;
  files.analysis = text + "\n";
  const Json manifest = {{"schema", "hebe.analysis.manifest/1"},
                         {"analysis_schema", schema},
                         {"content_id", digest},
                         {"files",
                          {{{"path", "analysis.json"},
                            {"bytes", files.analysis.size()},
                            {"sha256", sha256_hex(files.analysis)}}}}};
  HEBE_CHECK(check_schema(manifest, "hebe.analysis.manifest/1", "manifest.json"));
  HEBE_TRY(files.manifest, canonical_json(manifest));
  files.manifest += "\n";
  return files;
}

std::unexpected<Refusal> not_it(std::string what, const fs::path& file) {
  return refuse(RefusalCode::digest_mismatch, std::move(what), "restore the analysis from a copy",
                file.string());
}

// A plain file's bytes: a link or a pipe in its place is named, not followed.
Result<std::string> plain_file(const fs::path& file) {
  std::error_code ec;
  const auto type = fs::symlink_status(file, ec).type();
  if (type == fs::file_type::not_found) return not_it("the file is missing", file);
  if (type != fs::file_type::regular) return not_it("it is no plain file", file);
  return read_file(file);
}

// All that can be wrong without looking at the runs. Everything follows from analysis.json, the
// manifest too: so each byte of both is checked.
Result<Json> read_checked(const fs::path& directory) {
  const auto file = directory / "analysis.json", manifest = directory / "manifest.json";
  HEBE_TRY(const auto bytes, plain_file(file));
  const auto parsed = parse_json(bytes, file.string());
  if (!parsed) return not_it("it is no JSON any more: " + parsed.error().what, file);
  const auto due = files_for(*parsed, file.string());
  if (!due) return not_it("it is no analysis any more: " + due.error().what, file);
  if (due->analysis != bytes || due->id != directory.filename().string())
    return not_it("its content id is " + due->id, file);
  HEBE_TRY(const auto listed, plain_file(manifest));
  if (listed != due->manifest)
    return not_it("it does not describe the analysis beside it", manifest);
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(directory, ec))
    if (const auto name = entry.path().filename();
        name != "analysis.json" && name != "manifest.json")
      return not_it("this file is not of the analysis", entry.path());
  return *parsed;
}

Result<fs::path> directory_of(const DataRoot& root, const std::string& id) {
  const auto directory = root.analyses() / id;
  std::error_code ec;
  if (!id.starts_with(kAnalysisPrefix) || id.find('/') != std::string::npos ||
      !fs::is_directory(directory, ec))
    return refuse(RefusalCode::not_found, "no analysis is named \"" + id + "\"",
                  "give an id below " + root.analyses().string());
  return directory;
}

Result<fs::path> unsealed_directory(const fs::path& folder) {
  for (int number = 0;; ++number) {
    auto path = folder / fmt::format("{}analysis-{}-{}", kUnsealedPrefix, ::getpid(), number);
    std::error_code ec;
    if (fs::create_directory(path, ec)) return path;
    if (ec) return std::unexpected(io_refusal(ec.value(), "create directory", path));
  }
}

Status write_and_name(StoredAnalysis& stored, const AnalysisFiles& files,
                      const fs::path& temporary) {
  crash_point("analysis: write analysis.json");
  HEBE_CHECK(write_new_file(temporary / "analysis.json", files.analysis));
  crash_point("analysis: write manifest.json");
  HEBE_CHECK(write_new_file(temporary / "manifest.json", files.manifest));
  crash_point("analysis: sync the unsealed directory");
  HEBE_CHECK(sync_directory(temporary));
  crash_point("analysis: rename");
  std::error_code ec;
  fs::rename(temporary, stored.directory, ec);
  if (ec == std::errc::directory_not_empty || ec == std::errc::file_exists) {
    stored.existed = true; // somebody was faster with the same content
    return {};
  }
  if (ec) return std::unexpected(io_refusal(ec.value(), "rename", stored.directory));
  crash_point("analysis: sync the folder of analyses");
  return sync_directory(stored.directory.parent_path());
}

} // namespace

Result<StoredAnalysis> store_analysis(const DataRoot& root, const Json& analysis) {
  HEBE_TRY(const auto files, files_for(analysis, "analysis.json"));
  StoredAnalysis stored{root.analyses() / files.id, files.id, false};
  std::error_code ec;
  stored.existed = fs::exists(fs::symlink_status(stored.directory, ec));
  if (!stored.existed) {
    crash_point("analysis: make the folder of analyses");
    HEBE_CHECK(make_directories(root.analyses()));
    crash_point("analysis: make the unsealed directory");
    HEBE_TRY(const auto temporary, unsealed_directory(root.analyses()));
    const auto written = write_and_name(stored, files, temporary);
    if (!written || stored.existed) fs::remove_all(temporary, ec);
    if (!written) {
      auto refusal = written.error();
      refusal.not_written = stored.directory.string();
      return std::unexpected(std::move(refusal));
    }
  }
  if (stored.existed)
    if (const auto whole = read_checked(stored.directory); !whole)
      return std::unexpected(whole.error());
  return stored;
}

Result<Json> load_analysis(const DataRoot& root, const std::string& id) {
  HEBE_TRY(const auto directory, directory_of(root, id));
  return read_checked(directory);
}

std::vector<std::string> analysis_ids(const DataRoot& root) {
  std::vector<std::string> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(root.analyses(), ec))
    if (auto id = entry.path().filename().string(); id.starts_with(kAnalysisPrefix))
      out.push_back(std::move(id));
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> find_analysis(const DataRoot& root, const std::string& name) {
  std::vector<std::pair<fs::file_time_type, std::string>> hits;
  for (const auto& id : analysis_ids(root)) {
    std::error_code gone;
    if (id.find(name) != std::string::npos)
      hits.emplace_back(fs::last_write_time(root.analyses() / id, gone), id);
  }
  std::sort(hits.begin(), hits.end());
  if (hits.empty())
    return refuse(RefusalCode::not_found,
                  name.empty() ? "there is no analysis in this data root"
                               : "no analysis is named \"" + name + "\"",
                  "give part of an id below " + root.analyses().string());
  if (!name.empty() && hits.size() > 1)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("\"{}\" fits {} analyses", name, hits.size()), "give more of the id");
  return hits.back().second;
}

} // namespace hebe::evidence
