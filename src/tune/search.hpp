// Which candidate costs least, in as little time as the noise allows. In: how many candidates there
// are, how to measure one, how to price its windows; out: what was measured of each, when it was
// dropped, the best. Invariant: a candidate is dropped only when its interval lies wholly beyond
// the best's (or its latency wholly beyond the bound); equal seeds measure in equal order; a
// measurement that is refused ends the search, and then nothing of it counts.
#pragma once

#include "tune/candidate_cost.hpp"

namespace hebe::tune {

struct SearchSettings {
  Method method = Method::halving;
  Seconds window{0.5}, longest_window{4};
  double floor = 0.005; ///< relative: what lies closer is not told apart here
  std::uint64_t seed = 0;
  Objective objective = Objective::energy;
  std::optional<LatencyBound> latency_bound;
};

/// A candidate in the search. Dropped in `rung`: it was measured in it and in none after.
struct Contender {
  enum class State { alive, dropped, over_latency } state = State::alive;
  int rung = -1; ///< the last it was measured in; -1: in none
  std::vector<CandidateWindow> windows;
  std::optional<CandidateCost> cost; ///< by all its windows
  Seconds spent{0};                  ///< device time, with pre-rolls and repetitions
};

struct SearchOutcome {
  std::vector<Contender> contenders; ///< as they were given
  std::vector<std::pair<std::size_t, measure::SeriesWindow>>
      taken;                            ///< every window with its contender, in order
  std::optional<std::size_t> best;      ///< none: no candidate is within the latency bound
  std::optional<std::size_t> runner_up; ///< the best that is neither `best` nor the baseline
  std::size_t fastest = 0;              ///< of all that were measured
  int rungs = 0;
  std::string stopped; ///< why
  std::optional<double> latency_bound_ns;
  Seconds measured{0}, spent{0}; ///< windows of candidates; with all that was needed
  Seconds references{0};         ///< of them: the baseline's windows for the noise
  Seconds exhaustive{0};         ///< windows, if all had been measured as long as the longest
};

/// Measures one window of a candidate.
using MeasureWindow =
    std::function<Result<measure::SeriesWindow>(std::size_t candidate, Seconds length)>;
using PriceWindows = std::function<Result<CandidateCost>(std::span<const CandidateWindow>)>;

/// `baseline`: the candidate whose repeated windows tell the noise; it is measured in every rung.
[[nodiscard]] Result<SearchOutcome> search(std::size_t candidates, std::size_t baseline,
                                           const SearchSettings& settings,
                                           const MeasureWindow& measure, const PriceWindows& price);

} // namespace hebe::tune
