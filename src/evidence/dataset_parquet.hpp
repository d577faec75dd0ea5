// A dataset's Parquet files, written as a stream and read back in order. In: rows of one table and
// partition, run by run; out: bounded parts, and the same rows again. Invariant: memory does not
// grow with the number of runs; a part is synced and read-only when it is closed.
#pragma once

#include "evidence/dataset_tables.hpp"

#include <memory>

namespace hebe::evidence {

struct PartBounds {
  std::int64_t rows_per_group = 1 << 17;
  std::int64_t rows = 1 << 20; ///< a part's rows, and then its bytes
  std::uint64_t bytes = std::uint64_t{128} << 20;
};

/// A file of a dataset, as its manifest lists it.
struct DatasetFile {
  std::string path; ///< relative to the dataset, with '/'
  DatasetTable table{};
  std::int64_t rows = 0;
  std::uint64_t bytes = 0;
  std::string sha256;
};

/// "telemetry/provenance=simulated/kind=aa"
[[nodiscard]] std::string partition_path(DatasetTable table, const std::string& provenance,
                                         const std::string& kind);

/// Appends runs to the parts of one table and partition, in the newest layout.
class PartWriter {
public:
  /// Throws nothing, opens nothing: the first part is made by the first row.
  PartWriter(std::filesystem::path dataset, DatasetTable table, const std::string& provenance,
             const std::string& kind, PartBounds bounds);
  PartWriter(PartWriter&&) noexcept;
  PartWriter& operator=(PartWriter&&) noexcept;
  ~PartWriter();
  /// The number of rows that were added. Refuses: no_space, no_permission, io_failed, bad_schema.
  [[nodiscard]] Result<std::int64_t> add(const StoredRun& run);
  [[nodiscard]] Result<std::vector<DatasetFile>> finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads the parts of one table and partition again, in order.
class PartReader {
public:
  PartReader(std::filesystem::path dataset, DatasetTable table, std::vector<std::string> parts,
             int layout);
  PartReader(PartReader&&) noexcept;
  PartReader& operator=(PartReader&&) noexcept;
  ~PartReader();
  /// Whether the next rows are exactly this run's; analysis_mismatch names file and column.
  [[nodiscard]] Status expect(const StoredRun& run);
  /// Skips rows, which must all carry this run id.
  [[nodiscard]] Status skip(const std::string& run_id, std::int64_t rows);
  /// Nothing may be left.
  [[nodiscard]] Status at_end();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Columns, types, units and provenance of one file against the table's; its number of rows.
[[nodiscard]] Result<std::int64_t> check_part(const std::filesystem::path& file, DatasetTable table,
                                              const std::string& provenance, int layout,
                                              const std::string& where);

} // namespace hebe::evidence
