// The tables of a dataset, column by column, and a run's rows in them. In: a stored run and a
// layout; out: cells. Invariant: a pure function of the two; what a run does not say is a null,
// never 0; a layout that was ever written keeps its columns.
#pragma once

#include "evidence/stored_run.hpp"

#include <cstdint>
#include <span>
#include <variant>

namespace hebe::evidence {

enum class ColumnType { text, integer, real, boolean };
[[nodiscard]] std::string_view name_of(ColumnType type); ///< as in the manifest

/// Which columns a dataset has; its manifest says. 1: those that do not say otherwise. 2: the
/// mechanism's columns of qualified arms.
inline constexpr int kDatasetLayout = 2;

struct Column {
  const char* name;
  ColumnType type;
  const char* unit; ///< UCUM, or empty: a name, a count, a ratio
  const char* description;
  const char* pointer; ///< JSON pointer into what a row is made from; none: telemetry, as stored
  int since = 1;       ///< the first layout that has it
};

using Cell = std::variant<std::monostate, std::string, std::int64_t, double, bool>;
using Row = std::vector<Cell>;

/// The order is that of the files in a dataset.
enum class DatasetTable { mechanism, runs, telemetry, windows };
inline constexpr DatasetTable kDatasetTables[] = {DatasetTable::mechanism, DatasetTable::runs,
                                                  DatasetTable::telemetry, DatasetTable::windows};
[[nodiscard]] std::string_view name_of(DatasetTable table);
[[nodiscard]] std::span<const Column> columns_of(DatasetTable table, int layout);

/// Rows of every table but telemetry, whose rows are the run's own Parquet with run_id in front.
[[nodiscard]] Result<std::vector<Row>> rows_of(DatasetTable table, const StoredRun& run,
                                               int layout);

} // namespace hebe::evidence
