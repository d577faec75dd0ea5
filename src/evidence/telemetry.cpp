#include "evidence/telemetry.hpp"

#include "core/build_identity.hpp"
#include "evidence/parquet_bytes.hpp"

#include <algorithm>

namespace hebe::evidence {
namespace {

constexpr const char* kSchemaName = "hebe.telemetry/1";

std::unexpected<Refusal> arrow_refusal(const arrow::Status& s, std::string_view where) {
  return refuse(RefusalCode::bad_schema, "Parquet: " + s.ToString(), {}, std::string(where));
}

std::shared_ptr<arrow::Field> column(const char* name, std::shared_ptr<arrow::DataType> type,
                                     const char* unit, const char* description) {
  return arrow::field(name, std::move(type), true,
                      arrow::key_value_metadata({"unit", "description"}, {unit, description}));
}

std::shared_ptr<arrow::Schema> telemetry_schema(const measure::Acquisition& a) {
  return arrow::schema(
      {column("source", arrow::utf8(), "", "name of the source"),
       column("t_mono_ns", arrow::int64(), "ns", "host monotonic time"),
       column("t_source_us", arrow::int64(), "us", "the driver's own time stamp, host wall time"),
       column("window", arrow::int64(), "", "index of the window it lies in, null between windows"),
       column("power_raw_mw", arrow::int64(), "mW", "as the device gave it"),
       column("power_w", arrow::float64(), "W", "power_raw_mw in watts"),
       column("energy_raw_mj", arrow::int64(), "mJ", "cumulative counter as the device gave it"),
       column("energy_j", arrow::float64(), "J", "energy_raw_mj in joules"),
       column("temperature_c", arrow::int64(), "Cel", "GPU temperature")},
      arrow::key_value_metadata(
          {"schema", "provenance", "primary_source", "cross_check_source", "clock", "hebe_version"},
          {kSchemaName, std::string(name_of(a.provenance)), a.samples.name, a.counter.name,
           "CLOCK_MONOTONIC of the host", kVersion}));
}

struct Columns {
  arrow::StringBuilder source;
  arrow::Int64Builder t_mono, t_source, window, power_raw, energy_raw, temperature;
  arrow::DoubleBuilder power, energy;

  arrow::Status add_power(const std::string& name, const meter::AlignedSample& s,
                          std::optional<std::int64_t> in_window) {
    ARROW_RETURN_NOT_OK(source.Append(name));
    ARROW_RETURN_NOT_OK(t_mono.Append(s.t_mono_ns));
    ARROW_RETURN_NOT_OK(t_source.Append(s.t_source_us));
    ARROW_RETURN_NOT_OK(in_window ? window.Append(*in_window) : window.AppendNull());
    ARROW_RETURN_NOT_OK(power_raw.Append(s.raw_mw));
    ARROW_RETURN_NOT_OK(power.Append(from_milliwatts(s.raw_mw).value()));
    ARROW_RETURN_NOT_OK(energy_raw.AppendNull());
    ARROW_RETURN_NOT_OK(energy.AppendNull());
    return temperature.AppendNull();
  }

  arrow::Status add_boundary(const std::string& name, const meter::Boundary& b,
                             std::int64_t in_window) {
    ARROW_RETURN_NOT_OK(source.Append(name));
    ARROW_RETURN_NOT_OK(
        t_mono.Append((b.before + (b.after - b.before) / 2).time_since_epoch().count()));
    ARROW_RETURN_NOT_OK(t_source.AppendNull());
    ARROW_RETURN_NOT_OK(window.Append(in_window));
    ARROW_RETURN_NOT_OK(power_raw.AppendNull());
    ARROW_RETURN_NOT_OK(power.AppendNull());
    ARROW_RETURN_NOT_OK(b.energy_mj ? energy_raw.Append(*b.energy_mj) : energy_raw.AppendNull());
    ARROW_RETURN_NOT_OK(b.energy_mj ? energy.Append(from_millijoules(*b.energy_mj).value())
                                    : energy.AppendNull());
    return b.temperature_c ? temperature.Append(*b.temperature_c) : temperature.AppendNull();
  }

  arrow::Result<std::vector<std::shared_ptr<arrow::Array>>> finish() {
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (arrow::ArrayBuilder* b : std::initializer_list<arrow::ArrayBuilder*>{
             &source, &t_mono, &t_source, &window, &power_raw, &power, &energy_raw, &energy,
             &temperature}) {
      ARROW_ASSIGN_OR_RAISE(auto array, b->Finish());
      arrays.push_back(std::move(array));
    }
    return arrays;
  }
};

std::optional<std::int64_t> window_at(std::span<const measure::Window> windows, std::int64_t t) {
  const auto it = std::partition_point(windows.begin(), windows.end(),
                                       [&](auto& w) { return w.reading.end_ns < t; });
  if (it == windows.end() || t < it->reading.begin_ns) return std::nullopt;
  return it->reading.index;
}

arrow::Result<std::shared_ptr<arrow::Table>> table_of(std::span<const meter::AlignedSample> samples,
                                                      std::span<const measure::Window> windows,
                                                      const measure::Acquisition& a) {
  Columns c;
  for (const auto& s : samples)
    ARROW_RETURN_NOT_OK(c.add_power(a.samples.name, s, window_at(windows, s.t_mono_ns)));
  for (const auto& w : windows)
    for (const auto* b : {&w.reading.begin, &w.reading.end})
      ARROW_RETURN_NOT_OK(c.add_boundary(a.counter.name, *b, w.reading.index));
  ARROW_ASSIGN_OR_RAISE(auto arrays, c.finish());
  return arrow::Table::Make(telemetry_schema(a), arrays);
}

arrow::Result<std::string> write(std::span<const meter::AlignedSample> samples,
                                 std::span<const measure::Window> windows,
                                 const measure::Acquisition& a) {
  ARROW_ASSIGN_OR_RAISE(auto table, table_of(samples, windows, a));
  return parquet_of(*table);
}

} // namespace

Result<std::string> telemetry_parquet(std::span<const meter::AlignedSample> samples,
                                      std::span<const measure::Window> windows,
                                      const measure::Acquisition& a) {
  auto bytes = write(samples, windows, a);
  if (!bytes.ok()) return arrow_refusal(bytes.status(), "telemetry.parquet");
  return std::move(*bytes);
}

Result<std::vector<meter::AlignedSample>>
samples_from_parquet(std::string_view bytes, const std::string& source, std::string_view where) {
  const auto table = table_of_parquet(bytes);
  if (!table.ok()) return arrow_refusal(table.status(), where);
  const auto metadata = (*table)->schema()->metadata();
  const auto found = metadata ? metadata->Get("schema").ValueOr("none") : "none";
  if (found != kSchemaName)
    return refuse(RefusalCode::bad_schema,
                  std::string("required schema ") + kSchemaName + ", found " + found, {},
                  std::string(where));
  const auto* sources = typed_column<arrow::StringArray>(**table, "source");
  const auto* t_mono = typed_column<arrow::Int64Array>(**table, "t_mono_ns");
  const auto* t_source = typed_column<arrow::Int64Array>(**table, "t_source_us");
  const auto* raw = typed_column<arrow::Int64Array>(**table, "power_raw_mw");
  if (sources == nullptr || t_mono == nullptr || t_source == nullptr || raw == nullptr)
    return refuse(RefusalCode::bad_schema,
                  "required columns source, t_mono_ns, t_source_us, power_raw_mw; found " +
                      (*table)->schema()->ToString(),
                  {}, std::string(where));
  std::vector<meter::AlignedSample> out;
  for (std::int64_t i = 0; i < (*table)->num_rows(); ++i) {
    if (sources->IsNull(i) || sources->GetView(i) != source) continue;
    if (t_mono->IsNull(i) || t_source->IsNull(i) || raw->IsNull(i))
      return refuse(RefusalCode::bad_schema,
                    "row " + std::to_string(i) + " of the primary source has a null", {},
                    std::string(where));
    out.push_back({t_mono->Value(i), t_source->Value(i), raw->Value(i)});
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.t_mono_ns < b.t_mono_ns; });
  return out;
}

Status telemetry_agrees(std::string_view bytes, std::span<const meter::AlignedSample> samples,
                        std::span<const measure::Window> windows, const measure::Acquisition& a,
                        std::string_view where) {
  const auto stored = table_of_parquet(bytes);
  if (!stored.ok()) return arrow_refusal(stored.status(), where);
  const auto expected = table_of(samples, windows, a);
  if (!expected.ok()) return arrow_refusal(expected.status(), where);
  for (int i = 0; i < (*expected)->num_columns(); ++i) {
    const auto& name = (*expected)->field(i)->name();
    const auto column = (*stored)->GetColumnByName(name);
    if (column == nullptr || !column->Equals((*expected)->column(i)))
      return refuse(RefusalCode::analysis_mismatch,
                    "column " + name + " does not follow from the samples and windows", {},
                    std::string(where));
  }
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>("provenance", name_of(a.provenance)),
        {"primary_source", a.samples.name},
        {"cross_check_source", a.counter.name}})
    if ((*stored)->schema()->metadata()->Get(key).ValueOr("") != value)
      return refuse(RefusalCode::analysis_mismatch, "metadata " + key + " is not " + value, {},
                    std::string(where));
  return {};
}

} // namespace hebe::evidence
