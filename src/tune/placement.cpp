#include "tune/placement.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace hebe::tune {
namespace {

constexpr std::string_view kSchema = "hebe.placement/1";
constexpr std::uint64_t kMostBytes = 16ULL << 20;

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }
std::optional<std::string> text_or_none(const Json& j) {
  return j.is_null() ? std::nullopt : std::optional(j.get<std::string>());
}
Json amount_json(const Amount& a) { return {{"value", a.value}, {"low", a.low}, {"high", a.high}}; }
Amount amount_from(const Json& j) {
  return {j.at("value").get<std::int64_t>(), j.at("low").get<double>(), j.at("high").get<double>()};
}

Json row_json(const PlacementRow& p) {
  const auto& r = p.row;
  Json sizes = Json::object();
  for (const auto& s : p.sizes) sizes[s.name] = s.size;
  return {{"member", p.member},
          {"operation", r.key.operation},
          {"sizes", sizes},
          {"dtype", r.key.dtype},
          {"board", r.key.board},
          {"implementation",
           {{"name", r.implementation.name},
            {"configuration", r.implementation.configuration},
            {"artifact_sha256", or_null(r.implementation.artifact_sha256)},
            {"version", or_null(p.version)}}},
          {"energy_nj", amount_json(r.energy_nj)},
          {"time_ns", amount_json(r.time_ns)},
          {"idle",
           {{"power_w", p.idle_power.value()},
            {"standard_error_w", p.idle_error.value()},
            {"state", name_of(r.idle)}}},
          {"meter", {{"name", r.meter.name}, {"status", r.meter.status}}},
          {"provenance", name_of(r.meter.provenance)},
          {"platform",
           {{"board_uuid", or_null(r.platform.board_uuid)},
            {"driver", r.platform.driver},
            {"os", r.platform.os},
            {"hebe", r.platform.hebe},
            {"triton", or_null(r.platform.triton)}}},
          {"date", r.date},
          {"downgraded", r.downgraded}};
}

Result<PlacementRow> row_from_json(const Json& j, const std::string& where) {
  PlacementRow p;
  auto& r = p.row;
  p.member = j.at("member");
  for (const auto& [name, size] : j.at("sizes").items())
    p.sizes.push_back({name, size.get<std::int64_t>()});
  r.key = {j.at("operation"), j.at("sizes").dump(), j.at("dtype"), j.at("board")};
  const auto& i = j.at("implementation");
  r.implementation = {i.at("name"), i.at("configuration"), text_or_none(i.at("artifact_sha256"))};
  p.version = text_or_none(i.at("version"));
  r.energy_nj = amount_from(j.at("energy_nj"));
  r.time_ns = amount_from(j.at("time_ns"));
  p.idle_power = Watts(j.at("idle").at("power_w").get<double>());
  p.idle_error = Watts(j.at("idle").at("standard_error_w").get<double>());
  const auto idle = idle_from(j.at("idle").at("state").get<std::string>());
  const auto provenance = provenance_from(j.at("provenance").get<std::string>());
  if (!idle || !provenance)
    return refuse(RefusalCode::bad_schema, "an idle state or provenance that nobody knows", {},
                  where);
  r.idle = *idle;
  r.meter = {j.at("meter").at("name"), j.at("meter").at("status"), *provenance};
  const auto& f = j.at("platform");
  r.platform = {text_or_none(f.at("board_uuid")), f.at("driver"), f.at("os"), f.at("hebe"),
                text_or_none(f.at("triton"))};
  r.date = j.at("date");
  r.downgraded = j.at("downgraded").get<std::vector<std::string>>();
  return p;
}

bool sound(const Amount& a) {
  return a.value > 0 && std::isfinite(a.low) && std::isfinite(a.high) && a.low > 0 &&
         a.low <= static_cast<double>(a.value) + 0.5 &&
         static_cast<double>(a.value) - 0.5 <= a.high;
}

} // namespace

PlacementRow placement_row(std::string member, const IdlePower& idle, const CandidateCost& cost) {
  PlacementRow out;
  out.member = std::move(member);
  out.idle_power = idle.mean;
  out.idle_error = idle.error;
  out.row.idle = idle.state;
  out.row.energy_nj = {cost.energy.cost_nj, cost.energy.low_nj, cost.energy.high_nj};
  const double half = kNormal95 * cost.latency_error_ns;
  out.row.time_ns = {std::llround(cost.latency_ns), cost.latency_ns - half, cost.latency_ns + half};
  out.row.meter = cost.energy.meter;
  return out;
}

Status check_placement(const Placement& placement, const std::string& file) {
  const auto wrong = [&](const PlacementRow& p, const std::string& what) {
    return std::unexpected(meter_refusal(RefusalCode::bad_schema, p.row.meter,
                                         "member \"" + p.member + "\": " + what, file));
  };
  std::set<std::string> members;
  for (const auto& p : placement.rows) {
    if (!members.insert(p.member).second) return wrong(p, "it is there twice");
    HEBE_CHECK(check_meter(p.row.meter, file));
    if (!sound(p.row.energy_nj)) return wrong(p, "its energy is no positive, finite cost");
    if (!sound(p.row.time_ns)) return wrong(p, "its time is no positive, finite time");
    const double idle = p.idle_power.value(), error = p.idle_error.value();
    if (!(std::isfinite(idle) && idle > 0 && std::isfinite(error) && error >= 0))
      return wrong(p, "a machine draws power doing nothing, its idle power is not above 0");
    if (p.row.meter.provenance == Provenance::measured && !p.row.downgraded.empty())
      return wrong(p, "it says measured and was downgraded");
    if (!seconds_of_date(p.row.date)) return wrong(p, "\"" + p.row.date + "\" is no UTC date");
  }
  return {};
}

Json json_of(const Placement& placement) {
  Json rows = Json::array();
  for (const auto& row : placement.rows) rows.push_back(row_json(row));
  return {{"schema", kSchema}, {"rows", std::move(rows)}};
}

Result<Placement> read_placement(const std::filesystem::path& file) {
  std::error_code ec;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, ec)))
    return refuse(RefusalCode::not_found, "there is no such placement file",
                  "write one with `hebe calibrate placement --out FILE`", file.string());
  HEBE_TRY(const auto record, read_record(file, kMostBytes));
  HEBE_TRY(const auto json, parse_json(record.bytes, file.string()));
  HEBE_CHECK(check_schema(json, kSchema, file.string()));
  Placement out;
  for (const auto& row : json.at("rows")) {
    HEBE_TRY(auto one, row_from_json(row, file.string()));
    out.rows.push_back(std::move(one));
  }
  if (auto checked = check_placement(out, {}); !checked) {
    checked.error().code = RefusalCode::bad_schema; // of a stored file
    checked.error().where = file.string();
    return std::unexpected(std::move(checked).error());
  }
  return out;
}

Status write_placement(const std::filesystem::path& file, const Placement& placement) {
  HEBE_CHECK(check_placement(placement, file.string()));
  const auto json = json_of(placement);
  auto written = [&]() -> Status {
    HEBE_CHECK(check_schema(json, kSchema, file.string()));
    HEBE_TRY(const auto text, canonical_json(json));
    return write_file_whole(file, text + "\n");
  }();
  if (!written) written.error().not_written = file.string();
  return written;
}

Result<std::vector<HeldRow>> hold_placement(const Placement& placement, const PlacementNow& now) {
  std::vector<HeldRow> out;
  for (const auto& p : placement.rows) {
    auto present = now.gpu;
    if (p.member == "cpu") { // what was said of the GPU says nothing of the processor
      present.board = now.cpu;
      present.board_uuid.reset();
      present.driver.reset();
      present.triton.reset();
    }
    HEBE_TRY(auto reasons, reasons_against(p.row, present));
    HeldRow held{p, !reasons.reject.empty(), std::move(reasons.reject)};
    if (!held.rejected && !reasons.downgrade.empty())
      held.row.row = downgraded(p.row, reasons.downgrade);
    held.reasons.insert(held.reasons.end(), reasons.downgrade.begin(), reasons.downgrade.end());
    // One that was downgraded before holds no better for it.
    if (held.reasons.empty()) held.reasons = p.row.downgraded;
    out.push_back(std::move(held));
  }
  return out;
}

} // namespace hebe::tune
