#include "evidence/content_record.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostBytes = 256ULL << 20;

std::string when_of(const Json& j) {
  const auto when = j.find("when");
  return when == j.end() || when->is_null() ? std::string() : when->get<std::string>();
}

} // namespace

Result<bool> write_once(const fs::path& file, std::string_view bytes) {
  std::error_code ec;
  if (!fs::exists(fs::symlink_status(file, ec))) {
    HEBE_CHECK(make_directories(file.parent_path()));
    HEBE_CHECK(write_file_whole(file, bytes));
    return false;
  }
  HEBE_TRY(const auto there, read_record(file, kMostBytes));
  if (there.bytes != bytes)
    return refuse(RefusalCode::digest_mismatch, "another content lies under this content's name",
                  "move it away; it is damaged", file.string());
  return true;
}

std::vector<std::string> record_ids(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (const auto& p = entry.path(); p.extension() == ".json" && p.stem().string().size() == 64)
      out.push_back(p.stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

Result<StoredRecord> store_record(const DataRoot& root, const fs::path& folder, Json json) {
  HEBE_CHECK(check_schema(json, json.at("schema").get<std::string>(), "the record"));
  HEBE_TRY(const auto text, canonical_json(json));
  StoredRecord out;
  out.id = sha256_hex(text);
  out.file = folder / (out.id + ".json");
  out.json = std::move(json);
  HEBE_CHECK(check_inside(root.path(), out.file));
  HEBE_TRY(out.existed, write_once(out.file, text + "\n"));
  return out;
}

Result<StoredRecord> load_record(const fs::path& file, std::string_view schema) {
  StoredRecord out;
  out.file = file;
  out.id = file.stem().string();
  out.existed = true;
  HEBE_TRY(const auto bytes, read_record(file, kMostBytes));
  auto text = bytes.bytes;
  if (text.ends_with('\n')) text.pop_back();
  if (sha256_hex(text) != out.id || text.size() + 1 != bytes.bytes.size())
    return refuse(RefusalCode::digest_mismatch, "its content id is " + sha256_hex(text),
                  "restore the record from a copy, or make it again", file.string());
  HEBE_TRY(out.json, parse_json(text, file.string()));
  HEBE_CHECK(check_schema(out.json, schema, file.string()));
  return out;
}

Result<StoredRecord> find_record(const fs::path& folder, std::string_view schema,
                                 const std::string& name, std::string_view made_by) {
  std::error_code ec;
  if (name.find('/') != std::string::npos || fs::is_regular_file(name, ec)) {
    HEBE_CHECK(there_is(name));
    return load_record(name, schema);
  }
  std::vector<std::string> hits;
  for (const auto& id : record_ids(folder))
    if (id.find(name) != std::string::npos) hits.push_back(id);
  if (hits.empty())
    return refuse(
        RefusalCode::not_found,
        name.empty()
            ? fmt::format("there is no {} record here", folder.filename().string())
            : fmt::format("no {} record is named \"{}\"", folder.filename().string(), name),
        fmt::format("make one with `{}`, or give part of an id below {}", made_by,
                    folder.string()));
  if (!name.empty() && hits.size() > 1)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("\"{}\" fits {} records", name, hits.size()), "give more of the id");
  std::optional<StoredRecord> newest;
  for (const auto& id : hits) {
    HEBE_TRY(auto one, load_record(folder / (id + ".json"), schema));
    // Simulated records have no time of their own: then the file's decides.
    const auto age = [&](const StoredRecord& record) {
      return std::pair(when_of(record.json), fs::last_write_time(record.file, ec));
    };
    if (!newest || age(one) >= age(*newest)) newest = std::move(one);
  }
  return std::move(*newest);
}

} // namespace hebe::evidence
