#include "evidence/dataset_arrow.hpp"

#include "evidence/parquet_bytes.hpp"

#include <array>

namespace hebe::evidence {
namespace {

std::shared_ptr<arrow::DataType> arrow_type(ColumnType type) {
  switch (type) {
  case ColumnType::text:
    return arrow::utf8();
  case ColumnType::integer:
    return arrow::int64();
  case ColumnType::real:
    return arrow::float64();
  case ColumnType::boolean:
    return arrow::boolean();
  }
  return arrow::null();
}

template <class Builder, class Value>
arrow::Result<std::shared_ptr<arrow::Array>> built(const std::vector<Row>& rows,
                                                   std::size_t column) {
  Builder builder;
  for (const auto& row : rows)
    ARROW_RETURN_NOT_OK(std::holds_alternative<std::monostate>(row[column])
                            ? builder.AppendNull()
                            : builder.Append(std::get<Value>(row[column])));
  return builder.Finish();
}

arrow::Result<std::shared_ptr<arrow::Array>> array_of(const std::vector<Row>& rows,
                                                      std::size_t column, ColumnType type) {
  switch (type) {
  case ColumnType::text:
    return built<arrow::StringBuilder, std::string>(rows, column);
  case ColumnType::integer:
    return built<arrow::Int64Builder, std::int64_t>(rows, column);
  case ColumnType::real:
    return built<arrow::DoubleBuilder, double>(rows, column);
  case ColumnType::boolean:
    return built<arrow::BooleanBuilder, bool>(rows, column);
  }
  return arrow::Status::Invalid("no such type");
}

arrow::Result<std::shared_ptr<arrow::Table>> table_from(DatasetTable table, const StoredRun& run,
                                                        const std::vector<Row>& rows, int layout) {
  const auto columns = columns_of(table, layout);
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto array, array_of(rows, i, columns[i].type));
    arrays.push_back(std::move(array));
  }
  return arrow::Table::Make(arrow_schema(table, run.provenance(), layout), arrays,
                            static_cast<std::int64_t>(rows.size()));
}

// The run's own telemetry with run_id in front. Its digest has been checked; its columns are again.
arrow::Result<std::shared_ptr<arrow::Table>> telemetry_of(const StoredRun& run, int layout) {
  ARROW_ASSIGN_OR_RAISE(const auto stored, table_of_parquet(run.telemetry));
  const auto schema = arrow_schema(DatasetTable::telemetry, run.provenance(), layout);
  if (stored->num_columns() + 1 != schema->num_fields())
    return arrow::Status::Invalid("a telemetry of ", stored->num_columns(), " columns");
  ARROW_ASSIGN_OR_RAISE(
      auto ids, arrow::MakeArrayFromScalar(arrow::StringScalar(run.run_id), stored->num_rows()));
  std::vector<std::shared_ptr<arrow::ChunkedArray>> columns = {
      std::make_shared<arrow::ChunkedArray>(ids)};
  for (int i = 1; i < schema->num_fields(); ++i) {
    auto column = stored->GetColumnByName(schema->field(i)->name());
    if (column == nullptr || !column->type()->Equals(schema->field(i)->type()))
      return arrow::Status::Invalid("no column ", schema->field(i)->ToString());
    columns.push_back(std::move(column));
  }
  return arrow::Table::Make(schema, columns, stored->num_rows());
}

} // namespace

std::unexpected<Refusal> dataset_arrow_refusal(const arrow::Status& status,
                                               std::string_view where) {
  return refuse(RefusalCode::bad_schema, "Parquet: " + status.ToString(), {}, std::string(where));
}

std::shared_ptr<arrow::Schema> arrow_schema(DatasetTable table, const std::string& provenance,
                                            int layout) {
  arrow::FieldVector fields;
  for (const auto& c : columns_of(table, layout))
    fields.push_back(
        arrow::field(c.name, arrow_type(c.type), true,
                     arrow::key_value_metadata({"unit", "description"}, {c.unit, c.description})));
  return arrow::schema(fields,
                       arrow::key_value_metadata(
                           {"schema", "provenance"},
                           {"hebe.dataset." + std::string(name_of(table)) + "/1", provenance}));
}

Result<std::shared_ptr<arrow::Table>> arrow_rows(DatasetTable table, const StoredRun& run,
                                                 int layout) {
  if (table == DatasetTable::telemetry) {
    auto telemetry = telemetry_of(run, layout);
    if (!telemetry.ok())
      return dataset_arrow_refusal(telemetry.status(), run.run_id + "/telemetry.parquet");
    return *telemetry;
  }
  HEBE_TRY(const auto rows, rows_of(table, run, layout));
  auto made = table_from(table, run, rows, layout);
  if (!made.ok()) return dataset_arrow_refusal(made.status(), run.run_id);
  return *made;
}

} // namespace hebe::evidence
