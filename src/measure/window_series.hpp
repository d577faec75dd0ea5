// Windows of one load after another on a warm board, each by itself: what a search among many
// kernels measures, where a job measures pairs of two. In: graphs, a board's meter under the same
// sampler, pre-roll and gates as a job's; out: mean power and latency with their standard errors,
// and the board's power while it does nothing. Invariant: a window that fails its gates in every
// attempt is a refusal, never a number.
#pragma once

#include "measure/board_watch.hpp"
#include "measure/experiment.hpp"
#include "measure/replay_stream.hpp"

namespace hebe::measure {

/// One graph, and how long a replay of it took when it was sized.
struct SteadyLoad {
  gpu::Graph* graph = nullptr;
  std::uint32_t launches_per_replay = 0;
  Seconds replay_time{0};
  Seconds shortest{0}; ///< that a window may be
};

/// The board's cumulative counter as it was read at a window's edges, for whoever looks again: the
/// power of the samples is held against it by the gates. Absent: it could not be read.
struct EdgeCounts {
  std::optional<std::int64_t> begin_mj, end_mj;
  Seconds between{0}; ///< from the one read to the other
};

/// What one window gave. The error of the mean power is that of the means of batches of samples
/// that are longer than the meter's memory, as wide as a t interval of so few of them is.
struct SeriesWindow {
  Watts power, power_error;
  Seconds latency{0}, latency_error{0};
  Seconds duration{0}; ///< host time between the window's edges
  std::int64_t launches = 0;
  Seconds spent{0}; ///< device time with pre-roll, waiting and every attempt
  int attempts = 1;
  EdgeCounts counts{};
};

/// The board with its context open and nothing to do.
struct IdleStretch {
  Watts power, power_error;
  Seconds duration{0};
  std::optional<std::int64_t> sm_clock_mhz; ///< at its end
  EdgeCounts counts{};
};

class WindowSeries {
public:
  /// `tier` gives the gates. The supervision outlives the series.
  WindowSeries(gpu::Device& device, meter::BoardMeter& meter, const Tier& tier,
               const Supervision& supervision, std::uint64_t seed);

  /// The board's first load: the meter is checked against it, then `at_least` is waited. Refuses
  /// what a job's warm-up refuses.
  [[nodiscard]] Status warm_up(const SteadyLoad& load, Seconds at_least);
  /// After what was run before has left the meter's memory.
  [[nodiscard]] Result<IdleStretch> idle(Seconds asked);
  /// Pre-roll, then the window; again while its gates fail, up to the tier's attempts. Longer than
  /// asked where the meter remembers so long that its samples could not say how sure they are, and
  /// where the power limit holds the clock, whose control swings more slowly than short windows.
  [[nodiscard]] Result<SeriesWindow> window(const SteadyLoad& load, Seconds asked);

  [[nodiscard]] const MeterBehaviour& behaviour() const { return behaviour_; }
  [[nodiscard]] const std::optional<std::int64_t>& loaded_clock_mhz() const { return clock_mhz_; }

private:
  [[nodiscard]] Result<Window> attempt(const SteadyLoad& sized, Seconds length);
  [[nodiscard]] Result<SteadyLoad> as_it_runs(ReplayStream& stream, SteadyLoad load);
  [[nodiscard]] Result<bool> until_the_clock_holds(ReplayStream& stream);
  [[nodiscard]] Status await_samples(ReplayStream* stream, const SteadyLoad* load,
                                     std::int64_t until_ns);
  [[nodiscard]] Status still_fit();
  [[nodiscard]] double memory() const; ///< of the meter, in samples
  [[nodiscard]] Seconds long_enough(Seconds asked) const;
  [[nodiscard]] Result<std::pair<Watts, Watts>> mean_power(std::int64_t begin_ns,
                                                           std::int64_t end_ns, Watts mean) const;

  gpu::Device& device_;
  meter::BoardMeter& meter_;
  const Tier& tier_;
  const Supervision& supervision_;
  std::uint64_t seed_;
  meter::PowerSampler sampler_;
  BoardWatch watch_;
  MeterBehaviour behaviour_;
  Reference reference_;
  std::optional<std::int64_t> clock_mhz_;
  std::int64_t windows_ = 0;
  std::optional<Instant> loaded_until_; ///< of the last load
};

/// The standard error of the mean of a series that remembers `memory` values: from the means of
/// batches of at least twice that many (at most 20 batches), widened so that 1.96 of it is the
/// half-width of their t interval. None: fewer than four batches.
[[nodiscard]] std::optional<double> batch_error(std::span<const double> values, double memory);

} // namespace hebe::measure
