// How late and how smooth does a source show what the board does? In: a recording with steps and
// square waves whose edges are known; out: delay, averaging window, rise, tail, which periods
// alias, and the pre-roll and window that follow. Invariant: pure; the sensor is modelled as a box
// filter seen late, and the residual says how well that fits.
#pragma once

#include "measure/probe_load.hpp"
#include "measure/source_statistics.hpp"

namespace hebe::measure {

/// The pseudo-source whose readings are the pulses: before and after the call are their edges.
inline constexpr const char* kLoadSource = "load";
[[nodiscard]] SourceRecord load_record(std::span<const Pulse> pulses);
[[nodiscard]] std::vector<Pulse> pulses_of(const Recording& recording);

/// watts(t) = off + (on - off) x share of [t - delay - window, t - delay] that was loaded.
struct BoxFit {
  double delay_s = 0, window_s = 0, off_w = 0, on_w = 0;
  double residual_w = 0; ///< root mean square
  std::size_t points = 0;
};
[[nodiscard]] std::optional<BoxFit> fit_box(std::span<const Point> points,
                                            std::span<const Pulse> pulses);

/// A point of the step, laid over all others of its kind: the steps come at random phases of the
/// samples, so together they are far closer than one step's are.
struct StepPoint {
  double t_s = 0, level = 0; ///< since the edge; 0 before, 1 after
};
struct Step {
  std::vector<StepPoint> points; ///< in time order
  std::optional<double> t10_s, t50_s, t90_s, t95_s;
  [[nodiscard]] std::optional<double> rise_s() const {
    return t10_s && t90_s ? std::optional(*t90_s - *t10_s) : std::nullopt;
  }
};
[[nodiscard]] Step step_of(std::span<const Point> points, std::span<const Pulse> pulses,
                           const BoxFit& fit, bool rising);

/// What is left after the fall and dies out slowly.
struct Tail {
  double watts = 0, standard_error_w = 0, time_s = 0;
};
[[nodiscard]] std::optional<Tail> tail_of(std::span<const Point> points,
                                          std::span<const Pulse> pulses, const BoxFit& fit);

/// One square wave as the source saw it.
struct AliasingPoint {
  double period_s = 0, duty = 0;
  double seen_ratio = 0;      ///< amplitude at the true period, of the load's own
  double predicted_ratio = 0; ///< of a box filter of the fitted window
  double apparent_period_s = 0,
         apparent_ratio = 0;   ///< strongest slower line, of the load's amplitude
  double mean_error_ratio = 0; ///< mean seen against the mean that was there
  /// The harmonic of the wave at which the samples' phases stand still, where it weighs most: 0
  /// none does. In a field of 100 ms the phases of a wave of 200 ms stand at its second, of 300 ms
  /// at its third, of 250 ms (two updates in five) at its fifth.
  int standing = 0;
  double standing_ratio = 0; ///< how still: 1 all at the same few phases, 0 everywhere
  /// What that harmonic adds to the mean, for ever, where the wave meets the samples at the worst
  /// phase; of the mean that is there.
  double standing_error_ratio = 0;
  bool locked =
      false; ///< the samples stay at a few phases of the wave, so that what they show, its
             ///< mean or its amplitude, depends on which: wrong for ever, but by chance
  bool aliases = false; ///< it shows as something slower that is not there, or is locked
};

/// How aliasing is told; a stored response keeps its own. 1: by lines above half the sample rate.
/// 2: also by phases that stand still, below it as well.
inline constexpr int kAliasingRule = 2;

struct SourceResponse {
  std::string name;
  std::optional<BoxFit> fit;
  Step on, off;
  std::optional<Tail> tail;
  std::optional<double> sample_period_s;
  std::vector<AliasingPoint> aliasing;
  std::string why_not; ///< no fit
};

/// Error that the edges of a window may cost, relative.
inline constexpr double kEdgeError = 0.005;

struct Response {
  std::vector<SourceResponse> sources;
  std::string primary; ///< whose numbers the settings follow; empty: none
  double lag_s = 0, pre_roll_s = 0, minimum_window_s = 0;
  std::string refusal;
  int aliasing_rule = kAliasingRule;
  [[nodiscard]] bool qualified() const { return refusal.empty(); }
};

[[nodiscard]] Response respond(const Recording& recording, int aliasing_rule = kAliasingRule);
/// The rule that stored findings were made by.
[[nodiscard]] int aliasing_rule_of(const Json& findings);
[[nodiscard]] Json to_json(const Response& response);

} // namespace hebe::measure
