// One Arrow table as the bytes of one Parquet file, and back. For .cpp files of this room only. In:
// a table; out: zstd-compressed bytes, the same for the same table. Invariant: what is read has
// each column in one chunk.
#pragma once

#include "evidence/arrow_api.hpp"

#include <string>
#include <string_view>

namespace hebe::evidence {

[[nodiscard]] arrow::Result<std::string> parquet_of(const arrow::Table& table);
[[nodiscard]] arrow::Result<std::shared_ptr<arrow::Table>> table_of_parquet(std::string_view bytes);

/// Null where there is no such column, or one of another type, or no row.
template <class Array> const Array* typed_column(const arrow::Table& table, const char* name) {
  const auto chunked = table.GetColumnByName(name);
  if (chunked == nullptr || chunked->num_chunks() != 1) return nullptr;
  return dynamic_cast<const Array*>(chunked->chunk(0).get());
}

} // namespace hebe::evidence
