// What the host's energy counters read while host code was metered, and what follows from that
// alone. In: counts at the edges of idle stretches and windows of work; out: idle power and the
// marginal cost of one operation; the same readings as JSON, and back. Invariant: whoever measures
// and whoever verifies computes the cost by one function, from nothing but these readings.
#pragma once

#include "core/json.hpp"
#include "tune/candidate_cost.hpp"

namespace hebe::tune {

struct HostWindows {
  Seconds idle{2}, busy{1};
  int count = 5;           ///< busy windows; idle is read before and after them
  Seconds longest_wait{1}; ///< for one update of the counter
};

struct HostCounter {
  std::string name;
  double joules_per_count = 0;
};

/// From one update of every counter to a later one. Counts are the counter's own: where it wrapped
/// they go on beyond it.
struct HostStretch {
  std::vector<std::int64_t> begin, end; ///< of each counter
  Seconds duration{0};
  std::int64_t operations = 0; ///< 0: the host did nothing
  Seconds worked{0};           ///< what they took together; 0: as above
};

struct HostReadings {
  std::vector<HostCounter> counters;       ///< that together cover the machine
  std::vector<HostStretch> idles, windows; ///< idle: before the first window and after the last
};

/// The counters as one meter.
[[nodiscard]] MeterIdentity host_identity(std::span<const HostCounter> counters,
                                          Provenance provenance);

/// Watts of a machine that does nothing else, and what one operation costs beyond them.
struct HostCost {
  IdlePower idle;
  CandidateCost cost;
  HostReadings readings; ///< that both follow from
};
/// Refused as tune/marginal refuses it. `not_written` is named then.
[[nodiscard]] Result<HostCost> host_cost(HostReadings readings, const MeterIdentity& meter,
                                         Objective objective, const std::string& not_written);

/// analysis_mismatch: they are not what a meter asked for `due` would have read: another number of
/// windows, a window too short, a counter that does not advance from edge to edge.
[[nodiscard]] Status check_host_readings(const HostReadings& readings, const HostWindows& due,
                                         const std::string& where);

/// As a record keeps them: a row a stretch, its columns named beside it.
[[nodiscard]] Json json_of(const HostReadings& readings);
/// Of JSON that follows the record's schema.
[[nodiscard]] HostReadings host_readings_from(const Json& json);

} // namespace hebe::tune
