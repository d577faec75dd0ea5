// The few that the search leaves, measured again in pairs as sealed runs. In: a searched shape, the
// lease; out: each run, and which implementation the shape keeps: the best only where the pairs say
// that it beats the baseline. Invariant: the search never decides alone; every row that follows
// rests on a sealed run.
#pragma once

#include "campaign/job.hpp"
#include "tune/profile_row.hpp"
#include "tune/shape_search.hpp"

namespace hebe::tune {

/// Two of a shape's candidates, by their places; A and B of the run. Equal: A against itself.
struct PairedRun {
  std::size_t a = 0, b = 0;
  campaign::JobOutcome job;
};

struct Confirmed {
  std::vector<PairedRun> runs;
  std::size_t choice = 0;                     ///< place of the one that the shape keeps
  std::size_t fastest = 0;                    ///< of the search's latency choice
  std::string words;                          ///< why it is the choice
  std::optional<std::size_t> against_fastest; ///< run of the fastest (A) and the choice, if apart
  /// Why that run was not measured. It decides nothing: choice and cost rest on the pair before it.
  std::optional<Refusal> not_compared;
  std::size_t own_run = 0;              ///< run that the board's choice's cost is taken from
  std::optional<HostContender> weighed; ///< the best host code, measured again
  /// That, where it is the choice.
  [[nodiscard]] const HostContender* host() const {
    return weighed && weighed->candidate == choice ? &*weighed : nullptr;
  }
};

/// Whether B is kept in A's place by this objective, and why in words. `bound_ns`: of the latency.
struct Decision {
  bool b_wins = false;
  std::string words;
};
[[nodiscard]] Decision decide(Objective objective, const measure::Analysis& analysis,
                              const std::optional<double>& bound_ns);

/// Measures a pair, by places of candidates.
using MeasurePair = std::function<Result<campaign::JobOutcome>(std::size_t a, std::size_t b)>;
/// Refuses what `measure` refuses of the pair that decides. The pair against the fastest is left
/// out, and why is kept, where the board was not fit for it or the user had enough (not_stable,
/// throttled, gate_failed, interrupted); a meter that fails in it voids the shape as well.
[[nodiscard]] Result<Confirmed> confirm(const SearchedShape& searched, Objective objective,
                                        const MeasurePair& measure);

/// What an arm of a sealed run costs beyond the idle board, and its time.
struct ArmCost {
  MarginalCost energy;
  Amount time_ns;
};
[[nodiscard]] Result<ArmCost> arm_cost(const campaign::JobOutcome& job, const char* arm,
                                       const SearchedShape& searched,
                                       const std::string& not_written);
[[nodiscard]] Amount amount_of(const MarginalCost& cost);

/// Whether host code is kept in the place of the board's choice. No run pairs the two, so that more
/// is asked: its whole interval lies below the choice's, each by its own meter.
[[nodiscard]] Result<Decision> decide_host(Objective objective, const HostContender& host,
                                           const ArmCost& choice,
                                           const std::optional<double>& bound_ns,
                                           const std::string& not_written);
/// The decision as part of what was confirmed. `fastest_ns`: the latency of the board's fastest.
void weigh_host(Confirmed& confirmed, HostContender host, const Decision& decision,
                double fastest_ns);
/// Measures host code again, by its place.
using MeasureHost = std::function<Result<HostContender>(std::size_t candidate)>;
/// Both for the best of the search's host code, measured again as finalists are, since the
/// search's best had luck. Nothing where there is none within the bound.
[[nodiscard]] Status weigh_best_host(Confirmed& confirmed, const SearchedShape& searched,
                                     Objective objective, const MeasureHost& measure,
                                     const std::string& not_written);

} // namespace hebe::tune
