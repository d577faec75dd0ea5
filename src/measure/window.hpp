// One timed window of one arm, as read. In: the run loop; out: a line of windows.jsonl and back.
// Invariant: raw readings and their derived values stay apart, so that the second can be recomputed
// from the first.
#pragma once

#include "core/json.hpp"
#include "meter/board_meter.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hebe::measure {

/// What was read of one window, before any judgement.
struct WindowReading {
  std::int64_t index = 0;                           ///< order of execution
  int pair = 0, attempt = 0, position = 0, arm = 0; ///< position: 0 first, 1 second; arm: 0 A, 1 B
  std::int64_t begin_ns = 0, end_ns = 0; ///< host monotonic, at the device's begin and end events
  Seconds elapsed{0};                    ///< between those events, by the device
  std::uint32_t launches_per_replay = 0;
  std::int64_t replays = 0;
  double replay_cv = 0; ///< of the replays' own times
  Seconds pre_roll{0};  ///< device time of the same arm before begin
  /// GPU idleness from the previous window's end, or a hold's, to this one's begin.
  Seconds idle_before{0};
  std::vector<double> pre_roll_replays; ///< what each replay before it took, s; none: not kept
  meter::Boundary begin, end;
  [[nodiscard]] std::int64_t launches() const { return replays * launches_per_replay; }
  [[nodiscard]] Seconds latency() const { return elapsed / static_cast<double>(launches()); }
};

/// What the meters make of it. Absent parts are absent, never 0.
struct WindowEstimate {
  std::int64_t samples = 0;
  double coverage = 0;
  Seconds max_gap{0};
  Seconds longest_repeat{0};       ///< longest stretch over which the samples show one value
  std::optional<Watts> mean_power; ///< primary: buffered samples
  std::optional<Joules> energy_per_launch;
  /// Cross-check: counter difference over the reads' interval, or over the counter's own updates.
  std::optional<Watts> counter_power;
  std::optional<std::int64_t> counter_updates; ///< between the two reads, where they are known
  int doubtful_edges =
      0; ///< of those, how many may be one more or less (measure/counter_updates.hpp)
};

struct GateResult {
  std::string name;
  RefusalCode code; ///< what the refusal would be if no attempt passes
  bool passed = true;
  std::optional<double> value;
  std::optional<double> limit; ///< none: reported only
};

struct Window {
  WindowReading reading;
  WindowEstimate estimate;
  std::vector<GateResult> gates;
  bool pair_accepted = false;
  [[nodiscard]] bool passed() const;
};

[[nodiscard]] Json to_json(const meter::Boundary& boundary);
[[nodiscard]] Json to_json(const Window& window,
                           Provenance provenance); ///< schema hebe.run.window/1
/// Reads the raw part back, and the stored acceptance; estimate and gates are to be recomputed.
[[nodiscard]] Result<Window> window_from(const Json& json, std::string_view where);

} // namespace hebe::measure
