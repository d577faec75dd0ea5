// When did the energy counter move? A counter that is cached for 100 ms says at a window's edge
// what it was up to 100 ms before, which is 2 % of a window of 5 s. In: what was read at the edges
// of a run's windows; out: the period and phase of the counter's updates, and with them how much of
// its own time lies between two reads. Invariant: one period and one phase for a whole run, and the
// counter's gain left free: what it says of a single window cannot choose that window's updates.
#pragma once

#include "measure/window.hpp"

#include <span>

namespace hebe::measure {

/// The counter shows at t what it was at the last of the instants phase + n x period before t.
struct CounterUpdates {
  double period_ns = 0, phase_ns = 0; ///< host monotonic time
  /// Mean distance of the windows' ratios (counter against samples) from their median.
  double spread = 0;
  std::size_t windows = 0; ///< that it follows from
  /// A read this close to an update may have seen either side of it: 2 ms for the moment at which a
  /// call looks, or what the reads leave open of the phase, if that is more.
  double doubtful_ns = 0;

  /// Updates between two reads; the first and the last moment of a read are its call's.
  [[nodiscard]] std::int64_t between(std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] bool doubtful(std::int64_t read_ns) const;
};

/// Searches within 200 ppm of the nominal period. None: too few windows, or no period explains what
/// was read to a tenth of an update.
[[nodiscard]] std::optional<CounterUpdates> find_counter_updates(std::span<const Window> windows,
                                                                 Seconds nominal_period);

/// The counter's power over a window, by its own updates: the energy between the reads over the
/// time between the updates that they show. It is that of the window from up to one update before,
/// which the pre-roll keeps of the same arm. Changes the estimate's counter members.
void time_counter(Window& window, const CounterUpdates& updates);

} // namespace hebe::measure
