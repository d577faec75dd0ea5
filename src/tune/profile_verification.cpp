// Rows of a profile against what their tunes give when they are computed again.
#include "core/files.hpp"
#include "core/sha256.hpp"
#include "tune/disagreement.hpp"
#include "tune/tune.hpp"
#include "tune/tune_verification.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostBytes = 64ULL << 20;
constexpr std::size_t kDigestDigits = 16; ///< of a profile's name

void problem(evidence::VerifyReport& report, RefusalCode code, std::string what,
             const std::string& where) {
  report.problems.push_back({code, std::move(what), where, "restore the profile from a copy", {}});
}

// What expiry did to a row is no disagreement; anything that makes it say more is.
void compare_row(evidence::VerifyReport& report, const ProfileRow& recorded,
                 const VerifiedTune& tune, const std::string& file) {
  const auto where = file + ": " + text_of(recorded.key);
  const auto* due = tune.rows.find(recorded.key);
  if (due == nullptr && tune.not_known.contains(recorded.key))
    return report.not_checked.push_back(text_of(recorded.key) +
                                        ": its tune could not be computed again so far");
  if (due == nullptr)
    return problem(report, RefusalCode::analysis_mismatch,
                   "recorded a row, recomputed: its tune gives none of this key", where);
  auto expected = *due;
  if (!recorded.downgraded.empty() &&
      recorded.meter.provenance > expected.meter.provenance) // weaker ones come later
    expected.meter.provenance = recorded.meter.provenance;
  expected.downgraded = recorded.downgraded;
  if (!recorded.qualified) expected.qualified.reset(); // from before
  if (!recorded.objective) expected.objective.reset();
  auto found = disagreements(json_of(recorded), json_of(expected), where);
  for (auto& f : found) {
    f.next = "restore the profile from a copy";
    report.problems.push_back(std::move(f));
  }
}

// A profile that a tune named after its bytes.
void check_name(evidence::VerifyReport& report, const fs::path& file) {
  const auto stem = file.stem().string();
  const auto dash = stem.rfind('-');
  if (dash == std::string::npos || stem.size() - dash - 1 != kDigestDigits) return;
  const auto named = stem.substr(dash + 1);
  if (named.find_first_not_of("0123456789abcdef") != std::string::npos) return;
  const auto bytes = read_record(file, kMostBytes);
  if (!bytes) return report.problems.push_back(bytes.error());
  if (!bytes->sha256.starts_with(named))
    problem(report, RefusalCode::digest_mismatch,
            fmt::format("its digest begins with {}, it is named {}",
                        bytes->sha256.substr(0, kDigestDigits), named),
            file.string());
}

// Profiles of the data root that name this tune.
std::vector<fs::path> profiles_with(const evidence::DataRoot& root, const std::string& tune) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(profiles_of(root), ec)) {
    if (entry.path().extension() != ".json") continue;
    const auto bytes = read_record(entry.path(), kMostBytes);
    if (bytes && bytes->bytes.find(tune) != std::string::npos) out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

Result<Profile> checked_profile(evidence::VerifyReport& report, const fs::path& file) {
  report.directory = file;
  check_name(report, file);
  auto profile = read_profile(file);
  if (!profile) report.problems.push_back(profile.error());
  return profile;
}

void append(evidence::PartsReport& to, evidence::PartsReport from) {
  for (auto& part : from.parts) to.parts.push_back(std::move(part));
  to.complete = to.complete && from.complete;
  to.absent.insert(to.absent.end(), from.absent.begin(), from.absent.end());
}

} // namespace

Result<evidence::PartsReport> verify_tune_and_profile(const evidence::DataRoot& root,
                                                      const evidence::StoredRecord& record,
                                                      const FinalistOf& finalist) {
  HEBE_TRY(auto tune, verify_tune(record, finalist));
  auto out = std::move(tune.report);
  const auto files = profiles_with(root, record.id);
  if (files.empty()) out.missing(out.part("profile"), "the profile with this tune's rows");
  for (const auto& file : files) {
    auto& report = out.part("profile " + file.filename().string());
    const auto profile = checked_profile(report, file);
    if (!profile) continue;
    std::size_t rows = 0;
    for (const auto& [key, row] : profile->rows())
      if (row.study == record.id) {
        compare_row(report, row, tune, file.string());
        ++rows;
      }
    if (report.valid()) report.passed.push_back(fmt::format("{} rows held against the tune", rows));
  }
  return out;
}

Result<evidence::PartsReport> verify_profile(const evidence::DataRoot& root, const fs::path& file) {
  HEBE_TRY(const auto profile, read_profile(file));
  evidence::PartsReport out;
  auto& own = out.part("profile " + file.string());
  own.directory = file;
  own.passed.push_back("schema, and what every row must be");
  check_name(own, file);
  std::map<std::string, std::optional<VerifiedTune>> tunes;
  std::size_t compared = 0;
  for (const auto& [key, row] : profile.rows()) {
    if (!row.study) {
      out.missing(own, text_of(key) + ": the tune (the row names none)");
      continue;
    }
    const auto id = *row.study;
    if (!tunes.contains(id)) {
      tunes[id].reset();
      const auto place = tunes_of(root) / (id + ".json");
      std::error_code ec;
      if (id.find('/') != std::string::npos || !fs::exists(place, ec)) {
        out.missing(out.part("tune " + id), "the record");
      } else if (auto record = evidence::load_record(place, "hebe.tune/1"); !record) {
        out.part("tune " + id).problems.push_back(std::move(record).error());
      } else {
        HEBE_TRY(auto tune, verify_tune(*record, sealed_finalists(root)));
        append(out, std::move(tune.report));
        tunes[id] = std::move(tune);
      }
    }
    if (!tunes.at(id)) continue;
    compare_row(own, row, *tunes.at(id), file.string());
    ++compared;
  }
  if (own.valid()) own.passed.push_back(fmt::format("{} rows held against their tunes", compared));
  return out;
}

} // namespace hebe::tune
