// Where records live. In: a root folder; out: its layout, and what is unfinished in it. Invariant:
// a directory without a seal is never read as a run; it is recognised by its name and reported.
#pragma once

#include "evidence/run_tree.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hebe::evidence {

/// Directories being written carry this prefix until they are sealed.
inline constexpr std::string_view kUnsealedPrefix = ".unsealed-";
/// Directories of finished measurements that are not yet sealed carry this one.
inline constexpr std::string_view kCapturedPrefix = ".captured-";

class DataRoot {
public:
  explicit DataRoot(std::filesystem::path path) : path_(std::move(path)) {}
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path runs() const { return path_ / "runs"; }
  [[nodiscard]] std::filesystem::path campaigns() const { return path_ / "campaigns"; }
  [[nodiscard]] std::filesystem::path leases() const { return path_ / "leases"; }
  [[nodiscard]] std::filesystem::path cache() const { return path_ / "cache"; }
  [[nodiscard]] std::filesystem::path datasets() const { return path_ / "datasets"; }
  [[nodiscard]] std::filesystem::path analyses() const { return path_ / "analyses"; }
  [[nodiscard]] std::filesystem::path studies() const { return path_ / "studies"; }

  /// Creates the layout; safe to repeat. Refuses before anything else runs when the root is
  /// read-only.
  [[nodiscard]] Status initialise() const;
  /// The folders initialise() makes.
  [[nodiscard]] std::vector<std::filesystem::path> folders() const;
  /// Half-written directories of runs, campaigns, datasets and analyses: their writer died. They
  /// hold no seal and are never read.
  [[nodiscard]] std::vector<std::filesystem::path> unsealed() const;
  /// Symbolic links among the runs: never followed, and no Hebe makes them.
  [[nodiscard]] std::vector<std::filesystem::path> links() const;
  /// Finished measurements whose telemetry is not compacted yet (evidence/captured_run.hpp).
  [[nodiscard]] std::vector<std::filesystem::path> captured() const;
  /// Sealed runs of the days from `first_day` ("2026/11/29"; empty: all) on, in order of their
  /// names.
  [[nodiscard]] std::vector<std::filesystem::path> sealed(const std::string& first_day = {}) const;
  /// A run directory by path, by run id, or by a unique part of one. Refuses: not_found,
  /// half_written.
  [[nodiscard]] Result<std::filesystem::path> find_run(const std::string& name) const;
  /// A run with this seal (64 hex digits), the newest of several: equal seals are equal runs, for
  /// a simulated experiment can be made twice. none: it is not here.
  [[nodiscard]] std::optional<std::filesystem::path> find_sealed(const std::string& seal) const;
  /// The newest run, if any.
  [[nodiscard]] std::optional<std::filesystem::path> newest_run() const;

private:
  [[nodiscard]] std::vector<std::filesystem::path> in_days(TreeKind kind,
                                                           const std::string& first_day = {}) const;
  std::filesystem::path path_;
};

/// The root that a run directory lies in (…/runs/YYYY/MM/DD/<id>), if it lies in one.
[[nodiscard]] std::optional<DataRoot> root_of_run(const std::filesystem::path& run);

} // namespace hebe::evidence
