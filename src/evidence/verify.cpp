#include "evidence/verify.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"
#include "evidence/qualification_store.hpp"
#include "evidence/qualified_arms.hpp"
#include "evidence/sealed_run.hpp"
#include "evidence/stored_run.hpp"
#include "evidence/telemetry.hpp"
#include "kernel/artifact_store.hpp"
#include "measure/consistency.hpp"
#include "measure/prediction.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kLargestManifest = 64 << 20;

class Verification {
public:
  explicit Verification(fs::path directory) { report_.directory = std::move(directory); }

  VerifyReport run() {
    if (manifest() && digests()) {
      if (auto status = recompute(); !status) problem(std::move(status).error());
    } else {
      report_.not_checked.push_back("analysis: the files are not the sealed ones");
    }
    artifacts();
    return std::move(report_);
  }

  VerifyReport run_digests() {
    if (manifest()) (void)digests();
    report_.not_checked.push_back("analysis: only digests were asked for");
    return std::move(report_);
  }

private:
  void problem(Refusal r) { report_.problems.push_back(std::move(r)); }
  void problem(RefusalCode code, const std::string& file, std::string what) {
    problem({code,
             std::move(what),
             (report_.directory / file).string(),
             "restore the run from a copy",
             {}});
  }
  std::string path(const char* name) const { return (report_.directory / name).string(); }

  bool manifest() {
    auto file = read_record(report_.directory / "manifest.json", kLargestManifest);
    if (!file) {
      problem(RefusalCode::digest_mismatch, "manifest.json",
              "the manifest is missing or unreadable: " + file.error().what);
      return false;
    }
    report_.seal = file->sha256;
    const auto name = report_.directory.filename().string();
    if (!name.ends_with("-" + report_.seal.substr(0, kSealDigitsInName)))
      problem(RefusalCode::digest_mismatch, "manifest.json",
              fmt::format("the manifest's digest begins with {}, the run is named {}",
                          report_.seal.substr(0, kSealDigitsInName), name));
    auto parsed = parse_json(file->bytes, path("manifest.json"));
    if (parsed)
      if (auto ok = check_schema(*parsed, "hebe.run.manifest/1", path("manifest.json")); !ok)
        parsed = std::unexpected(ok.error());
    if (!parsed) {
      problem(parsed.error());
      return false;
    }
    manifest_ = std::move(*parsed);
    if (report_.valid()) report_.passed.push_back("manifest: seal " + report_.seal);
    return true;
  }

  bool digests() {
    std::set<std::string> expected = {"manifest.json"};
    const auto before = report_.problems.size();
    for (const auto& f : manifest_.at("files")) {
      const auto name = f.at("path").get<std::string>();
      expected.insert(name);
      auto file = read_record(report_.directory / name, f.at("bytes").get<std::uint64_t>());
      if (!file) {
        problem(RefusalCode::digest_mismatch, name,
                "the file is missing, unreadable or too long: " + file.error().what);
      } else if (file->bytes.size() != f.at("bytes")) {
        problem(RefusalCode::digest_mismatch, name,
                fmt::format("required {} bytes, found {}", f.at("bytes").get<std::uint64_t>(),
                            file->bytes.size()));
      } else if (file->sha256 != f.at("sha256")) {
        problem(RefusalCode::digest_mismatch, name,
                fmt::format("required sha256 {}, found {}", f.at("sha256").get<std::string>(),
                            file->sha256));
      } else {
        files_[name] = std::move(file->bytes);
      }
    }
    for (const char* needed :
         {"plan.json", "environment.json", "windows.jsonl", "telemetry.parquet", "analysis.json"})
      if (!expected.contains(needed))
        problem(RefusalCode::bad_schema, "manifest.json",
                fmt::format("it does not list {}", needed));
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(report_.directory, ec))
      if (!expected.contains(entry.path().filename().string()))
        problem(RefusalCode::digest_mismatch, entry.path().filename().string(),
                "this file is not in the manifest");
    if (report_.problems.size() != before) return false;
    report_.passed.push_back(fmt::format("digests: {} files", files_.size()));
    return true;
  }

  Result<std::vector<Json>> lines(const char* name) const {
    std::vector<Json> out;
    std::string_view rest = files_.at(name);
    for (int number = 1; !rest.empty(); ++number) {
      const auto end = rest.find('\n');
      HEBE_TRY(auto line,
               parse_json(rest.substr(0, end), fmt::format("{}:{}", path(name), number)));
      out.push_back(std::move(line));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return out;
  }

  Status environment_agrees(const Json& environment, Provenance provenance) const {
    for (const auto& f : environment.at("facts"))
      if (f.at("name") == "board.provenance" && f.value("value", Json()) != name_of(provenance))
        return refuse(RefusalCode::analysis_mismatch,
                      fmt::format("the environment's board is {}, the windows are {}",
                                  f.value("value", Json()).dump(), name_of(provenance)),
                      {}, path("environment.json"));
    return {};
  }

  Status recompute() {
    HEBE_TRY(const auto plan_json, parse_json(files_.at("plan.json"), path("plan.json")));
    HEBE_TRY(const auto plan, measure::plan_from(plan_json, path("plan.json")));
    HEBE_TRY(const auto plan_id, content_id(plan_json));
    if (plan_id != manifest_.at("plan_id"))
      return refuse(RefusalCode::digest_mismatch,
                    "the plan's id is " + plan_id + ", the manifest says " +
                        manifest_.at("plan_id").get<std::string>(),
                    {}, path("plan.json"));
    HEBE_TRY(const auto environment,
             parse_json(files_.at("environment.json"), path("environment.json")));
    HEBE_CHECK(check_schema(environment, "hebe.environment/1", path("environment.json")));

    HEBE_TRY(const auto records, lines("windows.jsonl"));
    if (records.empty())
      return refuse(RefusalCode::bad_schema, "the file is empty", {}, path("windows.jsonl"));
    HEBE_TRY(const auto acquisition,
             measure::acquisition_from(records.front(), path("windows.jsonl") + ":1"));
    std::vector<measure::Window> windows;
    for (std::size_t i = 1; i < records.size(); ++i) {
      HEBE_TRY(auto w, measure::window_from(records[i],
                                            fmt::format("{}:{}", path("windows.jsonl"), i + 1)));
      if (w.reading.pair < 0 || static_cast<std::size_t>(w.reading.pair) >= plan.order.size())
        return refuse(RefusalCode::bad_schema,
                      fmt::format("pair {} is not in the plan", w.reading.pair), {},
                      fmt::format("{}:{}", path("windows.jsonl"), i + 1));
      windows.push_back(std::move(w));
    }
    HEBE_TRY(const auto samples,
             samples_from_parquet(files_.at("telemetry.parquet"), acquisition.samples.name,
                                  path("telemetry.parquet")));
    report_.passed.push_back(fmt::format("schemas: plan, environment, {} windows, {} samples",
                                         windows.size(), samples.size()));

    if (acquisition.provenance != provenance_from(manifest_.at("provenance").get<std::string>()))
      return refuse(RefusalCode::digest_mismatch,
                    fmt::format("its provenance is {}, that of the windows {}",
                                manifest_.at("provenance").get<std::string>(),
                                name_of(acquisition.provenance)),
                    {}, path("manifest.json"));
    HEBE_CHECK(environment_agrees(environment, acquisition.provenance));
    if (auto consistent = measure::check_consistency(plan, acquisition, windows); !consistent) {
      consistent.error().where = path("windows.jsonl");
      return consistent;
    }
    if (auto judged = measure::judge_windows(windows, samples, plan, acquisition); !judged) {
      judged.error().where = path("windows.jsonl");
      return judged;
    }
    for (std::size_t i = 0; i < windows.size(); ++i)
      if (auto where =
              first_difference(records[i + 1], to_json(windows[i], acquisition.provenance));
          !where.empty())
        return refuse(RefusalCode::analysis_mismatch,
                      "recomputed from the samples, a window differs at " + where, {},
                      fmt::format("{}:{}", path("windows.jsonl"), i + 2));
    HEBE_TRY(const auto analysis, measure::analyse(plan, plan_id, acquisition, windows));
    HEBE_TRY(const auto stored, parse_json(files_.at("analysis.json"), path("analysis.json")));
    HEBE_CHECK(check_schema(stored, "hebe.run.analysis/1", path("analysis.json")));
    if (auto where = first_difference(stored, analysis.json); !where.empty())
      return refuse(RefusalCode::analysis_mismatch,
                    "recomputed from the samples, the analysis differs at " + where, {},
                    path("analysis.json"));
    HEBE_CHECK(telemetry_agrees(files_.at("telemetry.parquet"), samples, windows, acquisition,
                                path("telemetry.parquet")));
    report_.passed.push_back("analysis: recomputed from the samples, verdict " +
                             stored.at("verdict").get<std::string>());
    report_.analysis = stored;
    report_.recomputed = analysis;
    HEBE_CHECK(calibration(plan));
    HEBE_CHECK(response(acquisition));
    HEBE_CHECK(qualification(plan));
    artifacts_["cubin"] = plan.cubins[0];
    for (const auto& [kind, digest] : plan.subject.at("artifacts").items())
      artifacts_[kind] = digest.get<std::string>();
    if (!plan.subject_b.is_null())
      for (const auto& [kind, digest] : plan.subject_b.at("artifacts").items())
        artifacts_["arm B's " + kind] = digest.get<std::string>();
    return {};
  }

  // A control's prediction rests on a run of its own: is that what it says?
  Status calibration(const measure::Plan& plan) {
    if (plan.prediction.is_null()) return {};
    const auto& c = plan.prediction.at("calibration");
    const auto id = c.at("run_id").get<std::string>();
    const auto root = root_of_run(report_.directory);
    const auto place = root ? place_of_run(*root, id) : std::nullopt;
    if (!place) {
      report_.not_checked.push_back("calibration run " + id + ": not in this data root");
      return {};
    }
    HEBE_TRY(const auto run, read_stored_run(*place));
    if (run.seal != c.at("seal"))
      return refuse(RefusalCode::analysis_mismatch,
                    fmt::format("the calibration's seal is {}, that of run {} is {}",
                                c.at("seal").get<std::string>(), id, run.seal),
                    {}, path("plan.json"));
    if (const auto where = measure::calibration_fault(c, run.analysis); !where.empty())
      return refuse(RefusalCode::analysis_mismatch,
                    "the calibration differs from run " + id + " at " + where, {},
                    path("plan.json"));
    report_.passed.push_back("calibration: the prediction's numbers are those of run " + id);
    return {};
  }

  // The pre-roll rests on a response record: is that what it says?
  Status response(const measure::Acquisition& a) {
    const auto& followed = a.behaviour.response.record;
    if (!followed) return {};
    const auto root = root_of_run(report_.directory);
    std::error_code ec;
    if (!root || !fs::exists(qualifications_folder(*root, QualificationKind::response) /
                                 (followed->id + ".json"),
                             ec)) {
      report_.not_checked.push_back("response record " + followed->id + ": not in this data root");
      return {};
    }
    HEBE_TRY(const auto stored,
             load_qualification(*root, QualificationKind::response, followed->id));
    const auto& found = stored.json.at("findings");
    const Json says{{"id", stored.id},
                    {"source", found.at("primary")},
                    {"lag_s", found.at("lag_s")},
                    {"pre_roll_s", found.at("pre_roll_s")},
                    {"minimum_window_s", found.at("minimum_window_s")}};
    if (const auto where =
            first_difference(says, measure::to_json(a.behaviour.response), "response");
        !where.empty())
      return refuse(RefusalCode::analysis_mismatch,
                    "the acquisition differs from response record " + stored.id + " at " + where,
                    {}, path("windows.jsonl"));
    report_.passed.push_back("response: the pre-roll is that of record " + stored.id);
    return {};
  }

  // Arms that were qualified: are they the kernels of that record?
  Status qualification(const measure::Plan& plan) {
    if (plan.qualification.is_null()) return {};
    const auto id = plan.qualification.at("record").get<std::string>();
    const auto root = root_of_run(report_.directory);
    bool compared = false;
    if (root) {
      HEBE_TRY(compared, check_qualified_arms(*root, plan, path("plan.json")));
    }
    if (compared)
      report_.passed.push_back("qualification: both cubins are those of record " + id);
    else
      report_.not_checked.push_back("qualification " + id + ": not in this data root");
    return {};
  }

  void artifacts() {
    const auto root = root_of_run(report_.directory);
    if (artifacts_.empty()) return;
    std::error_code ec;
    if (!root || !fs::is_directory(root->path() / "artifacts", ec)) {
      report_.not_checked.push_back(
          "artifacts: this run does not lie in a data root that has them");
      return;
    }
    const kernel::ArtifactStore store(root->path());
    int whole = 0;
    for (const auto& [kind, digest] : artifacts_) {
      if (!store.has(digest)) {
        report_.not_checked.push_back(kind + " " + digest + ": not in this data root");
      } else if (auto blob = store.get(digest); !blob) {
        problem(blob.error());
      } else {
        ++whole;
      }
    }
    if (whole > 0)
      report_.passed.push_back(fmt::format("artifacts: {} of {}", whole, artifacts_.size()));
  }

  VerifyReport report_;
  Json manifest_;
  std::map<std::string, std::string> files_;
  std::map<std::string, std::string> artifacts_; ///< kind to digest
};

Result<VerifyReport> verified(const fs::path& directory, VerifyReport (Verification::*how)()) {
  std::error_code ec;
  if (!fs::is_directory(directory, ec))
    return refuse(RefusalCode::not_found, "there is no such run directory", {}, directory.string());
  try {
    auto whole = fs::absolute(directory).lexically_normal();
    if (!whole.has_filename()) whole = whole.parent_path(); // a trailing slash
    return (Verification(std::move(whole)).*how)();
  } catch (const Json::exception& e) { // a member that the schema does not ask for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), "restore the run from a copy",
                  directory.string());
  }
}

} // namespace

Result<VerifyReport> verify_run(const fs::path& directory) {
  return verified(directory, &Verification::run);
}

Result<VerifyReport> verify_digests(const fs::path& directory) {
  return verified(directory, &Verification::run_digests);
}

Result<std::optional<fs::path>> verified_run(const DataRoot& root, const std::string& run_id,
                                             const std::string& seal) {
  const auto found = place_of_run(root, run_id);
  if (!found) return std::nullopt;
  HEBE_TRY(const auto report, verify_run(*found));
  if (!report.valid()) return std::unexpected(report.problems.front());
  if (report.seal != seal) // its name has the beginning of its seal
    return refuse(RefusalCode::digest_mismatch,
                  fmt::format("this run has seal {}, due is {}", report.seal, seal),
                  "restore the run from a copy", found->string());
  return found;
}

} // namespace hebe::evidence
