// A run's rows as Arrow tables: the one place where a dataset's columns become Arrow types. For
// .cpp files of this room only. In: a stored run and a layout; out: one table of every kind.
// Invariant: writing and checking go through the same function.
#pragma once

#include "evidence/arrow_api.hpp"
#include "evidence/dataset_tables.hpp"

namespace hebe::evidence {

[[nodiscard]] std::unexpected<Refusal> dataset_arrow_refusal(const arrow::Status& status,
                                                             std::string_view where);

/// With units and descriptions; table and provenance in the file's metadata.
[[nodiscard]] std::shared_ptr<arrow::Schema>
arrow_schema(DatasetTable table, const std::string& provenance, int layout);
/// The run's rows, each column in one chunk.
[[nodiscard]] Result<std::shared_ptr<arrow::Table>> arrow_rows(DatasetTable table,
                                                               const StoredRun& run, int layout);

} // namespace hebe::evidence
