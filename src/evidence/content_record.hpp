// Immutable JSON records named by their content: <folder>/<sha256>.json, canonical bytes and a
// newline. In: a record that follows its schema; out: the file, and back. Invariant: a name is the
// digest of what lies under it, checked whenever it is read; nothing is ever overwritten.
#pragma once

#include "core/json.hpp"
#include "evidence/data_root.hpp"

namespace hebe::evidence {

struct StoredRecord {
  std::filesystem::path file;
  std::string id;
  Json json;
  bool existed = false;
};

/// Refuses before anything is written: bad_schema, unsafe_path; no_space, no_permission.
[[nodiscard]] Result<StoredRecord> store_record(const DataRoot& root,
                                                const std::filesystem::path& folder, Json json);
/// digest_mismatch, bad_schema.
[[nodiscard]] Result<StoredRecord> load_record(const std::filesystem::path& file,
                                               std::string_view schema);
/// By path, by id, or by a unique part of one; empty: the newest by its "when" (of equal ones the
/// last by name). `made_by` is named where there is none.
[[nodiscard]] Result<StoredRecord> find_record(const std::filesystem::path& folder,
                                               std::string_view schema, const std::string& name,
                                               std::string_view made_by);
/// Ids of the records in a folder, sorted.
[[nodiscard]] std::vector<std::string> record_ids(const std::filesystem::path& folder);
/// Writes `bytes` under their own name; true where they were there. digest_mismatch: something else
/// lies there.
[[nodiscard]] Result<bool> write_once(const std::filesystem::path& file, std::string_view bytes);

} // namespace hebe::evidence
