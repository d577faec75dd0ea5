#include "measure/source_recording.hpp"

#include <algorithm>
#include <array>

namespace hebe::measure {
namespace {
constexpr std::array<std::pair<Level, std::string_view>, 5> kLevels = {
    {{Level::idle_without_context, "idle without context"},
     {Level::idle, "idle"},
     {Level::half, "half load"},
     {Level::full, "full load"},
     {Level::mixed, "mixed"}}};

Json optional_integer(const std::optional<std::int64_t>& v) {
  return v ? json_integer(*v) : Json(nullptr);
}
} // namespace

std::string_view name_of(Level level) {
  return std::find_if(kLevels.begin(), kLevels.end(), [&](auto& l) { return l.first == level; })
      ->second;
}

Json to_json(const Recording& r) {
  Json phases = Json::array(), sources = Json::array();
  for (const auto& p : r.phases)
    phases.push_back({{"name", p.name},
                      {"level", name_of(p.level)},
                      {"begin_ns", json_integer(p.begin_ns)},
                      {"end_ns", json_integer(p.end_ns)},
                      {"polled", p.polled}});
  for (const auto& s : r.sources) {
    const auto& d = s.description;
    sources.push_back(
        {{"name", d.identity.name},
         {"field", d.identity.field},
         {"scope", d.identity.scope},
         {"unit", d.identity.unit},
         {"quantity", d.quantity == meter::Quantity::power ? "power" : "energy_counter"},
         {"si_per_unit", d.si_per_unit},
         {"vendor", d.vendor},
         {"driver", d.driver},
         {"device", d.device},
         {"wraps_at", optional_integer(d.wraps_at)},
         {"is_buffer", s.is_buffer},
         {"readings", s.readings.size()},
         {"first_failure", s.first_failure}});
  }
  return {{"phases", phases},
          {"sources", sources},
          {"power_limit_w", r.power_limit_w ? Json(*r.power_limit_w) : Json(nullptr)},
          {"preferred_counter", r.preferred_counter}};
}

Result<Recording> recording_from(const Json& j) {
  Recording r;
  for (const auto& p : j.at("phases")) {
    Phase phase{p.at("name"), Level::mixed, 0, 0, p.at("polled")};
    for (const auto& [level, name] : kLevels)
      if (p.at("level") == name) phase.level = level;
    HEBE_TRY(phase.begin_ns, integer_from(p.at("begin_ns"), "phases/begin_ns"));
    HEBE_TRY(phase.end_ns, integer_from(p.at("end_ns"), "phases/end_ns"));
    r.phases.push_back(std::move(phase));
  }
  for (const auto& s : j.at("sources")) {
    SourceRecord record;
    auto& d = record.description;
    d.identity = {s.at("name"), s.at("field"), s.at("scope"), s.at("unit")};
    d.quantity =
        s.at("quantity") == "power" ? meter::Quantity::power : meter::Quantity::energy_counter;
    d.si_per_unit = s.at("si_per_unit");
    d.vendor = s.at("vendor"), d.driver = s.at("driver"), d.device = s.at("device");
    if (!s.at("wraps_at").is_null()) {
      HEBE_TRY(d.wraps_at, integer_from(s.at("wraps_at"), "sources/wraps_at"));
    }
    record.is_buffer = s.at("is_buffer");
    record.first_failure = s.at("first_failure");
    r.sources.push_back(std::move(record));
  }
  if (!j.at("power_limit_w").is_null()) r.power_limit_w = j.at("power_limit_w").get<double>();
  r.preferred_counter = j.at("preferred_counter");
  return r;
}

Reading reading_of(const Result<meter::SourceReading>& reading, Instant before, Instant after) {
  Reading row;
  row.before_ns = before.time_since_epoch().count();
  row.after_ns = after.time_since_epoch().count();
  if (!reading) {
    row.status = name_of(reading.error().code);
    return row;
  }
  row.before_ns = reading->before.time_since_epoch().count();
  row.after_ns = reading->after.time_since_epoch().count();
  row.raw = reading->raw;
  row.source_us = reading->source_wall_us;
  return row;
}

} // namespace hebe::measure
