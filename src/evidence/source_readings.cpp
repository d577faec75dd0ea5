#include "evidence/source_readings.hpp"

#include "evidence/parquet_bytes.hpp"

namespace hebe::evidence {
namespace {

constexpr const char* kSchemaName = "hebe.readings/1";

std::unexpected<Refusal> bad(std::string what, std::string_view where) {
  return refuse(RefusalCode::bad_schema, std::move(what), "restore the file from a copy",
                std::string(where));
}

std::shared_ptr<arrow::Schema> schema() {
  const auto column = [](const char* name, std::shared_ptr<arrow::DataType> type, const char* unit,
                         const char* description) {
    return arrow::field(name, std::move(type), true,
                        arrow::key_value_metadata({"unit", "description"}, {unit, description}));
  };
  return arrow::schema(
      {column("source", arrow::utf8(), "", "name of the source"),
       column("before_ns", arrow::int64(), "ns", "host monotonic time before the call"),
       column("after_ns", arrow::int64(), "ns", "host monotonic time after the call"),
       column("raw", arrow::int64(), "", "value in the source's own unit, null if it failed"),
       column("source_us", arrow::int64(), "us", "the source's own time stamp"),
       column("host_wall_us", arrow::int64(), "us", "host wall time after the call"),
       column("status", arrow::utf8(), "", "empty, or the refusal's code")},
      arrow::key_value_metadata({"schema"}, {kSchemaName}));
}

struct Builders {
  arrow::StringBuilder source, status;
  arrow::Int64Builder before, after, raw, stamp, wall;

  static arrow::Status add(arrow::Int64Builder& b, const std::optional<std::int64_t>& v) {
    return v ? b.Append(*v) : b.AppendNull();
  }
  arrow::Status add(const std::string& name, const measure::Reading& r) {
    ARROW_RETURN_NOT_OK(source.Append(name));
    ARROW_RETURN_NOT_OK(before.Append(r.before_ns));
    ARROW_RETURN_NOT_OK(after.Append(r.after_ns));
    ARROW_RETURN_NOT_OK(add(raw, r.raw));
    ARROW_RETURN_NOT_OK(add(stamp, r.source_us));
    ARROW_RETURN_NOT_OK(add(wall, r.host_wall_us));
    return status.Append(r.status);
  }
  arrow::Result<std::shared_ptr<arrow::Table>> finish() {
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (arrow::ArrayBuilder* b : std::initializer_list<arrow::ArrayBuilder*>{
             &source, &before, &after, &raw, &stamp, &wall, &status}) {
      ARROW_ASSIGN_OR_RAISE(auto array, b->Finish());
      arrays.push_back(std::move(array));
    }
    return arrow::Table::Make(schema(), arrays);
  }
};

arrow::Result<std::string> write(const measure::Recording& recording) {
  Builders b;
  for (const auto& s : recording.sources)
    for (const auto& r : s.readings) ARROW_RETURN_NOT_OK(b.add(s.description.identity.name, r));
  ARROW_ASSIGN_OR_RAISE(auto table, b.finish());
  return parquet_of(*table);
}

std::optional<std::int64_t> at(const arrow::Int64Array& a, std::int64_t i) {
  return a.IsNull(i) ? std::nullopt : std::optional<std::int64_t>(a.Value(i));
}

} // namespace

Result<std::string> readings_parquet(const measure::Recording& recording) {
  auto bytes = write(recording);
  if (!bytes.ok()) return bad("Parquet: " + bytes.status().ToString(), "readings");
  return std::move(*bytes);
}

Status readings_from_parquet(std::string_view bytes, measure::Recording& recording,
                             std::string_view where) {
  const auto table = table_of_parquet(bytes);
  if (!table.ok()) return bad("Parquet: " + table.status().ToString(), where);
  const auto* source = typed_column<arrow::StringArray>(**table, "source");
  const auto* status = typed_column<arrow::StringArray>(**table, "status");
  const auto* before = typed_column<arrow::Int64Array>(**table, "before_ns");
  const auto* after = typed_column<arrow::Int64Array>(**table, "after_ns");
  const auto* raw = typed_column<arrow::Int64Array>(**table, "raw");
  const auto* stamp = typed_column<arrow::Int64Array>(**table, "source_us");
  const auto* wall = typed_column<arrow::Int64Array>(**table, "host_wall_us");
  if (source == nullptr || status == nullptr || before == nullptr || after == nullptr ||
      raw == nullptr || stamp == nullptr || wall == nullptr)
    return bad(
        "required columns source, before_ns, after_ns, raw, source_us, host_wall_us, status; "
        "found " +
            (*table)->schema()->ToString(),
        where);
  measure::SourceRecord* current = nullptr;
  for (std::int64_t i = 0; i < (*table)->num_rows(); ++i) {
    if (source->IsNull(i) || before->IsNull(i) || after->IsNull(i) || status->IsNull(i))
      return bad("row " + std::to_string(i) + " has a null", where);
    const auto name = source->GetView(i);
    if (current == nullptr || current->description.identity.name != name) {
      current = nullptr;
      for (auto& s : recording.sources)
        if (s.description.identity.name == name) current = &s;
      if (current == nullptr)
        return bad("row " + std::to_string(i) + " is of the unknown source " + std::string(name),
                   where);
    }
    current->readings.push_back({before->Value(i), after->Value(i), at(*raw, i), at(*stamp, i),
                                 at(*wall, i), std::string(status->GetView(i))});
  }
  return {};
}

} // namespace hebe::evidence
