// A study's last word: studies/study_sha256_<content id>/ with study.json (schema hebe.study/1) and
// what people look at. In: ids and seals of everything that the study is made of; out: an immutable
// directory, and back. Invariant: the name is the digest of study.json, which has the digests of
// all the rest; written whole or not at all.
#pragma once

#include "core/json.hpp"
#include "evidence/data_root.hpp"

#include <map>

namespace hebe::evidence {

inline constexpr std::string_view kStudyPrefix = "study_sha256_";

struct SealedStudy {
  std::filesystem::path directory;
  std::string id; ///< study_sha256_<hex>
  Json json;
  bool existed = false; ///< it had been sealed before
};

/// `study` without its member "files", which is made of `files` (name to bytes). Refuses:
/// bad_schema before anything is written; no_space, no_permission; digest_mismatch where something
/// else lies under its name.
[[nodiscard]] Result<SealedStudy> seal_study(const DataRoot& root, Json study,
                                             const std::map<std::string, std::string>& files);
/// By directory, id, or a unique part of one; empty: the one whose study.json is newest. Checks
/// name, schema, and every file. not_found, digest_mismatch, bad_schema.
[[nodiscard]] Result<SealedStudy> load_study(const DataRoot& root, const std::string& name);

} // namespace hebe::evidence
