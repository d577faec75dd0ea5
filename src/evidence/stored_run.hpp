// A sealed run read back for what is made from it: datasets and analyses. In: a run directory; out:
// its documents. Invariant: every document's digest is the one its manifest names, and the
// manifest's is the seal; whether they follow from each other is verify_run's question.
#pragma once

#include "core/json.hpp"
#include "evidence/data_root.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hebe::evidence {

struct StoredRun {
  std::string run_id, seal;
  Json manifest, plan, environment, acquisition, analysis;
  std::vector<Json> windows;
  std::string telemetry; ///< the bytes of telemetry.parquet; empty when it was not asked for

  [[nodiscard]] std::string plan_id() const { return manifest.at("plan_id"); }
  [[nodiscard]] std::string provenance() const { return manifest.at("provenance"); }
  [[nodiscard]] std::string kind() const { return plan.at("kind"); }
  /// Of the campaign it was measured in: null for a single run.
  [[nodiscard]] Json campaign_id() const;
  [[nodiscard]] Json job_id() const;
};

enum class Telemetry { read, leave };

/// Refuses: not_found, digest_mismatch or bad_schema, each naming the file.
[[nodiscard]] Result<StoredRun> read_stored_run(const std::filesystem::path& directory,
                                                Telemetry telemetry = Telemetry::leave);

/// Where a run of this id lies, if it does: an id begins with its day.
[[nodiscard]] std::optional<std::filesystem::path> place_of_run(const DataRoot& root,
                                                                const std::string& run_id);

} // namespace hebe::evidence
