#include "evidence/receipt.hpp"

#include "core/build_identity.hpp"
#include "core/files.hpp"
#include "core/new_file.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/dsse.hpp"
#include "evidence/receipt_words.hpp"
#include "evidence/sealed_run.hpp"

#include <fmt/format.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kDay_us = 86'400'000'000;
constexpr int kMostDays = 36'500;
constexpr std::uint64_t kMostBytes = 64ULL << 20;

Status check_may_be_signed(const ReceiptSubject& subject, std::optional<int> valid_days) {
  if (valid_days && (*valid_days < 1 || *valid_days > kMostDays))
    return refuse(
        RefusalCode::bad_argument,
        fmt::format("valid for {} days; 1 to {} can be asked for", *valid_days, kMostDays),
        "choose another --valid-days, or none for no end");
  if (!subject.problems.empty()) {
    auto refusal = subject.problems.front();
    refusal.what =
        fmt::format("the {} does not verify, so it is not signed: {}", subject.kind, refusal.what);
    return std::unexpected(std::move(refusal));
  }
  if (subject.missing.empty()) return {};
  return refuse(RefusalCode::not_found,
                fmt::format("the {} cannot be verified here, so it is not signed: {} not in the "
                            "data root, and {} more",
                            subject.kind, subject.missing.front(), subject.missing.size() - 1),
                "sign where all of it is", subject.place.string());
}

} // namespace

std::string claim_of(const std::string& kind, const Json& provenance) {
  std::string text = "Hebe read these bytes when the receipt was signed. It did not verify what "
                     "they say.";
  if (kind == "run")
    text = "Hebe verified this run when the receipt was signed: every digest and schema, and the "
           "analysis computed again from the samples.";
  if (kind == "study")
    text = "Hebe verified this study when the receipt was signed: every digest and schema, each "
           "run computed again from its samples, and the study's analysis from the runs.";
  if (kind == "tune")
    text = "Hebe verified this tune when the receipt was signed: digest and schema, every cost "
           "computed again from its readings, and each finalist's run from its samples.";
  if (kind == "profile")
    text = "Hebe verified this profile when the receipt was signed: schema, every row against the "
           "tune that it rests on, those tunes' costs computed again from their readings, and each "
           "finalist's run from its samples.";
  if (provenance == "simulated") text += " Simulated: nothing was measured.";
  if (provenance == "estimated") text += " Estimated: no meter saw this.";
  return text;
}

Result<Json> receipt_statement(const ReceiptSubject& subject, const Clock& clock,
                               std::optional<int> valid_days) {
  HEBE_CHECK(check_may_be_signed(subject, valid_days));
  const auto now_us = clock.wall_us();
  auto predicate = subject.says;
  predicate.update({{"schema", "hebe.receipt/1"},
                    {"kind", subject.kind},
                    {"hebe", fmt::format("{} ({})", kVersion, kGit)},
                    {"signed", utc_stamp(kReceiptTime, now_us)},
                    {"expires", nullptr},
                    {"not_checked", subject.not_checked},
                    {"claim", claim_of(subject.kind, subject.says.at("provenance"))}});
  if (valid_days) predicate["expires"] = utc_stamp(kReceiptTime, now_us + *valid_days * kDay_us);
  HEBE_CHECK(check_schema(predicate, "hebe.receipt/1", "the receipt"));
  return Json{{"_type", kStatementType},
              {"subject", subject_list(subject.digests)},
              {"predicateType", kReceiptPredicateType},
              {"predicate", predicate}};
}

Result<std::string> signed_receipt(const Json& statement, const SigningKey& key) {
  Envelope envelope{std::string(kReceiptPayloadType), {}, {}};
  HEBE_TRY(envelope.payload, canonical_json(statement));
  HEBE_CHECK(add_signature(envelope, key));
  return envelope_line(envelope);
}

Json subject_list(const std::vector<NamedDigest>& digests) {
  Json out = Json::array();
  for (const auto& d : digests)
    out.push_back({{"name", d.name}, {"digest", {{"sha256", d.sha256}}}});
  return out;
}

Result<fs::path> store_receipt(const DataRoot& root, const std::string& line) {
  const auto file = root.path() / "receipts" / (sha256_hex(line) + std::string(kReceiptSuffix));
  HEBE_CHECK(check_inside(root.path(), file));
  HEBE_CHECK(make_directories(file.parent_path()));
  auto written = write_unless_there(file, line + "\n", 0444);
  // Ed25519 is deterministic: the same statement in the same second is the same receipt.
  if (!written && written.error().code == RefusalCode::already_exists) {
    HEBE_TRY(const auto there, read_record(file, kMostBytes));
    if (there.bytes == line + "\n") return file;
  }
  if (!written) return std::unexpected(std::move(written).error());
  return file;
}

Result<fs::path> find_receipt(const DataRoot& root, const std::string& name) {
  std::error_code ec;
  if (name.find('/') != std::string::npos || fs::exists(name, ec)) return fs::path(name);
  const auto folder = root.path() / "receipts";
  std::vector<fs::path> hits;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (const auto file = entry.path().filename().string(); file.ends_with(kReceiptSuffix) &&
                                                            !file.starts_with('.') &&
                                                            file.find(name) != std::string::npos)
      hits.push_back(entry.path());
  if (hits.size() == 1) return hits.front();
  if (hits.empty())
    return refuse(RefusalCode::not_found, "no receipt is named \"" + name + "\"",
                  "give a file, or part of a name below " + folder.string());
  return refuse(RefusalCode::bad_argument,
                fmt::format("\"{}\" fits {} receipts", name, hits.size()), "give more of the name");
}

Result<std::vector<std::string>> receipt_lines(const fs::path& file) {
  std::error_code ec;
  if (fs::symlink_status(file, ec).type() == fs::file_type::not_found)
    return refuse(RefusalCode::not_found, "there is no such receipt", {}, file.string());
  HEBE_TRY(const auto bytes, read_record(file, kMostBytes));
  std::vector<std::string> out;
  std::string_view rest = bytes.bytes;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (out.empty())
    return refuse(RefusalCode::bad_schema, "it holds no receipt", "restore it from a copy",
                  file.string());
  // A receipt that store_receipt named is its one line and no other.
  const auto name = file.filename().string();
  const auto digest = name.substr(0, 64);
  if (name.size() == 64 + kReceiptSuffix.size() && name.ends_with(kReceiptSuffix) &&
      digest.find_first_not_of("0123456789abcdef") == std::string::npos &&
      (sha256_hex(out.front()) != digest || bytes.bytes != out.front() + "\n"))
    return refuse(RefusalCode::digest_mismatch,
                  "it is not the receipt that it is named after: its digest is " +
                      sha256_hex(out.front()),
                  "restore it from a copy", file.string());
  return out;
}

} // namespace hebe::evidence
