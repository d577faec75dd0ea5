// What one source does, by its readings alone. In: its record and the phases; out: period, jitter,
// resolution, caching, cost, buffer, time stamps, counter behaviour. Invariant: pure; what the
// readings cannot tell is absent, never 0.
#pragma once

#include "measure/source_recording.hpp"

namespace hebe::measure {

struct Spread {
  double median = 0, mean = 0, p1 = 0, p99 = 0;
  std::size_t count = 0;
};
/// By linear interpolation between order statistics; none of an empty set.
[[nodiscard]] std::optional<Spread> spread_of(std::vector<double> values);

/// A value of a power source, or the mean power between two updates of a counter.
struct Point {
  std::int64_t t_ns = 0; ///< when it appeared (host monotonic)
  double watts = 0;
};

/// Where the value changed: the middle of the two readings between which it did.
struct Change {
  std::int64_t t_ns = 0, uncertainty_ns = 0;
  std::int64_t from = 0, to = 0;
};

struct CounterBehaviour {
  std::int64_t falls = 0, declared_wraps = 0, undeclared_wraps = 0, resets = 0;
  std::string what; ///< the first fall, with its numbers
};

struct StampBehaviour {
  std::string domain;      ///< "host wall clock", "host monotonic clock", "another clock"
  double offset_s = 0;     ///< stamp minus host wall clock (median); of the newest sample
  double newest_age_s = 0; ///< host minus newest stamp at its smallest: how late it can be seen
  double drift = 0;        ///< change of the offset over the recording, s
};

struct SourceStatistics {
  std::size_t readings = 0, failed = 0;
  std::string failure; ///< the code of most failures
  std::optional<Spread> call_s, poll_s, period_s;
  double unseen =
      0; ///< share of intervals that hold several periods: an update gave the same value
  std::string period_from; ///< "own time stamps", "readings of it alone", "readings among others"
  std::optional<std::int64_t> smallest_step;
  std::optional<double> repeats; ///< share of readings equal to the one before, polled faster than
                                 ///< it updates
  std::optional<double> zero_differences; ///< of a counter: the same as a share of 0 J
  std::optional<double> longest_age_s;    ///< the longest a value stood while it was read
  std::optional<std::size_t> buffer_length;
  std::optional<double> buffer_span_s;
  std::optional<StampBehaviour> stamps;
  std::optional<CounterBehaviour> counter;
  std::optional<std::int64_t> least, most; ///< raw
  std::size_t zeros = 0;                   ///< readings of exactly 0
  bool moves_at_idle = false, moves_under_load = false, moves = false;
  std::optional<double> settles_s; ///< from the step to full load until 90 % of the way
};

[[nodiscard]] SourceStatistics statistics_of(const SourceRecord& source,
                                             std::span<const Phase> phases);

/// The distinct samples of a buffer, by stamp, on the host's monotonic clock.
[[nodiscard]] std::vector<Point> buffer_points(const SourceRecord& source);
/// Changes of a polled value within phases that read it.
[[nodiscard]] std::vector<Change> changes_of(const SourceRecord& source,
                                             std::span<const Phase> phases);
/// Values with the time they appeared; of a counter the mean power between updates.
[[nodiscard]] std::vector<Point> points_of(const SourceRecord& source,
                                           std::span<const Phase> phases);

/// Mean power over [from, to] with its expected relative error, from the update period and the
/// spread of what was seen.
struct MeanPower {
  double watts = 0, error = 0;
};
[[nodiscard]] std::optional<MeanPower> mean_power(const SourceRecord& source,
                                                  std::span<const Phase> phases,
                                                  std::int64_t from_ns, std::int64_t to_ns);

} // namespace hebe::measure
