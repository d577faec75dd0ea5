#include "evidence/qualification_store.hpp"

#include "core/build_identity.hpp"
#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/run_tree.hpp"
#include "evidence/source_readings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostBytes = 256ULL << 20;

std::string schema_of(QualificationKind kind) {
  return fmt::format("hebe.qualification.{}/1", name_of(kind));
}

Result<StoredQualification> load_id(const DataRoot& root, QualificationKind kind,
                                    const std::string& id) {
  return load_record(qualifications_folder(root, kind) / (id + ".json"), schema_of(kind));
}

std::string when_of(const Json& j) {
  return j.at("when").is_null() ? std::string() : j.at("when").get<std::string>();
}

} // namespace

std::string_view name_of(QualificationKind kind) {
  return kind == QualificationKind::meter ? "meter" : "response";
}

fs::path qualifications_folder(const DataRoot& root, QualificationKind kind) {
  return root.path() / "qualifications" / name_of(kind);
}

Result<StoredQualification> store_qualification(const DataRoot& root, QualificationKind kind,
                                                const QualificationParts& p) {
  HEBE_TRY(const auto readings, readings_parquet(p.recording));
  const auto digest = sha256_hex(readings);
  std::size_t rows = 0;
  for (const auto& s : p.recording.sources) rows += s.readings.size();
  const auto& b = p.subject;
  StoredQualification s;
  s.json = {
      {"schema", schema_of(kind)},
      {"provenance", p.provenance},
      {"when", p.when ? Json(*p.when) : Json(nullptr)},
      {"hebe_version", kVersion},
      {"board",
       {{"vendor", b.vendor}, {"name", b.name}, {"uuid", b.uuid}, {"pci_bus_id", b.pci_bus_id}}},
      {"driver", b.driver},
      {"boot", b.boot},
      {"load", p.load},
      {"recording", measure::to_json(p.recording)},
      {"readings",
       {{"path", "artifacts/" + digest + ".parquet"},
        {"sha256", digest},
        {"bytes", readings.size()},
        {"rows", rows}}},
      {"findings", p.findings}};
  HEBE_CHECK(check_schema(s.json, schema_of(kind), "the qualification"));
  const auto raw = root.path() / "artifacts" / (digest + ".parquet");
  HEBE_CHECK(check_inside(root.path(), raw));
  // The readings first: a qualification never names what is not there.
  HEBE_TRY([[maybe_unused]] const auto had, write_once(raw, readings));
  return store_record(root, qualifications_folder(root, kind), std::move(s.json));
}

Result<StoredQualification> load_qualification(const DataRoot& root, QualificationKind kind,
                                               const std::string& name) {
  return find_record(qualifications_folder(root, kind), schema_of(kind), name,
                     fmt::format("hebe probe-{}", name_of(kind)));
}

Result<std::vector<std::string>> newest_of_each_board(const DataRoot& root,
                                                      QualificationKind kind) {
  std::map<std::string, std::pair<std::string, std::string>> newest; // uuid: when, id
  for (const auto& id : record_ids(qualifications_folder(root, kind))) {
    HEBE_TRY(const auto one, load_id(root, kind, id));
    auto& best = newest[one.json.at("board").at("uuid").get<std::string>()];
    if (best.second.empty() || when_of(one.json) >= best.first) best = {when_of(one.json), id};
  }
  std::vector<std::string> out;
  for (auto& [uuid, found] : newest) out.push_back(std::move(found.second));
  return out;
}

Result<measure::Recording> recording_of(const DataRoot& root, const StoredQualification& stored) {
  const auto& named = stored.json.at("readings");
  const auto file =
      root.path() / "artifacts" / (named.at("sha256").get<std::string>() + ".parquet");
  HEBE_TRY(const auto bytes, read_record(file, kMostBytes));
  if (bytes.sha256 != named.at("sha256"))
    return refuse(RefusalCode::digest_mismatch,
                  fmt::format("the readings have digest {}, required {}", bytes.sha256,
                              named.at("sha256").get<std::string>()),
                  "restore the file from a copy, or probe again", file.string());
  HEBE_TRY(auto recording, measure::recording_from(stored.json.at("recording")));
  HEBE_CHECK(readings_from_parquet(bytes.bytes, recording, file.string()));
  // How many there were of each is part of what was sealed.
  if (measure::to_json(recording) != stored.json.at("recording"))
    return refuse(RefusalCode::bad_schema, "the readings are not those that the record describes",
                  "restore both from a copy", file.string());
  return recording;
}

Result<VerifyReport> verify_qualification(const DataRoot& root, QualificationKind kind,
                                          const std::string& name, const FindAgain& find) {
  HEBE_TRY(const auto stored, load_qualification(root, kind, name));
  VerifyReport report;
  report.directory = stored.file;
  report.seal = stored.id;
  report.passed = {"content name", "schema"};
  const auto recording = recording_of(root, stored);
  if (!recording) {
    report.problems.push_back(recording.error());
    return report;
  }
  report.passed.push_back("digest of the readings");
  const auto again = find(*recording, stored.json.at("findings"));
  if (!again) {
    report.problems.push_back(again.error());
    return report;
  }
  if (const auto difference = first_difference(stored.json.at("findings"), *again, "findings");
      !difference.empty())
    report.problems.push_back({RefusalCode::analysis_mismatch,
                               "the findings do not follow from the readings: " + difference,
                               stored.file.string(),
                               "probe again",
                               {}});
  else
    report.passed.push_back("findings computed again from the readings");
  return report;
}

Result<StoredQualification> current_qualification(const DataRoot& root, QualificationKind kind,
                                                  const std::string& uuid,
                                                  const std::string& driver,
                                                  const std::string& boot) {
  const auto next = fmt::format("run `hebe probe-{}` on this board", name_of(kind));
  std::optional<StoredQualification> newest, current;
  std::string damaged;
  for (const auto& id : record_ids(qualifications_folder(root, kind))) {
    auto one = load_id(root, kind, id);
    if (!one) {
      damaged = one.error().where + ": " + one.error().what;
      continue; // a damaged file must not hide a sound one
    }
    if (one->json.at("board").at("uuid") != uuid) continue;
    const bool here = one->json.at("driver") == driver && one->json.at("boot") == boot;
    auto& best = here ? current : newest;
    if (!best || when_of(one->json) >= when_of(best->json)) best = std::move(*one);
  }
  if (current) {
    if (current->json.at("findings").at("qualified").get<bool>()) return std::move(*current);
    return refuse(RefusalCode::meter_not_qualified,
                  "the board's meter was probed and not qualified: " +
                      current->json.at("findings").at("refusal").get<std::string>(),
                  "another driver may meter this board; then " + next, current->file.string());
  }
  if (!newest)
    return refuse(RefusalCode::meter_not_qualified,
                  damaged.empty() ? "this board's meter was never probed here"
                                  : "the only qualifications here are damaged: " + damaged,
                  next, uuid);
  std::string changed;
  const auto compare = [&](const char* what, const std::string& then, const std::string& now) {
    if (then != now)
      changed += fmt::format("{}{}: \"{}\" then, \"{}\" now", changed.empty() ? "" : "; ", what,
                             then, now);
  };
  compare("driver", newest->json.at("driver"), driver);
  compare("boot", newest->json.at("boot"), boot);
  return refuse(RefusalCode::meter_not_qualified,
                "the meter's qualification has expired: " + changed, next, newest->file.string());
}

} // namespace hebe::evidence
