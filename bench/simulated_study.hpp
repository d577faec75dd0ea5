// One simulated study whose true effect is known. In: a scenario and a seed; out: what the real run
// loop, gates and analysis make of it, beside the board's own exact energies. Invariant: a function
// of scenario and seed only.
#pragma once

#include "gpu/sim_board.hpp"
#include "measure/analysis.hpp"
#include "meter/sim_meter.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hebe::bench {

/// What the studies of a scenario have in common.
struct Condition {
  std::string name, text;
  gpu::BoardModel board;
  meter::MeterModel meter;
  double launch_bytes = 0;
  std::function<std::vector<gpu::Fault>(std::uint64_t seed)> faults; ///< none: no faults
};

/// A condition with arms whose energies per launch differ by a known amount.
struct Scenario {
  Condition condition;
  std::string effect_name;     ///< "aa", "margin", "-0.1%", "+1%"
  double effect = 0;           ///< wanted ln(E_B/E_A); 0: the arms are equal
  double extra_operations = 0; ///< of a launch of B, beyond A's; from `with_operations`
  double truth = 0;            ///< ln(E_B/E_A) of the steady state, see `true_effect`
  [[nodiscard]] std::string name() const { return condition.name + "/" + effect_name; }
};

struct Outcome {
  std::optional<Refusal> refusal; ///< the job refused: nothing below is set
  measure::Analysis analysis;
  double exact_effect =
      0; ///< mean of ln(E_B/E_A) over the accepted pairs, from the board's exact energies
  int retries = 0;
  Seconds warm_up{0};
};

[[nodiscard]] std::vector<Condition> all_conditions();

[[nodiscard]] Outcome simulate(const Scenario& scenario, std::uint64_t seed);

/// The estimand: the mean over pairs, orders and fault times of ln(E_B/E_A), E the exact energy per
/// launch over windows that the real run loop placed, on a board without fluctuations. The energy
/// of a launch is linear in every fluctuation of the model, so this is the ratio of expected
/// energies; and it includes what leakage, heat left by the other arm, a drift or a power cap make
/// of the arms' work.
[[nodiscard]] Result<double> true_effect(const Scenario& scenario);

/// Gives B the extra operations that make the true effect the wanted one, and sets both.
[[nodiscard]] Result<Scenario> with_operations(Scenario scenario);

} // namespace hebe::bench
