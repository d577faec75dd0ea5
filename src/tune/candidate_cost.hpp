// What a candidate costs by all its windows. In: windows, the board's idle power, how much equal
// windows differ on this board; out: marginal energy and latency of one launch with intervals, and
// what the objective makes of them. Invariant: a cost is refused as tune/marginal refuses it, never
// 0; more windows never make it less sure.
#pragma once

#include "measure/window_series.hpp"
#include "tune/marginal.hpp"
#include "tune/tune_spec.hpp"

namespace hebe::tune {

/// How much two windows of one kernel differ, relative to their mean: one standard deviation, as
/// wide as a t interval of so few is.
struct WindowNoise {
  double power = 0, latency = 0;
};
/// From windows of the baseline that were taken among the others. None: fewer than three.
[[nodiscard]] std::optional<WindowNoise>
noise_of(std::span<const measure::SeriesWindow> of_baseline);

/// Idle power of the search, and what the board did then.
struct IdlePower {
  Watts mean, error;
  Seconds duration{0};
  Idle state = Idle::clocks_up;
};
/// Of several stretches: their mean; what they differ by beyond their own errors counts as error.
[[nodiscard]] Result<IdlePower> idle_power(std::span<const measure::IdleStretch> stretches,
                                           const std::optional<std::int64_t>& loaded_clock_mhz);

/// A window with the errors that it is given in its rung.
struct CandidateWindow {
  measure::SeriesWindow seen;
  Watts power_error;
  Seconds latency_error{0};
};
[[nodiscard]] CandidateWindow with_noise(const measure::SeriesWindow& window,
                                         const WindowNoise& noise);

struct CandidateCost {
  MarginalCost energy;                         ///< of one launch
  double latency_ns = 0, latency_error_ns = 0; ///< one standard error
  double value = 0, low = 0, high = 0;         ///< of the objective: nJ, or nJ·s; 95 %
  Seconds measured{0};                         ///< length of its windows
};

struct CostTerms {
  IdlePower idle;
  MeterIdentity meter;
  Objective objective = Objective::energy;
  std::string not_written;
  IdleCharge idle_power = IdleCharge::excluded;
};
[[nodiscard]] Result<CandidateCost> cost_of(std::span<const CandidateWindow> windows,
                                            const CostTerms& terms);

} // namespace hebe::tune
