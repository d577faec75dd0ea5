// The simulated board's single values: the same fields as NVML's, cached as an H200's are. In: the
// board's true power; out: readings. Invariant: a value changes at its own ticks only, whatever the
// order and rate of calls.
#include "meter/sim_meter.hpp"

#include "core/philox.hpp"
#include "meter/called_source.hpp"

#include <algorithm>
#include <functional>

namespace hebe::meter {
namespace {
using gpu::FaultKind;
constexpr std::uint64_t kFieldStream = 0xf1e1d;

} // namespace

// Each field updates at its own phase of the period.
Instant SimMeter::field_tick(Instant now, Nanos period, Nanos phase) const {
  const auto since = now - board_.start() - phase;
  const auto n = since.count() >= 0 ? since / period : -1;
  return board_.start() + phase + n * period;
}

Result<std::int64_t> SimMeter::instant_mw(Instant now) const {
  if (board_.active(FaultKind::field_denied, now))
    return refuse(RefusalCode::no_permission,
                  "NVML field 186: Insufficient Permissions (simulated NVML 4)",
                  "ask the administrator to allow it", "NVML field 186");
  auto tick = field_tick(now, model_.field_period, model_.instant_phase);
  if (auto stale = board_.active(FaultKind::field_stale, now))
    tick = std::max(board_.start() + to_nanos(stale->after),
                    field_tick(now, std::chrono::seconds(3), model_.instant_phase));
  if (auto frozen = board_.active(FaultKind::field_frozen, now))
    tick = std::min(tick, board_.start() + to_nanos(frozen->after));
  const auto end = tick - model_.delay;
  const auto index = static_cast<std::uint64_t>((tick - board_.start()).count() + 1'000'000'000);
  double watts = board_.mean_power(end - model_.instant_averaging, end).value() +
                 model_.sample_noise.value() * Philox(board_.seed() ^ kFieldStream, index).normal();
  if (board_.active(FaultKind::field_lies, now)) watts *= 1.3;
  if (board_.active(FaultKind::field_implausible, now)) return 4'991'201'436'214'789'335;
  const double unit = board_.active(FaultKind::field_wrong_unit, now) ? 1e6 : 1e3;
  return std::llround(watts * unit);
}

Result<std::int64_t> SimMeter::average_mw(Instant now) const {
  const auto tick = field_tick(now, model_.field_period, model_.average_phase);
  return std::llround(board_.mean_power(tick - std::chrono::seconds(1), tick).value() * 1e3);
}

std::vector<Discovered> SimMeter::sources() {
  std::vector<Discovered> out;
  const auto add = [&](const char* name, const char* field, Quantity quantity, Nanos cost,
                       std::function<Result<std::int64_t>(Instant)> read) {
    SourceDescription d{{name, field, "gpu", quantity == Quantity::power ? "mW" : "mJ"},
                        quantity,
                        1e-3,
                        identity_.vendor,
                        identity_.driver,
                        identity_.uuid,
                        std::nullopt};
    // What the meter says at the beginning of the call, which then takes its time.
    auto call = [this, cost, read = std::move(read)]() -> Result<std::int64_t> {
      const auto now = board_.clock().now();
      const auto alive_then = alive();
      auto value =
          alive_then ? read(now) : Result<std::int64_t>(std::unexpected(alive_then.error()));
      board_.clock().sleep_for(cost);
      return value;
    };
    out.push_back({std::make_unique<CalledSource>(std::move(d), board_.clock(), std::move(call)),
                   name, std::nullopt});
  };
  const auto counter = [this](Instant now) { return counter_mj(now); };
  const auto average = [this](Instant now) { return average_mw(now); };
  add("sim.counter.total_energy", "simulated energy counter", Quantity::energy_counter,
      model_.call_cost, counter);
  add("sim.field.energy", "simulated field 191", Quantity::energy_counter, model_.call_cost,
      counter);
  add("sim.field.power_average", "simulated field 185", Quantity::power, model_.field_cost,
      average);
  add("sim.field.power_instant", "simulated field 186", Quantity::power, model_.field_cost,
      [this](Instant now) { return instant_mw(now); });
  add("sim.field.power_instant.module", "simulated field 186, scope 1", Quantity::power,
      model_.field_cost, [](Instant) -> Result<std::int64_t> {
        return refuse(RefusalCode::meter_unsupported,
                      "NVML field 186, scope 1: Not Supported (simulated NVML 3)",
                      "this board or driver does not offer it", "NVML field 186");
      });
  add("sim.call.total_energy", "simulated energy call", Quantity::energy_counter, model_.call_cost,
      counter);
  add("sim.call.power_usage", "simulated power call", Quantity::power, model_.field_cost, average);
  return out;
}

} // namespace hebe::meter
