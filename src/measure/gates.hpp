// Is a window fit to be counted? In: its reading, its estimate, the tier; out: one result a gate.
// Invariant: pure, so that a reader can judge again; nothing is judged by the energy it shows.
#pragma once

#include "measure/tier.hpp"
#include "measure/window_energy.hpp"

namespace hebe::measure {

/// What windows are compared with, fixed at the end of the warm-up.
struct Reference {
  std::array<Seconds, 2> latency{};          ///< per arm
  std::optional<std::int64_t> temperature_c; ///< at the end of the warm-up
  std::optional<Watts> power_limit;
};

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

/// Temperature of pairs, asked pair by pair in the order of measurement, every attempt once: what
/// the arms differ by themselves is the median of B less A so far, this pair included. The first
/// pair can show no drift within itself; that its mean is the warm-up's, it must show as all
/// others.
class PairDrift {
public:
  /// To be appended to the second window's gates.
  [[nodiscard]] std::vector<GateResult> judge(const WindowReading& first,
                                              const WindowReading& second, const Tier& tier,
                                              const Reference& reference);

private:
  std::vector<double> b_less_a_; ///< C
};

} // namespace hebe::measure
