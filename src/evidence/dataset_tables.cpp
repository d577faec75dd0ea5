#include "evidence/dataset_tables.hpp"

#include <optional>

namespace hebe::evidence {
namespace {
Result<Cell> cell_from(const Json& value, const Column& column, const StoredRun& run) {
  const auto wrong = [&]() {
    return refuse(RefusalCode::bad_schema,
                  "column " + std::string(column.name) + " cannot hold " + value.dump(), {},
                  run.run_id);
  };
  if (value.is_null() || (value.is_object() && value.contains("unavailable"))) return Cell{};
  switch (column.type) {
  case ColumnType::text:
    if (!value.is_string()) return wrong();
    return Cell{value.get<std::string>()};
  case ColumnType::boolean:
    if (!value.is_boolean()) return wrong();
    return Cell{value.get<bool>()};
  case ColumnType::real:
    if (!value.is_number()) return wrong();
    return Cell{value.get<double>()};
  case ColumnType::integer: {
    // What is whole may be stored as a double elsewhere (temperatures); a fraction may not pass.
    if (value.is_number_float()) {
      const auto number = value.get<double>();
      if (number != static_cast<double>(static_cast<std::int64_t>(number))) return wrong();
      return Cell{static_cast<std::int64_t>(number)};
    }
    HEBE_TRY(const auto number, integer_from(value, run.run_id + " " + column.name));
    return Cell{number};
  }
  }
  return wrong();
}

Result<Row> row_of(DatasetTable table, Json document, const StoredRun& run, int layout) {
  document["run_id"] = run.run_id;
  document["manifest_sha256"] = run.seal;
  Row row;
  for (const auto& column : columns_of(table, layout)) {
    const Json::json_pointer at(column.pointer);
    HEBE_TRY(auto cell, cell_from(document.contains(at) ? document.at(at) : Json(), column, run));
    row.push_back(std::move(cell));
  }
  return row;
}

Json facts_of(const StoredRun& run) {
  Json out = Json::object();
  for (const auto& f : run.environment.at("facts"))
    if (const auto value = f.find("value"); value != f.end() && value->is_string())
      out[f.at("name").get<std::string>()] = *value;
  return out;
}

Json run_document(const StoredRun& run) {
  Json shown = Json::object();
  for (const char* quantity : {"energy", "latency", "power"}) {
    const auto& contrast = run.analysis.at(quantity);
    shown[quantity] = contrast.at("interval_" + contrast.at("interval_shown").get<std::string>());
  }
  return {{"manifest", run.manifest},
          {"plan", run.plan},
          {"facts", facts_of(run)},
          {"analysis", run.analysis},
          {"acquisition", run.acquisition},
          {"shown", shown},
          {"counts", {{"pairs", run.analysis.at("pairs").size()}}}};
}

Result<Json> window_document(const StoredRun& run, const Json& window) {
  std::string failed;
  for (const auto& gate : window.at("gates"))
    if (!gate.at("passed").get<bool>())
      failed += (failed.empty() ? "" : ",") + gate.at("name").get<std::string>();
  HEBE_TRY(auto gates, canonical_json(window.at("gates")));
  const auto pair = window.at("pair").get<std::size_t>();
  const auto& order = run.plan.at("order");
  if (pair >= order.size())
    return refuse(RefusalCode::bad_schema, "pair " + std::to_string(pair) + " is not in the plan",
                  {}, run.run_id);
  return Json{
      {"window", window}, {"order", order.at(pair)}, {"failed_gates", failed}, {"gates", gates}};
}

// A number at a pointer, if both are there.
std::optional<std::int64_t> whole_at(const Json& document, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!document.contains(at) || !document.at(at).is_number_integer()) return std::nullopt;
  return document.at(at).get<std::int64_t>();
}

Result<Json> text_at(const Json& document, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!document.contains(at) || document.at(at).is_null()) return Json();
  HEBE_TRY(auto text, canonical_json(document.at(at)));
  return Json(text);
}

// A qualified arm's own members. Bytes were counted at this launch, or at a smaller one.
Status add_qualified(Json& document, const StoredRun& run, const std::string& arm) {
  document["qualification"] = run.plan.value("qualification", Json());
  if (const auto& q = document["qualification"]; q.is_object())
    document["variant"] = q.at(arm == "A" ? "a" : "b");
  HEBE_TRY(document["counted_at"], text_at(document, "/subject/mechanism/bytes/counted_at"));
  if (const Json::json_pointer bytes("/subject/mechanism/bytes");
      !document.contains(bytes) || document.at(bytes).is_null())
    return {};
  if (!document["counted_at"].is_null()) {
    document["counted_programs"] =
        document["subject"]["mechanism"]["bytes"].value("programs_counted", Json());
    return {};
  }
  const auto x = whole_at(document, "/subject/launch/grid/0");
  const auto y = whole_at(document, "/subject/launch/grid/1");
  const auto z = whole_at(document, "/subject/launch/grid/2");
  if (x && y && z) document["counted_programs"] = *x * *y * *z;
  return {};
}

Result<Json> mechanism_document(const StoredRun& run, const std::string& arm) {
  // Two arms of one launch share the subject.
  const bool own = arm == "B" && run.plan.contains("subject_b");
  Json document{{"manifest", run.manifest},
                {"arm", arm},
                {"cubin", run.plan.at("arms").at(arm).at("cubin_sha256")},
                {"subject", run.plan.at(own ? "subject_b" : "subject")},
                {"occupancy", run.acquisition.at("occupancy").value(arm, Json())}};
  HEBE_TRY(document["parameters"], text_at(document, "/subject/launch/parameters"));
  HEBE_TRY(document["operations"], text_at(document, "/subject/launch/work/operations"));
  const auto warps = whole_at(document, "/subject/launch/num_warps");
  const auto lanes = whole_at(document, "/subject/launch/target/warp_size");
  const auto blocks = whole_at(document, "/occupancy/blocks_per_multiprocessor");
  if (warps && lanes) document["block_threads"] = *warps * *lanes;
  if (warps && blocks) document["warps_per_multiprocessor"] = *warps * *blocks;
  HEBE_CHECK(add_qualified(document, run, arm));
  return document;
}

} // namespace

Result<std::vector<Row>> rows_of(DatasetTable table, const StoredRun& run, int layout) {
  std::vector<Row> rows;
  const auto add = [&](Json document) -> Status {
    HEBE_TRY(auto row, row_of(table, std::move(document), run, layout));
    rows.push_back(std::move(row));
    return {};
  };
  try {
    if (table == DatasetTable::runs) {
      HEBE_CHECK(add(run_document(run)));
    } else if (table == DatasetTable::windows) {
      for (const auto& window : run.windows) {
        HEBE_TRY(auto document, window_document(run, window));
        HEBE_CHECK(add(std::move(document)));
      }
    } else if (table == DatasetTable::mechanism) {
      for (const char* arm : {"A", "B"}) {
        HEBE_TRY(auto document, mechanism_document(run, arm));
        HEBE_CHECK(add(std::move(document)));
      }
    }
  } catch (const Json::exception& e) { // a member that the schema does not ask for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), {}, run.run_id);
  }
  return rows;
}

} // namespace hebe::evidence
