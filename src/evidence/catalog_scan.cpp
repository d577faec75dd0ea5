#include "evidence/catalog_scan.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"
#include "evidence/sealed_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kLargestDocument = 64 << 20; // a JSON file that is read whole

constexpr std::size_t kStampLength = 16; // YYYYMMDDTHHMMSSZ

/// <time>-<kind>-<first digits of the seal>
bool is_run_name(std::string_view name) {
  if (name.size() < kStampLength + 3 + kSealDigitsInName) return false;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < kStampLength; ++i)
    if (i == 8 ? name[i] != 'T' : i == 15 ? name[i] != 'Z' : !digit(name[i])) return false;
  const auto seal = name.substr(name.size() - kSealDigitsInName);
  return name[kStampLength] == '-' && name[name.size() - kSealDigitsInName - 1] == '-' &&
         std::all_of(seal.begin(), seal.end(),
                     [&](char c) { return digit(c) || (c >= 'a' && c <= 'f'); });
}

std::optional<double> number_in(const Json& object, const std::string& name) {
  const auto hit = object.find(name);
  if (hit == object.end() || !hit->is_number()) return std::nullopt;
  return hit->get<double>();
}

std::optional<std::string> text_in(const Json& object, const std::string& name) {
  const auto hit = object.find(name);
  if (hit == object.end() || !hit->is_string()) return std::nullopt;
  return hit->get<std::string>();
}

/// A member that is an object, else an empty one.
const Json& object_in(const Json& object, const char* name) {
  static const Json kNone = Json::object();
  const auto hit = object.find(name);
  return hit != object.end() && hit->is_object() ? *hit : kNone;
}

CatalogEffect effect_of(const Json& analysis, const char* quantity) {
  const auto& contrast = object_in(analysis, quantity);
  const auto shown = "interval_" + text_in(contrast, "interval_shown").value_or("");
  const auto& interval = object_in(contrast, shown.c_str());
  return {number_in(contrast, "effect_percent"), number_in(interval, "low_percent"),
          number_in(interval, "high_percent")};
}

class Scan {
public:
  Scan(const DataRoot& root, const fs::path& run) : root_(root), run_(run) {}

  ScannedRun result() {
    try {
      if (name() && files() && manifest() && documents()) return std::move(row_);
    } catch (const Json::exception& e) {
      fail("schema", {}, e.what());
    }
    return std::move(problem_);
  }

private:
  /// Always false: the scan ends at the first problem.
  bool fail(const char* kind, const std::string& file, std::string what) {
    problem_ = {shown_path(root_, file.empty() ? run_ : run_ / file), kind, std::move(what)};
    return false;
  }

  bool name() {
    row_.run_id = run_.filename().string();
    row_.directory = shown_path(root_, run_);
    if (!is_run_name(row_.run_id)) return fail("foreign", {}, "a directory that is no run's name");
    const auto day = fmt::format("{}/{}/{}", row_.run_id.substr(0, 4), row_.run_id.substr(4, 2),
                                 row_.run_id.substr(6, 2));
    if (row_.directory != "runs/" + day + "/" + row_.run_id)
      return fail("misplaced", {}, "a run of this name belongs in runs/" + day);
    return true;
  }

  bool files() {
    auto entries = list_folder(run_);
    if (!entries) return fail("unreadable", {}, entries.error().what);
    for (auto& e : *entries) {
      if (e.type == fs::file_type::symlink)
        return fail("symbolic_link", e.name, "a symbolic link in a sealed run");
      if (e.type != fs::file_type::regular) return fail("foreign", e.name, "not a regular file");
      present_.insert(std::move(e.name));
    }
    return true;
  }

  bool manifest() {
    const auto file = read("manifest.json");
    if (!file) return false;
    row_.seal = file->sha256;
    if (!row_.run_id.ends_with("-" + row_.seal.substr(0, kSealDigitsInName)))
      return fail("seal", "manifest.json",
                  fmt::format("the manifest's digest begins with {}, the run's name ends with {}",
                              row_.seal.substr(0, kSealDigitsInName),
                              row_.run_id.substr(row_.run_id.size() - kSealDigitsInName)));
    auto json = parsed(file->bytes, "manifest.json", "hebe.run.manifest/1");
    if (!json) return false;
    row_.plan_id = json->at("plan_id").get<std::string>();
    row_.provenance = json->at("provenance").get<std::string>();
    row_.campaign = text_in(object_in(*json, "campaign"), "id");
    row_.job = text_in(object_in(*json, "campaign"), "job");
    row_.bytes = static_cast<std::int64_t>(file->bytes.size());
    present_.erase("manifest.json");
    for (const auto& f : json->at("files")) {
      const auto path = f.at("path").get<std::string>();
      sealed_[path] = {f.at("bytes").get<std::uint64_t>(), f.at("sha256").get<std::string>()};
      row_.bytes += f.at("bytes").get<std::int64_t>();
      std::error_code ec;
      const auto size = fs::file_size(run_ / path, ec);
      if (ec) return fail("unreadable", path, "the file is missing: " + ec.message());
      if (size != sealed_[path].first)
        return fail("digest", path,
                    fmt::format("required {} bytes, found {}", sealed_[path].first, size));
      present_.erase(path);
    }
    if (!present_.empty()) return fail("foreign", *present_.begin(), "not in the run's manifest");
    return true;
  }

  bool documents() {
    const auto plan = document("plan.json", "hebe.run.plan/1");
    if (!plan) return false;
    row_.kind = plan->at("kind").get<std::string>();
    row_.tier = text_in(object_in(*plan, "tier"), "name");
    row_.case_name = text_in(object_in(object_in(*plan, "subject"), "launch"), "name");
    const auto environment = document("environment.json", "hebe.environment/1");
    if (!environment) return false;
    for (const auto& fact : environment->at("facts")) {
      const auto said = text_in(fact, "value");
      const auto named = text_in(fact, "name").value_or("");
      if (named == "device.uuid") row_.device_uuid = said;
      if (named == "device.name") row_.device_name = said;
      if (named == "board.driver") row_.driver = said;
      if (named == "run.started") row_.started = said;
    }
    const auto analysis = document("analysis.json", "hebe.run.analysis/1");
    if (!analysis) return false;
    row_.verdict = text_in(*analysis, "verdict");
    if (const auto q = analysis->find("qualified"); q != analysis->end() && q->is_boolean())
      row_.qualified = q->get<bool>();
    row_.energy = effect_of(*analysis, "energy");
    row_.latency = effect_of(*analysis, "latency");
    const auto& arm = object_in(object_in(*analysis, "arms"), "A");
    row_.energy_per_launch_a_j = number_in(arm, "energy_per_launch_j");
    row_.latency_a_s = number_in(arm, "latency_s");
    return true;
  }

  std::optional<HashedBytes> read(const std::string& file) {
    auto bytes = read_record(run_ / file, kLargestDocument);
    if (bytes) return std::move(*bytes);
    fail("unreadable", file, bytes.error().what);
    return std::nullopt;
  }

  std::optional<Json> parsed(const std::string& bytes, const std::string& file,
                             const char* schema) {
    auto json = parse_json(bytes, file);
    if (json)
      if (auto fits = check_schema(*json, schema, file); !fits)
        json = std::unexpected(std::move(fits).error());
    if (json) return std::move(*json);
    fail("schema", file, json.error().what);
    return std::nullopt;
  }

  std::optional<Json> document(const std::string& file, const char* schema) {
    const auto hit = sealed_.find(file);
    if (hit == sealed_.end()) {
      fail("schema", "manifest.json", "it does not list " + file);
      return std::nullopt;
    }
    const auto read_now = read(file);
    if (!read_now) return std::nullopt;
    if (read_now->sha256 != hit->second.second) {
      fail("digest", file,
           fmt::format("required sha256 {}, found {}", hit->second.second, read_now->sha256));
      return std::nullopt;
    }
    return parsed(read_now->bytes, file, schema);
  }

  const DataRoot& root_;
  const fs::path& run_;
  CatalogRun row_;
  CatalogProblem problem_;
  std::set<std::string> present_; ///< files that nothing has named yet
  std::map<std::string, std::pair<std::uint64_t, std::string>> sealed_; ///< size, digest
};

} // namespace

std::string shown_path(const DataRoot& root, const fs::path& path) {
  const auto raw = path.lexically_relative(root.path()).string();
  std::string out;
  const bool is_text = canonical_json(Json(raw)).has_value(); // refuses what is not UTF-8
  for (const char c : raw) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text))
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

CatalogProblem problem_of(const DataRoot& root, const TreeEntry& entry) {
  const auto kind = [&] {
    switch (entry.kind) {
    case TreeKind::half_written:
      return "half_written";
    case TreeKind::captured:
      return "not_compacted";
    case TreeKind::symbolic_link:
      return "symbolic_link";
    case TreeKind::unreadable:
      return "unreadable";
    case TreeKind::run:
    case TreeKind::foreign:
      break;
    }
    return "foreign";
  }();
  return {shown_path(root, entry.path), kind, entry.what};
}

ScannedRun scan_run(const DataRoot& root, const fs::path& run) { return Scan(root, run).result(); }

} // namespace hebe::evidence
