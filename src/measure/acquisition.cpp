#include "measure/acquisition.hpp"

#include "core/schema.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace hebe::measure {
namespace {

Json source_json(const meter::SourceIdentity& s) {
  return {{"name", s.name}, {"field", s.field}, {"scope", s.scope}, {"unit", s.unit}};
}
meter::SourceIdentity source_from(const Json& j) {
  return {j.at("name"), j.at("field"), j.at("scope"), j.at("unit")};
}

Json block_json(const WarmUpBlock& b) {
  Json out{{"arm", b.arm == 0 ? "A" : "B"},
           {"end_ns", json_integer(b.end_ns)},
           {"latency_s", b.latency.value()},
           {"power_w", b.power ? Json(b.power->value()) : Json(nullptr)},
           {"temperature_c", b.temperature_c ? Json(*b.temperature_c) : Json(nullptr)}};
  if (b.capped) out["power_capped"] = *b.capped; // older records do not say
  return out;
}

Result<WarmUpBlock> block_from(const Json& j, std::string_view where) {
  WarmUpBlock block;
  block.arm = j.at("arm") == "A" ? 0 : 1;
  HEBE_TRY(block.end_ns, integer_from(j.at("end_ns"), where));
  block.latency = Seconds(j.at("latency_s"));
  if (!j.at("power_w").is_null()) block.power = Watts(j.at("power_w"));
  if (!j.at("temperature_c").is_null()) block.temperature_c = j.at("temperature_c");
  if (j.contains("power_capped")) block.capped = j.at("power_capped").get<bool>();
  return block;
}

Json blocks_json(const std::vector<WarmUpBlock>& blocks) {
  Json out = Json::array();
  for (const auto& b : blocks) out.push_back(block_json(b));
  return out;
}

Result<std::vector<WarmUpBlock>> blocks_from(const Json& j, std::string_view where) {
  std::vector<WarmUpBlock> out;
  for (const auto& b : j) {
    HEBE_TRY(auto block, block_from(b, where));
    out.push_back(std::move(block));
  }
  return out;
}

// Whole degrees are written as before half ones were known.
Json degrees(const std::optional<double>& c) {
  if (!c) return nullptr;
  return *c == std::floor(*c) ? Json(static_cast<std::int64_t>(*c)) : Json(*c);
}

Json behaviour_json(const MeterBehaviour& b) {
  Json j{{"sample_period_s", b.sample_period.value()},
         {"lag_s", b.lag.value()},
         {"counter_period_assumed_s", b.counter_period.value()}};
  if (b.step_lag) j["step_lag_s"] = b.step_lag->value();
  if (auto response = to_json(b.response); !response.is_null()) j["response"] = std::move(response);
  return j;
}
MeterBehaviour behaviour_from(const Json& j) {
  MeterBehaviour b{Seconds(j.at("sample_period_s")), Seconds(j.at("lag_s")),
                   Seconds(j.at("counter_period_assumed_s"))};
  if (j.contains("step_lag_s")) b.step_lag = Seconds(j.at("step_lag_s"));
  b.response = known_response_from(j.value("response", Json()));
  return b;
}

} // namespace

Acquisition acquisition_of(const RawRun& run, const meter::BoardMeter& meter, bool virtual_clock) {
  Acquisition a;
  a.provenance = meter.board().provenance;
  a.samples = meter.samples_source();
  a.counter = meter.counter_source();
  a.warm_up = run.warm_up;
  a.holds = run.holds;
  a.behaviour = run.behaviour;
  a.reference = run.reference;
  a.clock_jumps_ns = run.sampler.clock_jumps_ns;
  const auto& drains = run.sampler.drains;
  a.drains = static_cast<std::int64_t>(drains.size());
  for (std::size_t i = 0; i < drains.size(); ++i) {
    a.largest_sample_age_ns = std::max(a.largest_sample_age_ns, drains[i].newest_age_ns);
    if (i > 0)
      a.largest_offset_change_ns = std::max(
          a.largest_offset_change_ns, std::abs(drains[i].offset_ns - drains[i - 1].offset_ns));
  }
  if (!drains.empty()) a.clock_offset_ns = drains.front().offset_ns;
  if (!virtual_clock) a.sampler_cpu_share = run.sampler.cpu / run.wall;
  a.wall = run.wall;
  a.errors = run.errors;
  return a;
}

Json to_json(const Acquisition& a) {
  Json jumps = Json::array();
  for (const auto t : a.clock_jumps_ns) jumps.push_back(json_integer(t));
  Json out{
      {"schema", "hebe.run.acquisition/1"},
      {"provenance", name_of(a.provenance)},
      {"primary", source_json(a.samples)},
      {"cross_check", source_json(a.counter)},
      {"warm_up",
       {{"duration_s", a.warm_up.duration.value()},
        {"stable", a.warm_up.stable},
        {"blocks", blocks_json(a.warm_up.blocks)}}},
      {"meter", behaviour_json(a.behaviour)},
      {"reference",
       {{"latency_a_s", a.reference.latency[0].value()},
        {"latency_b_s", a.reference.latency[1].value()},
        {"temperature_c", degrees(a.reference.temperature_c)},
        {"power_limit_w",
         a.reference.power_limit ? Json(a.reference.power_limit->value()) : Json(nullptr)}}},
      {"clock",
       {{"offset_ns", json_integer(a.clock_offset_ns)},
        {"largest_offset_change_ns", json_integer(a.largest_offset_change_ns)},
        {"largest_sample_age_ns", json_integer(a.largest_sample_age_ns)},
        {"jumps_ns", jumps}}},
      {"sampler",
       {{"drains", a.drains},
        {"cpu_share_ratio", a.sampler_cpu_share ? Json(*a.sampler_cpu_share) : Json(nullptr)}}},
      {"wall_s", a.wall.value()},
      {"check", a.check},
      {"occupancy", a.occupancy},
      {"errors", a.errors}};
  for (const auto& h : a.holds)
    out["holds"].push_back({{"after_window", h.after_window}, {"blocks", blocks_json(h.blocks)}});
  return out;
}

namespace {
Result<Acquisition> read_acquisition(const Json& j, std::string_view where) {
  HEBE_CHECK(check_schema(j, "hebe.run.acquisition/1", where));
  Acquisition a;
  a.provenance = *provenance_from(j.at("provenance").get<std::string>());
  a.samples = source_from(j.at("primary"));
  a.counter = source_from(j.at("cross_check"));
  a.warm_up.duration = Seconds(j.at("warm_up").at("duration_s"));
  a.warm_up.stable = j.at("warm_up").at("stable");
  HEBE_TRY(a.warm_up.blocks, blocks_from(j.at("warm_up").at("blocks"), where));
  for (const auto& h : j.value("holds", Json::array())) {
    HEBE_TRY(auto blocks, blocks_from(h.at("blocks"), where));
    a.holds.push_back({h.at("after_window"), std::move(blocks)});
  }
  a.behaviour = behaviour_from(j.at("meter"));
  const auto& r = j.at("reference");
  a.reference.latency = {Seconds(r.at("latency_a_s")), Seconds(r.at("latency_b_s"))};
  if (!r.at("temperature_c").is_null()) a.reference.temperature_c = r.at("temperature_c");
  if (!r.at("power_limit_w").is_null()) a.reference.power_limit = Watts(r.at("power_limit_w"));
  const auto& c = j.at("clock");
  HEBE_TRY(a.clock_offset_ns, integer_from(c.at("offset_ns"), where));
  HEBE_TRY(a.largest_offset_change_ns, integer_from(c.at("largest_offset_change_ns"), where));
  HEBE_TRY(a.largest_sample_age_ns, integer_from(c.at("largest_sample_age_ns"), where));
  for (const auto& t : c.at("jumps_ns")) {
    HEBE_TRY(const auto jump, integer_from(t, where));
    a.clock_jumps_ns.push_back(jump);
  }
  a.drains = j.at("sampler").at("drains");
  if (const auto& cpu = j.at("sampler").at("cpu_share_ratio"); !cpu.is_null())
    a.sampler_cpu_share = cpu.get<double>();
  a.wall = Seconds(j.at("wall_s"));
  a.check = j.at("check");
  a.occupancy = j.at("occupancy");
  a.errors = j.at("errors");
  return a;
}
} // namespace

Result<Acquisition> acquisition_from(const Json& j, std::string_view where) {
  try {
    return read_acquisition(j, where);
  } catch (const Json::exception& e) { // a member of a type that the schema does not ask for
    return refuse(RefusalCode::bad_schema, e.what(), {}, std::string(where));
  }
}

} // namespace hebe::measure
