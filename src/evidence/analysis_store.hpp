// Analyses, stored once under their content's name: analyses/analysis_sha256_<content id>/. In:
// JSON of schema hebe.analysis.{point,campaign,ladder,study}/1; out: an immutable directory, and
// back. Invariant: equal content is one directory; what is loaded is what the name says.
#pragma once

#include "core/json.hpp"
#include "evidence/data_root.hpp"
#include "evidence/verify.hpp"

namespace hebe::evidence {

inline constexpr std::string_view kAnalysisPrefix = "analysis_sha256_";

struct StoredAnalysis {
  std::filesystem::path directory;
  std::string id;       ///< analysis_sha256_<hex>
  bool existed = false; ///< it had been stored before
};

/// Refuses: bad_schema before anything is written; no_space, no_permission; digest_mismatch when
/// what lies under its name is not it.
[[nodiscard]] Result<StoredAnalysis> store_analysis(const DataRoot& root, const Json& analysis);
/// Checks digest, name and schema. Refuses: not_found, digest_mismatch, bad_schema.
[[nodiscard]] Result<Json> load_analysis(const DataRoot& root, const std::string& id);

/// As load_analysis, with every problem; then computed again from the runs that are still there.
[[nodiscard]] Result<VerifyReport> verify_analysis(const DataRoot& root, const std::string& id);

/// An analysis' id from a unique part of it; empty: the newest.
[[nodiscard]] Result<std::string> find_analysis(const DataRoot& root, const std::string& name);
[[nodiscard]] std::vector<std::string> analysis_ids(const DataRoot& root);

} // namespace hebe::evidence
