#include "meter/sim_meter.hpp"

#include "meter/discovered.hpp"

#include "core/philox.hpp"

#include <algorithm>

namespace hebe::meter {
namespace {
using gpu::FaultKind;
constexpr std::uint64_t kNoiseStream = 0x3e7e5;
constexpr Nanos kClockJump = std::chrono::seconds(2);
constexpr std::int64_t kFull = 1LL << 32;
constexpr std::int64_t kCounterBase = 2'857'338; // a counter runs since the driver was loaded

std::unexpected<Refusal> unsupported(std::string call) {
  return refuse(RefusalCode::meter_unsupported, call + ": Not Supported (simulated NVML 3)",
                "this board or driver does not offer it", call);
}

double noise_at(std::uint64_t seed, std::int64_t index) {
  return Philox(seed, kNoiseStream + static_cast<std::uint64_t>(index) * 2).normal();
}
} // namespace

SimMeter::SimMeter(gpu::SimBoard& board, const gpu::DeviceInfo& info, MeterModel model)
    : board_(board), identity_{"hebe",          info.name,   info.uuid,
                               info.pci_bus_id, info.driver, Provenance::simulated},
      model_(model) {}

SourceIdentity SimMeter::samples_source() const {
  return {"sim.samples.total_power", "simulated sample buffer", "gpu", "mW"};
}
SourceIdentity SimMeter::counter_source() const {
  return {"sim.counter.total_energy", "simulated energy counter", "gpu", "mJ"};
}

Status SimMeter::alive() const {
  if (board_.active(FaultKind::nvml_lost, board_.clock().now()))
    return refuse(RefusalCode::device_error, "GPU is lost (simulated NVML 15)",
                  "the GPU fell off the bus: see dmesg, reboot");
  return {};
}

Instant SimMeter::sample_instant(std::int64_t index) const {
  const double u =
      Philox(board_.seed(), kNoiseStream + static_cast<std::uint64_t>(index) * 2 + 1).uniform();
  const auto jitter =
      static_cast<std::int64_t>((2 * u - 1) * static_cast<double>(model_.sample_jitter.count()));
  return board_.start() + index * model_.sample_period + Nanos(jitter);
}

std::int64_t SimMeter::sample_mw(std::int64_t index, Instant at) const {
  if (board_.active(FaultKind::samples_zero, at)) return 0;
  if (board_.active(FaultKind::samples_implausible, at)) return 4'991'201'436'214'789'335;
  if (auto fault = board_.active(FaultKind::samples_frozen, at)) {
    at = board_.start() + to_nanos(fault->after);
    index = 0;
  }
  const auto end = at - model_.delay;
  const double watts = board_.mean_power(end - model_.averaging, end).value() +
                       model_.sample_noise.value() * noise_at(board_.seed(), index);
  return std::llround(watts * 1e3);
}

Result<std::vector<PowerSample>> SimMeter::read_power_samples(std::int64_t since) {
  HEBE_CHECK(alive());
  const auto now = board_.clock().now();
  if (board_.active(FaultKind::samples_unsupported, now))
    return unsupported("nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)");
  std::vector<PowerSample> out;
  if (board_.active(FaultKind::samples_empty, now)) return out;
  // Another domain: time since the machine was started, as some drivers stamp.
  const std::int64_t domain =
      board_.active(FaultKind::samples_foreign_clock, now) ? 4'321'000'000 : 0;
  if (domain != 0)
    since = since > 0
                ? since + board_.clock().wall_us() - (now - board_.start()).count() / 1000 - domain
                : 0;
  const auto jump = board_.active(FaultKind::clock_jump, now);
  if (jump && !jumped_) board_.clock().jump_wall(kClockJump);
  jumped_ = jump.has_value();
  const auto offset_us = board_.clock().wall_us() - now.time_since_epoch().count() / 1000;
  const auto newest = (now - board_.start()) / model_.sample_period + 1;
  const auto oldest = newest - static_cast<std::int64_t>(model_.buffer_length);
  for (auto index = oldest; index <= newest; ++index) {
    const auto latest = board_.start() + index * model_.sample_period + model_.sample_jitter;
    if (latest.time_since_epoch().count() / 1000 + offset_us <= since)
      continue; // seen, whatever its jitter
    const auto at = sample_instant(index);
    if (at > now) continue;
    if (auto gap = board_.active(FaultKind::samples_gap, at);
        gap && at < board_.start() + to_nanos(gap->after + Seconds(1)))
      continue;
    auto wall = at.time_since_epoch().count() / 1000 + offset_us;
    if (jump && !board_.active(FaultKind::clock_jump, at))
      wall -= kClockJump.count() / 1000; // stamped before the step
    if (wall > since) out.push_back({wall, sample_mw(index, at)});
  }
  if (domain != 0)
    for (auto& s : out)
      s.wall_us -= board_.clock().wall_us() - (now - board_.start()).count() / 1000 - domain;
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.wall_us < b.wall_us; });
  return out;
}

Result<std::int64_t> SimMeter::counter_mj(Instant now) const {
  if (board_.active(FaultKind::counter_unsupported, now))
    return unsupported("NVML field 83 (TOTAL_ENERGY_CONSUMPTION)");
  auto tick =
      board_.start() + (now - board_.start()) / model_.counter_period * model_.counter_period;
  if (auto frozen = board_.active(FaultKind::counter_frozen, now))
    tick = std::min(tick, board_.start() + to_nanos(frozen->after));
  const auto mj = [&](Instant a, Instant b) {
    return static_cast<std::int64_t>(board_.energy(a, b).value() * 1e3);
  };
  if (auto reset = board_.active(FaultKind::counter_reset, now))
    return mj(board_.start() + to_nanos(reset->after), tick);
  if (auto lie = board_.active(FaultKind::meter_lies, now)) {
    const auto from = board_.start() + to_nanos(lie->after);
    return kCounterBase + mj(board_.start(), from) + mj(from, tick) * 13 / 10;
  }
  // A register of 32 bits that nobody declared: it restarts at 0 where it is full, at that second.
  for (const auto& fault : board_.faults())
    if (fault.kind == FaultKind::counter_wraps) {
      const auto full = board_.start() + to_nanos(fault.after);
      return tick < full ? kFull - mj(tick, full) : mj(full, tick);
    }
  const std::int64_t lost = board_.active(FaultKind::counter_backwards, now) ? 5'000'000 : 0;
  return kCounterBase + mj(board_.start(), tick) - lost;
}

Result<Boundary> SimMeter::read_boundary() {
  HEBE_CHECK(alive());
  auto& clock = board_.clock();
  Boundary b;
  b.before = clock.now();
  b.energy_mj = counter_mj(b.before);
  b.temperature_c = board_.active(FaultKind::temperature_unsupported, b.before)
                        ? Result<std::int64_t>(unsupported("nvmlDeviceGetTemperature"))
                        : static_cast<std::int64_t>(board_.temperature(b.before).value());
  const bool throttled = board_.active(FaultKind::thermal_throttle, b.before).has_value();
  // As a moment ago: at the end of a window the clock of its own work, though the next has begun.
  constexpr Nanos kClockLag{1'000'000};
  const double mhz = board_.clock_rate(b.before - kClockLag).value() * 1e-6;
  b.sm_clock_mhz = std::llround(throttled ? mhz * 0.8 : mhz);
  b.memory_clock_mhz = 3201;
  b.power_average_mw =
      std::llround(board_.mean_power(b.before - std::chrono::seconds(1), b.before).value() * 1e3);
  const auto since = [&](FaultKind kind) -> std::int64_t {
    const auto fault = board_.active(kind, b.before);
    return fault ? (b.before - board_.start() - to_nanos(fault->after)).count() : 0;
  };
  b.throttle.power_cap_ns = to_nanos(board_.capped(b.before)).count();
  b.throttle.thermal_ns = since(FaultKind::thermal_throttle);
  b.throttle.power_brake_ns = since(FaultKind::power_brake);
  b.throttle.hw_thermal_ns = b.throttle.sync_ns = 0; // the model has neither
  // The driver tells of the limit for a while after it has let go.
  constexpr Nanos kReasonsLag{20'000'000};
  const bool at_limit = board_.capped(b.before) > board_.capped(b.before - kReasonsLag);
  b.event_reasons = (throttled                                         ? 0x20
                     : board_.active(FaultKind::power_brake, b.before) ? 0x80
                                                                       : 0) |
                    (at_limit ? 0x04 : 0);
  clock.sleep_for(model_.call_cost);
  b.after = clock.now();
  return b;
}

Result<std::vector<GpuProcess>> SimMeter::processes() {
  HEBE_CHECK(alive());
  std::vector<GpuProcess> out;
  if (board_.has_context() || board_.active(FaultKind::context_stays, board_.clock().now()))
    out.push_back({1, "hebe"}); // ours; a real pid would differ between runs
  if (board_.active(FaultKind::foreign_process, board_.clock().now()))
    out.push_back({4242, "someone-elses-training"});
  return out;
}

Result<bool> SimMeter::mig_enabled() {
  return board_.active(FaultKind::mig, board_.clock().now()).has_value();
}

Result<std::int64_t> SimMeter::uncorrected_errors() {
  return board_.active(FaultKind::ecc_error, board_.clock().now()) ? 1 : 0;
}

std::vector<Fact> SimMeter::facts() {
  const auto& m = board_.model();
  const std::string source = "board model of the simulated GPU";
  return {known("board.driver", "simulated", source),
          known("board.power_limit_w", m.power_limit.value(), source),
          known("board.idle_w", m.idle.value(), source),
          known("board.context_idle_w", m.context_idle.value(), source),
          known("board.bandwidth_bytes_per_s", m.bandwidth, source),
          known("board.energy_per_byte_j", m.joules_per_byte, source),
          known("board.clock_sm_mhz", m.clock.value() * 1e-6, source),
          unknown("board.vbios", source, "a simulated GPU has none")};
}

} // namespace hebe::meter
