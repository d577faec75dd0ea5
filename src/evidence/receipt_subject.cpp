#include "evidence/receipt_subject.hpp"

#include "core/files.hpp"
#include "core/provenance.hpp"
#include "core/sha256.hpp"
#include "evidence/analysis_store.hpp"
#include "evidence/sealed_run.hpp"
#include "evidence/stored_run.hpp"

#include <fmt/format.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostBytes = 64ULL << 20;
constexpr std::string_view kDatasetPrefix = "dataset_sha256_";
constexpr std::string_view kTuneSchema = "hebe.tune/1", kTunes = "tunes";
constexpr std::string_view kProfileSchema = "hebe.profile/1", kPlacementSchema = "hebe.placement/1";

Json nothing_said() {
  return {{"provenance", nullptr},
          {"qualified", nullptr},
          {"verdict", nullptr},
          {"board", nullptr},
          {"driver", nullptr}};
}

Json text_or_null(const Json& object, const char* name) {
  const auto hit = object.find(name);
  return hit != object.end() && hit->is_string() ? *hit : Json(nullptr);
}

Json fact_of(const Json& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    for (const auto& f : environment.at("facts"))
      if (f.at("name") == name && f.contains("value") && f.at("value").is_string())
        return f.at("value");
  return nullptr;
}

Result<ReceiptSubject> read_run(const fs::path& directory) {
  HEBE_TRY(auto report, verify_run(directory));
  ReceiptSubject out{"run", directory, {}, nothing_said(), {}, {}, {}};
  auto folder = fs::absolute(directory).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  out.digests = {{folder.filename().string(), report.seal}};
  out.problems = std::move(report.problems);
  out.not_checked = std::move(report.not_checked);
  if (!out.problems.empty()) return out;
  HEBE_TRY(const auto run, read_stored_run(directory));
  out.says = {{"provenance", run.provenance()},
              {"qualified", run.analysis.at("qualified")},
              {"verdict", run.analysis.at("verdict")},
              {"board", fact_of(run.environment, {"board.name", "device.name"})},
              {"driver", fact_of(run.environment, {"board.driver"})}};
  return out;
}

std::string digest_in(const std::string& id, std::string_view prefix) {
  return id.substr(prefix.size());
}

DataRoot root_of_study(const DataRoot& given, const fs::path& directory) {
  const auto folder = directory.parent_path();
  return folder.filename() == "studies" ? DataRoot(folder.parent_path()) : given;
}

Result<ReceiptSubject> read_study(const DataRoot& given, const SealedStudy& study,
                                  const SubjectChecks& checks) {
  const auto root = root_of_study(given, study.directory);
  ReceiptSubject out{"study", study.directory, {}, nothing_said(), {}, {}, {}};
  HEBE_TRY(const auto digest, sha256_of_file(study.directory / "study.json"));
  out.digests = {{study.id, digest}};
  for (const auto& run : study.json.at("runs")) {
    const auto id = run.at("run_id").get<std::string>();
    out.digests.push_back({id, run.at("seal")});
    if (!place_of_run(root, id)) out.missing.push_back("run " + id);
  }
  const auto analysis = study.json.at("analysis").get<std::string>();
  const auto dataset = study.json.at("dataset").get<std::string>();
  out.digests.push_back({analysis, digest_in(analysis, kAnalysisPrefix)});
  out.digests.push_back({dataset, digest_in(dataset, kDatasetPrefix)});
  HEBE_TRY(auto report, checks.study(root, study));
  out.problems = std::move(report.problems);
  out.not_checked = std::move(report.not_checked);
  out.says["provenance"] = study.json.at("provenance");
  out.says["qualified"] = study.json.at("study_qualified");
  out.says["verdict"] = study.json.at("verdict");
  const auto stored = load_analysis(root, analysis);
  if (stored) {
    out.says["board"] = text_or_null(stored->at("platform"), "board");
    out.says["driver"] = text_or_null(stored->at("platform"), "driver");
  } else if (stored.error().code == RefusalCode::not_found) {
    out.missing.push_back(analysis);
  }
  return out;
}

// A tune's own name is its place below the data root, wherever it lies now.
Result<ReceiptSubject> read_tune(const DataRoot& given, const fs::path& file,
                                 const SubjectChecks& checks) {
  const auto folder = fs::absolute(file).lexically_normal().parent_path();
  const auto root = folder.filename() == kTunes ? DataRoot(folder.parent_path()) : given;
  HEBE_TRY(const auto tune, load_record(file, kTuneSchema));
  ReceiptSubject out{"tune", file, {}, nothing_said(), {}, {}, {}};
  HEBE_TRY(const auto digest, sha256_of_file(file));
  out.digests = {{std::string(kTunes) + "/" + tune.id + ".json", digest}};
  bool qualified = true;
  for (const auto& shape : tune.json.at("shapes")) {
    qualified = qualified && shape.at("voided").is_null();
    if (shape.at("finalists").is_null()) continue;
    for (const auto& run : shape.at("finalists").at("runs")) {
      const auto seal = run.at("seal").get<std::string>();
      if (!root.find_sealed(seal)) out.missing.push_back("run with seal " + seal);
      out.digests.push_back({"run " + seal.substr(0, kSealDigitsInName), seal});
      qualified = qualified && run.at("qualified").get<bool>();
    }
  }
  HEBE_TRY(auto report, checks.tune(root, tune));
  out.problems = std::move(report.problems);
  out.not_checked = std::move(report.not_checked);
  out.says["provenance"] = tune.json.at("provenance");
  out.says["qualified"] = qualified;
  out.says["board"] = tune.json.at("board").at("name");
  out.says["driver"] = tune.json.at("driver");
  return out;
}

bool has_schema(const Json& json, std::string_view name) {
  return json.is_object() && json.value("schema", Json()) == name;
}

// Against the tunes of the data root that was given: a merged profile has no root of its own.
Status check_profile(ReceiptSubject& out, const DataRoot& root, const SubjectChecks& checks) {
  out.kind = "profile";
  HEBE_TRY(auto whole, checks.profile(root, out.place));
  out.missing = std::move(whole.absent);
  for (auto& [what, report] : whole.parts) {
    for (const auto& text : report.not_checked) out.not_checked.push_back(what + ": " + text);
    for (auto& p : report.problems) out.problems.push_back(std::move(p));
  }
  return {};
}

// The weakest of every member "provenance": one estimated row makes no measured profile.
std::optional<Provenance> weakest_provenance(const Json& json) {
  std::optional<Provenance> out;
  const auto take = [&](std::optional<Provenance> found) {
    if (found && (!out || *found > *out)) out = found;
  };
  if (!json.is_structured()) return out;
  for (const auto& [name, value] : json.items()) {
    if (json.is_object() && name == "provenance" && value.is_string())
      take(provenance_from(value.get<std::string>()));
    take(weakest_provenance(value));
  }
  return out;
}

Json says_of_file(const Json& json) {
  auto says = nothing_said();
  if (const auto provenance = weakest_provenance(json)) says["provenance"] = name_of(*provenance);
  if (!json.is_object()) return says;
  for (const char* name : {"verdict", "board", "driver"}) says[name] = text_or_null(json, name);
  for (const char* name : {"qualified", "study_qualified"})
    if (const auto hit = json.find(name); hit != json.end() && hit->is_boolean())
      says["qualified"] = *hit;
  return says;
}

Result<ReceiptSubject> read_plain(const DataRoot& root, const fs::path& file,
                                  const SubjectChecks& checks) {
  HEBE_TRY(const auto bytes, read_record(file, kMostBytes));
  ReceiptSubject out{"file", file, {}, nothing_said(), {}, {}, {}};
  const auto inside =
      fs::absolute(file).lexically_normal().lexically_relative(root.path().lexically_normal());
  const bool is_inside = !inside.empty() && *inside.begin() != "..";
  out.digests = {{is_inside ? inside.generic_string() : file.filename().string(), bytes.sha256}};
  if (const auto json = parse_json(bytes.bytes, file.string())) {
    if (has_schema(*json, kTuneSchema)) return read_tune(root, file, checks);
    out.says = says_of_file(*json);
    if (has_schema(*json, kProfileSchema)) HEBE_CHECK(check_profile(out, root, checks));
    if (has_schema(*json, kPlacementSchema)) HEBE_CHECK(checks.placement(file));
  }
  return out;
}

Result<ReceiptSubject> read_path(const DataRoot& root, fs::path path, const SubjectChecks& checks) {
  std::error_code ec;
  path = fs::absolute(path).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (!fs::exists(path, ec))
    return refuse(RefusalCode::not_found, "there is no such subject",
                  "give a run, a study, a tune or a file", path.string());
  if (!fs::is_directory(path, ec)) return read_plain(root, path, checks);
  if (fs::exists(path / "study.json", ec)) {
    HEBE_TRY(const auto study, load_study(root, path.string()));
    return read_study(root, study, checks);
  }
  HEBE_TRY(const auto run, root.find_run(path.string()));
  if (fs::exists(run / "manifest.json", ec) && fs::exists(run / "windows.jsonl", ec))
    return read_run(run);
  return refuse(RefusalCode::bad_argument, "this directory is neither a run nor a study",
                "give a run, a study, a tune or a file", path.string());
}

} // namespace

Result<ReceiptSubject> read_subject(const DataRoot& root, const std::string& name,
                                    const SubjectChecks& checks) {
  std::error_code ec;
  if (name.empty())
    return refuse(RefusalCode::bad_argument, "the subject has an empty name",
                  "give a run, a study, a tune or a file");
  if (name.find('/') != std::string::npos || fs::exists(name, ec))
    return read_path(root, name, checks);
  const auto run = root.find_run(name);
  const auto study = load_study(root, name);
  const auto tune = find_record(root.path() / kTunes, kTuneSchema, name, "hebe tune SPEC");
  const auto is_there = [](const auto& found) {
    return found || found.error().code != RefusalCode::not_found;
  };
  const int fitting = is_there(run) + is_there(study) + is_there(tune);
  if (fitting == 0)
    return refuse(RefusalCode::not_found, "no run, no study and no tune is named \"" + name + "\"",
                  "give a path, or part of an id", root.path().string());
  if (fitting > 1)
    return refuse(RefusalCode::bad_argument,
                  "\"" + name + "\" fits more than one of a run, a study and a tune",
                  "give more of the id");
  if (is_there(study)) {
    if (!study) return std::unexpected(study.error());
    return read_study(root, *study, checks);
  }
  if (is_there(tune)) {
    if (!tune) return std::unexpected(tune.error());
    return read_tune(root, tune->file, checks);
  }
  if (!run) return std::unexpected(run.error());
  return read_run(*run);
}

Result<std::optional<fs::path>> place_of_subject(const DataRoot& root, const std::string& kind,
                                                 const std::string& name) {
  if (kind == "run") return place_of_run(root, name);
  auto place = kind == "study" ? root.studies() / name : root.path() / name;
  if (kind == "study" && !name.starts_with(kStudyPrefix))
    return refuse(RefusalCode::bad_schema, "\"" + name + "\" is no study's name",
                  "restore the receipt from a copy");
  HEBE_CHECK(check_inside(root.path(), place));
  std::error_code ec;
  if (!fs::exists(place, ec)) return std::nullopt;
  return place;
}

} // namespace hebe::evidence
