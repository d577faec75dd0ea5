// Is a window fit to be counted? In: its reading, its estimate, the tier; out: one result a gate.
// Invariant: pure, so that a reader can judge again; nothing is judged by the energy it shows.
#pragma once

#include "measure/tier.hpp"
#include "measure/window_energy.hpp"

#include <span>

namespace hebe::measure {

/// What windows are compared with, fixed at the end of the warm-up.
struct Reference {
  std::array<Seconds, 2> latency{};    ///< per arm
  std::optional<double> temperature_c; ///< at which it settled: settled_temperature()
  std::optional<Watts> power_limit;
};

/// Whether the board's power control held the clock down at that instant, as NVML says.
[[nodiscard]] bool at_power_limit(const meter::Boundary& boundary);

/// Of the clock's reasons at that instant those that void a window: heat, brake, sync.
[[nodiscard]] std::int64_t voiding_reasons(const meter::Boundary& boundary);

/// Of the time between two readings, for which the board's power control held the clock down: a
/// fact about the kernel, as the power cap itself is. By the instants' reasons where time is not
/// counted.
[[nodiscard]] double capped_share(const meter::Boundary& from, const meter::Boundary& to,
                                  Nanos between);

/// Device time of an arm that must pass before its window begins: what the response record says, or
/// five lags of the warm-up's step.
[[nodiscard]] Seconds pre_roll_for(const MeterBehaviour& behaviour);

/// The tier's shortest, or where the tier is evidence the response record's, if that is longer.
[[nodiscard]] Seconds shortest_window(const Tier& tier, const KnownResponse& response);

/// `clock_jumped`: the wall clock stepped during the window.
[[nodiscard]] std::vector<GateResult> judge_window(const WindowReading& window,
                                                   const WindowEstimate& estimate, const Tier& tier,
                                                   const MeterBehaviour& behaviour,
                                                   const Reference& reference, bool clock_jumped);

/// A gate's name, value and limit, and what else the reading says of it.
[[nodiscard]] std::string told(const GateResult& gate, const WindowReading& reading);

/// Judges the temperature of all pairs, anew each time: the second window's gates end with that.
/// What arms differ by themselves is the median of B less A over all pairs and attempts, so that it
/// depends neither on their order nor on which were accepted; of one code (`is_aa`) nothing.
/// Windows come two and two.
void judge_temperatures(std::span<Window> windows, const Tier& tier, const Reference& reference,
                        bool is_aa);

} // namespace hebe::measure
