// Rows of hebe.profile/1 to and from JSON.
#include "tune/profile_row.hpp"

#include <fmt/format.h>

namespace hebe::tune {
namespace {

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

std::optional<std::string> text_or_none(const Json& j) {
  return j.is_null() ? std::nullopt : std::optional(j.get<std::string>());
}

Json json_of(const Amount& a) { return {{"value", a.value}, {"low", a.low}, {"high", a.high}}; }

Amount amount_from(const Json& j) {
  return {j.at("value").get<std::int64_t>(), j.at("low").get<double>(), j.at("high").get<double>()};
}

Json json_of(const Implementation& i) {
  return {{"name", i.name},
          {"configuration", i.configuration},
          {"artifact_sha256", or_null(i.artifact_sha256)}};
}

Implementation implementation_from(const Json& j) {
  return {j.at("name").get<std::string>(), j.at("configuration"),
          text_or_none(j.at("artifact_sha256"))};
}

Json json_of(const std::optional<Baseline>& b) {
  if (!b) return nullptr;
  Json out{{"implementation", json_of(b->implementation)},
           {"energy_nj", json_of(b->energy_nj)},
           {"time_ns", json_of(b->time_ns)}};
  if (b->meter) out["meter"] = {{"name", b->meter->name}, {"status", b->meter->status}};
  return out;
}

std::optional<Baseline> baseline_from(const Json& j, Provenance of_row) {
  if (j.is_null()) return std::nullopt;
  Baseline out{implementation_from(j.at("implementation")), amount_from(j.at("energy_nj")),
               amount_from(j.at("time_ns"))};
  if (const auto hit = j.find("meter"); hit != j.end())
    out.meter = MeterIdentity{hit->at("name"), hit->at("status"), of_row};
  return out;
}

Platform platform_from(const Json& j) {
  return {text_or_none(j.at("board_uuid")), j.at("driver").get<std::string>(),
          j.at("os").get<std::string>(), j.at("hebe").get<std::string>(),
          text_or_none(j.at("triton"))};
}

} // namespace

Json json_of(const ProfileRow& row) {
  Json out{{"operation", row.key.operation},
           {"shape", row.key.shape},
           {"dtype", row.key.dtype},
           {"board", row.key.board},
           {"implementation", json_of(row.implementation)},
           {"energy_nj", json_of(row.energy_nj)},
           {"time_ns", json_of(row.time_ns)},
           {"meter", {{"name", row.meter.name}, {"status", row.meter.status}}},
           {"provenance", name_of(row.meter.provenance)},
           {"idle", name_of(row.idle)},
           {"platform",
            {{"board_uuid", or_null(row.platform.board_uuid)},
             {"driver", row.platform.driver},
             {"os", row.platform.os},
             {"hebe", row.platform.hebe},
             {"triton", or_null(row.platform.triton)}}},
           {"date", row.date},
           {"evidence", {{"study", or_null(row.study)}, {"runs", row.runs}}},
           {"baseline", json_of(row.baseline)},
           {"verdict", or_null(row.verdict)},
           {"downgraded", row.downgraded}};
  // Absent, not null: the bytes of a row without one are what they were.
  if (row.qualified) out["evidence"]["qualified"] = *row.qualified;
  if (row.objective) {
    auto& o = out["objective"];
    o = {{"name", row.objective->name},
         {"idle_power", row.objective->idle_included ? "included" : "excluded"}};
    if (const auto& ns = row.objective->latency_bound_ns) o["latency_bound_ns"] = *ns;
    if (const auto& ratio = row.objective->latency_bound_ratio) o["latency_bound_ratio"] = *ratio;
  }
  if (row.effect)
    out["effect"] = {{"percent", row.effect->percent},
                     {"low_percent", row.effect->low_percent},
                     {"high_percent", row.effect->high_percent}};
  return out;
}

Result<ProfileRow> row_from(const Json& j, std::string_view where) {
  ProfileRow row;
  row.key = {j.at("operation").get<std::string>(), j.at("shape").get<std::string>(),
             j.at("dtype").get<std::string>(), j.at("board").get<std::string>()};
  row.implementation = implementation_from(j.at("implementation"));
  row.energy_nj = amount_from(j.at("energy_nj"));
  row.time_ns = amount_from(j.at("time_ns"));
  const auto provenance = provenance_from(j.at("provenance").get<std::string>());
  const auto idle = idle_from(j.at("idle").get<std::string>());
  if (!provenance || !idle)
    return refuse(RefusalCode::bad_schema,
                  fmt::format("row {} has an unknown provenance or idle", text_of(row.key)), {},
                  std::string(where));
  row.meter = {j.at("meter").at("name").get<std::string>(),
               j.at("meter").at("status").get<std::string>(), *provenance};
  row.idle = *idle;
  row.platform = platform_from(j.at("platform"));
  row.date = j.at("date").get<std::string>();
  row.study = text_or_none(j.at("evidence").at("study"));
  row.runs = j.at("evidence").at("runs").get<std::vector<std::string>>();
  if (const auto hit = j.at("evidence").find("qualified"); hit != j.at("evidence").end())
    row.qualified = hit->get<bool>();
  row.baseline = baseline_from(j.at("baseline"), *provenance);
  row.verdict = text_or_none(j.at("verdict"));
  if (const auto hit = j.find("effect"); hit != j.end())
    row.effect = PairedEffect{hit->at("percent"), hit->at("low_percent"), hit->at("high_percent")};
  if (const auto hit = j.find("objective"); hit != j.end()) {
    row.objective = RowObjective{hit->at("name"), hit->at("idle_power") == "included", {}};
    for (auto [name, bound] :
         {std::pair("latency_bound_ns", &row.objective->latency_bound_ns),
          std::pair("latency_bound_ratio", &row.objective->latency_bound_ratio)})
      if (const auto found = hit->find(name); found != hit->end()) *bound = found->get<double>();
  }
  row.downgraded = j.at("downgraded").get<std::vector<std::string>>();
  if (auto sound = check_row(row, std::string(where)); !sound) {
    sound.error().not_written.clear(); // it was read
    return std::unexpected(std::move(sound).error());
  }
  return row;
}

} // namespace hebe::tune
