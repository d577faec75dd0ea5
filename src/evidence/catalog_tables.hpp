// The catalog's tables and what is put into them. In: an open database; out: rows. Invariant: the
// columns of `runs` are those of for_each_column, in their order.
#pragma once

#include "evidence/catalog_scan.hpp"

namespace hebe::evidence {

[[nodiscard]] Status create_catalog_tables(Database& database, std::int64_t version);

[[nodiscard]] std::string run_columns(); ///< "run_id, directory, …"
[[nodiscard]] std::vector<SqlValue> cells_of(const CatalogRun& run);
/// The row that `statement` stands on, of "SELECT <run_columns()> …".
[[nodiscard]] CatalogRun run_in(const Statement& statement);

/// The statements that fill the tables, prepared once.
class CatalogWriter {
public:
  [[nodiscard]] static Result<CatalogWriter> over(Database& database);
  [[nodiscard]] Status put(const ScannedRun& scanned);
  [[nodiscard]] Status put(const CatalogProblem& problem);
  [[nodiscard]] Status put_campaign(const std::string& id, const std::optional<std::string>& name,
                                    std::optional<std::int64_t> jobs);
  [[nodiscard]] Status put_dataset(const std::string& id, const std::string& directory);
  [[nodiscard]] Status put_analysis(const std::string& id, const std::string& directory);
  /// Whatever is said of this path (relative to the root) is no longer so.
  [[nodiscard]] Status forget(const std::string& path);
  /// Is there a row of this path, as a run or with a problem?
  [[nodiscard]] Result<bool> knows(const std::string& path);

private:
  Statement run_, problem_, campaign_, dataset_, analysis_, forget_run_, forget_problem_, knows_;
};

} // namespace hebe::evidence
