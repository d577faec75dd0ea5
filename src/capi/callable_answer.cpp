#include "capi/callable_answer.hpp"

#include "capi/answer.hpp"
#include "measure/intervals.hpp"
#include "measure/summary.hpp"
#include "tune/marginal.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hebe::capi {
namespace {

using campaign::CallableOutcome;

struct Accepted {
  std::vector<double> energy_j, time_s, power_w;
  Seconds duration{0};
  std::int64_t calls = 0;
  const measure::Window* first = nullptr;
};

// Both arms are one callable: every accepted window is one of it.
Accepted accepted_of(const CallableOutcome& o) {
  Accepted a;
  for (const auto& w : o.windows) {
    if (!w.pair_accepted || !w.estimate.mean_power || !w.estimate.energy_per_launch) continue;
    if (a.first == nullptr) a.first = &w;
    a.energy_j.push_back(w.estimate.energy_per_launch->value());
    a.time_s.push_back(w.reading.latency().value());
    a.power_w.push_back(w.estimate.mean_power->value());
    a.duration += w.reading.elapsed;
    a.calls += w.reading.launches();
  }
  return a;
}

Result<Json> with_interval(std::span<const double> values, double level) {
  HEBE_TRY(const auto interval, measure::t_interval(values, level));
  return Json{{"value", measure::mean_of(values)}, {"low", interval.low}, {"high", interval.high}};
}

// An idle board whose clocks are as under load draws more than one whose clocks have fallen.
tune::Idle idle_state(const campaign::IdleWindow& idle, const measure::Window& busy) {
  if (idle.begin.sm_clock_mhz && idle.end.sm_clock_mhz && busy.reading.end.sm_clock_mhz) {
    const auto idle_mhz =
        static_cast<double>(std::min(*idle.begin.sm_clock_mhz, *idle.end.sm_clock_mhz));
    if (idle_mhz > 0.9 * static_cast<double>(*busy.reading.end.sm_clock_mhz))
      return tune::Idle::clocks_up;
  }
  return tune::Idle::context_open;
}

// The counter over the idle window: one that holds is not metering, whatever the samples say.
Status counter_moves(const campaign::IdleWindow& idle, const tune::MeterIdentity& meter) {
  if (!idle.begin.energy_mj) return std::unexpected(idle.begin.energy_mj.error());
  if (!idle.end.energy_mj) return std::unexpected(idle.end.energy_mj.error());
  if (*idle.end.energy_mj > *idle.begin.energy_mj) return {};
  const bool held = *idle.end.energy_mj == *idle.begin.energy_mj;
  return std::unexpected(tune::meter_refusal(
      held ? RefusalCode::meter_frozen : RefusalCode::meter_backwards, meter,
      fmt::format("the idle window's counter {} in {:.6g} s ({} to {} mJ): a chip draws power "
                  "doing nothing, so a counter that holds is not metering",
                  held ? "did not advance" : "went backwards", idle.duration.value(),
                  *idle.begin.energy_mj, *idle.end.energy_mj),
      "", "qualify the board's meters again, or use a longer window"));
}

Result<Json> marginal_of(const CallableOutcome& o, const Accepted& a) {
  const auto& idle = *o.idle;
  const tune::MeterIdentity meter{o.acquisition.samples.name, o.meter_status,
                                  o.acquisition.provenance};
  HEBE_CHECK(
      counter_moves(idle, {o.acquisition.counter.name, o.meter_status, o.acquisition.provenance}));
  if (idle.power && idle.longest_repeat > idle.duration * 0.5)
    return std::unexpected(tune::meter_refusal(
        RefusalCode::meter_frozen, meter,
        fmt::format("the idle window's samples showed one value for {:.6g} of {:.6g} s",
                    idle.longest_repeat.value(), idle.duration.value()),
        ""));
  tune::MarginalRequest request;
  const auto mean = measure::mean_of(a.power_w);
  request.busy = {meter, tune::PowerWindow{Watts(mean),
                                           Watts(measure::sd_of(a.power_w, mean) /
                                                 std::sqrt(static_cast<double>(a.power_w.size()))),
                                           to_nanos(a.duration)}};
  if (idle.power)
    request.idle = {meter,
                    tune::PowerWindow{*idle.power, idle.standard_error, to_nanos(idle.duration)}};
  request.idle_state = idle_state(idle, *a.first);
  request.operations = a.calls;
  HEBE_TRY(const auto cost, tune::marginal_cost(request));
  return Json{{"value", cost.exact_nj * 1e-9},
              {"low", cost.low_nj * 1e-9},
              {"high", cost.high_nj * 1e-9},
              {"cost_nj", json_integer(cost.cost_nj)},
              {"idle", tune::name_of(cost.idle_state)},
              {"idle_w", idle.power->value()},
              {"idle_standard_error_w", idle.standard_error.value()},
              {"idle_s", idle.duration.value()}};
}

Json common_json(const CallableOutcome& o) {
  Json windows = Json::array();
  for (const auto& w : o.windows) windows.push_back(to_json(w, o.acquisition.provenance));
  return {{"provenance", name_of(o.acquisition.provenance)},
          {"device",
           {{"name", o.device.name},
            {"uuid", o.device.uuid},
            {"pci_bus_id", o.device.pci_bus_id},
            {"simulated", o.device.simulated}}},
          {"meter", {{"name", o.acquisition.samples.name}, {"status", o.meter_status}}},
          {"tier", o.plan.tier.name},
          {"seed", std::to_string(o.plan.seed)},
          {"warm_up_s", o.acquisition.warm_up.duration.value()},
          {"analysis", o.analysis.json},
          {"windows", windows}};
}

} // namespace

Result<Json> measured_json(const CallableOutcome& o) {
  const auto a = accepted_of(o);
  if (a.energy_j.size() < 2)
    return refuse(RefusalCode::gate_failed,
                  fmt::format("{} windows were accepted: nothing can be said", a.energy_j.size()));
  auto out = common_json(o);
  HEBE_TRY(out["energy_per_call_j"], with_interval(a.energy_j, o.plan.level));
  HEBE_TRY(out["time_per_call_s"], with_interval(a.time_s, o.plan.level));
  HEBE_TRY(out["power_w"], with_interval(a.power_w, o.plan.level));
  out["calls"] = json_integer(a.calls);
  out["measured_s"] = a.duration.value();
  out["marginal_j"] = nullptr;
  if (o.idle) {
    const auto marginal = marginal_of(o, a);
    out["marginal_j"] = marginal ? *marginal : Json{{"refused", refusal_json(marginal.error())}};
  }
  return out;
}

Json compared_json(const CallableOutcome& o) {
  auto out = common_json(o);
  out["calls_per_window"] = {json_integer(o.launches_per_window[0]),
                             json_integer(o.launches_per_window[1])};
  return out;
}

} // namespace hebe::capi
