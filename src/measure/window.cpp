#include "measure/window.hpp"

#include "core/schema.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hebe::measure {
namespace {

// The fields of a boundary, by name with unit: one table for writing and reading.
template <class B> auto boundary_fields(B& b) {
  return std::to_array<std::pair<const char*, decltype(&b.energy_mj)>>(
      {{"energy_mj", &b.energy_mj},
       {"temperature_c", &b.temperature_c},
       {"sm_clock_mhz", &b.sm_clock_mhz},
       {"memory_clock_mhz", &b.memory_clock_mhz},
       {"power_average_mw", &b.power_average_mw},
       {"event_reasons", &b.event_reasons},
       {"power_cap_ns", &b.throttle.power_cap_ns},
       {"thermal_ns", &b.throttle.thermal_ns},
       {"hw_thermal_ns", &b.throttle.hw_thermal_ns},
       {"power_brake_ns", &b.throttle.power_brake_ns},
       {"sync_ns", &b.throttle.sync_ns}});
}

Json field_json(const Result<std::int64_t>& r) {
  if (r) return json_integer(*r);
  return {{"unavailable", r.error().what}};
}

Result<meter::Boundary> boundary_from(const Json& j, std::string_view where) {
  meter::Boundary b;
  HEBE_TRY(const auto before, integer_from(j.at("before_ns"), where));
  HEBE_TRY(const auto after, integer_from(j.at("after_ns"), where));
  b.before = Instant(Nanos(before));
  b.after = Instant(Nanos(after));
  for (auto& [name, field] : boundary_fields(b)) {
    const auto& value = j.at(name);
    if (value.is_object())
      *field = refuse(RefusalCode::meter_unsupported, value.at("unavailable").get<std::string>());
    else {
      HEBE_TRY(*field, integer_from(value, where));
    }
  }
  return b;
}

template <class T> Json number_or_null(const std::optional<T>& v) {
  if constexpr (std::is_same_v<T, double>)
    return v ? Json(*v) : Json(nullptr);
  else
    return v ? Json(v->value()) : Json(nullptr);
}

Json gate_json(const GateResult& g) {
  return {{"name", g.name},
          {"passed", g.passed},
          {"value", number_or_null(g.value)},
          {"limit", number_or_null(g.limit)}};
}

} // namespace

bool Window::passed() const {
  return std::all_of(gates.begin(), gates.end(), [](const GateResult& g) { return g.passed; });
}

Json to_json(const meter::Boundary& b) {
  Json j{{"before_ns", json_integer(b.before.time_since_epoch().count())},
         {"after_ns", json_integer(b.after.time_since_epoch().count())}};
  for (const auto& [name, field] : boundary_fields(b)) j[name] = field_json(*field);
  return j;
}

namespace {
Json estimate_json(const Window& w, Provenance provenance) {
  const auto& e = w.estimate;
  Json j{{"provenance", name_of(provenance)},
         {"samples", e.samples},
         {"coverage_ratio", e.coverage},
         {"max_gap_s", e.max_gap.value()},
         {"longest_repeat_s", e.longest_repeat.value()},
         {"latency_s", w.reading.latency().value()},
         {"mean_power_w", number_or_null(e.mean_power)},
         {"energy_per_launch_j", number_or_null(e.energy_per_launch)},
         {"counter_power_w", number_or_null(e.counter_power)}};
  if (e.counter_updates) {
    j["counter_updates"] = *e.counter_updates;
    j["counter_doubtful_edges"] = e.doubtful_edges;
  }
  return j;
}
} // namespace

Json to_json(const Window& w, Provenance provenance) {
  const auto& r = w.reading;
  Json gates = Json::array();
  for (const auto& g : w.gates) gates.push_back(gate_json(g));
  Json out{{"schema", "hebe.run.window/1"},
           {"index", r.index},
           {"pair", r.pair},
           {"attempt", r.attempt},
           {"position", r.position},
           {"arm", r.arm == 0 ? "A" : "B"},
           {"begin_ns", json_integer(r.begin_ns)},
           {"end_ns", json_integer(r.end_ns)},
           {"elapsed_s", r.elapsed.value()},
           {"launches_per_replay", r.launches_per_replay},
           {"replays", r.replays},
           {"replay_cv_ratio", r.replay_cv},
           {"pre_roll_s", r.pre_roll.value()},
           {"idle_before_s", r.idle_before.value()},
           {"begin", to_json(r.begin)},
           {"end", to_json(r.end)},
           {"estimate", estimate_json(w, provenance)},
           {"gates", gates},
           {"passed", w.passed()},
           {"pair_accepted", w.pair_accepted}};
  if (!r.pre_roll_replays.empty()) out["pre_roll_replays_s"] = r.pre_roll_replays;
  return out;
}

Result<Window> window_from(const Json& j, std::string_view where) {
  HEBE_CHECK(check_schema(j, "hebe.run.window/1", where));
  Window w;
  auto& r = w.reading;
  r.index = j.at("index");
  r.pair = j.at("pair");
  r.attempt = j.at("attempt");
  r.position = j.at("position");
  r.arm = j.at("arm") == "A" ? 0 : 1;
  HEBE_TRY(r.begin_ns, integer_from(j.at("begin_ns"), where));
  HEBE_TRY(r.end_ns, integer_from(j.at("end_ns"), where));
  r.elapsed = Seconds(j.at("elapsed_s"));
  r.launches_per_replay = j.at("launches_per_replay");
  r.replays = j.at("replays");
  r.replay_cv = j.at("replay_cv_ratio");
  r.pre_roll = Seconds(j.at("pre_roll_s"));
  r.idle_before = Seconds(j.at("idle_before_s"));
  if (j.contains("pre_roll_replays_s"))
    r.pre_roll_replays = j.at("pre_roll_replays_s").get<std::vector<double>>();
  HEBE_TRY(r.begin, boundary_from(j.at("begin"), where));
  HEBE_TRY(r.end, boundary_from(j.at("end"), where));
  w.pair_accepted = j.at("pair_accepted");
  return w;
}

} // namespace hebe::measure
