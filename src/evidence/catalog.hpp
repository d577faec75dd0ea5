// The index of a data root (<root>/catalog.sqlite): one row a run. In: the directories; out: an
// SQLite file that any program can query. Invariant: it holds nothing that the directories do not,
// and can be made from them at any time; it is never half made under its own name.
#pragma once

#include "evidence/catalog_scan.hpp"

namespace hebe::evidence {

/// Of the tables' layout; another version is made anew, never changed in place.
inline constexpr std::int64_t kCatalogVersion = 1;

struct CatalogReport {
  std::filesystem::path file;
  std::int64_t runs = 0, problems = 0, campaigns = 0, datasets = 0, analyses = 0;
  std::uint64_t bytes = 0; ///< of the catalog
};

/// Makes the catalog anew beside the old one and puts it in its place, whatever the old one was. A
/// run that is sealed meanwhile is not missed: arrivals are read under the lock that add() takes.
/// Refuses, leaving the old catalog: not_found (no such root), no_space, no_permission, io_failed.
[[nodiscard]] Result<CatalogReport> rebuild_catalog(const DataRoot& root, unsigned threads);

class Catalog {
public:
  [[nodiscard]] static std::filesystem::path file_of(const DataRoot& root) {
    return root.path() / "catalog.sqlite";
  }
  /// One state of the catalog for as long as it is open: do not keep it open, an add() waits for
  /// it. not_found where there is none; bad_schema for another version or a file that is no
  /// catalog.
  [[nodiscard]] static Result<Catalog> open(const DataRoot& root);

  /// Adds one sealed run of this root, or leaves it as it is there. Where there is no catalog all
  /// of the root is read. A run with a problem is refused with it (bad_data).
  [[nodiscard]] static Status add(const DataRoot& root, const std::filesystem::path& run);

  [[nodiscard]] Result<std::int64_t> run_count();
  /// In the order of run ids.
  [[nodiscard]] Result<std::vector<CatalogRun>> runs_of_campaign(const std::string& campaign);
  /// One row at a time, in the order of paths: memory does not grow with their number.
  [[nodiscard]] Status for_each_problem(const std::function<void(const CatalogProblem&)>& f);

private:
  explicit Catalog(Database database) : database_(std::move(database)) {}
  Database database_;
};

} // namespace hebe::evidence
