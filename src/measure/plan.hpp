// A job's plan, frozen before the first launch. In: arms, tier, counts, seed, margins; out: a value
// whose content id names it. Invariant: everything that decides what is measured and how it is
// judged is inside; changing any of it makes another plan.
#pragma once

#include "core/json.hpp"
#include "measure/tier.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hebe::measure {

/// "AB": A first.
enum class PairOrder { ab, ba };

struct Margins {
  double energy_percent = 0.5, latency_percent = 0.25;
};

/// aa: a kernel against itself. ab: one against another. positive_control: a kernel against itself
/// with a known extra traffic, whose effect the plan predicts.
[[nodiscard]] bool is_kind(std::string_view kind);

struct Plan {
  std::string kind = "aa"; ///< aa: both arms are one launch; ab, positive_control: two
  Json subject;            ///< arm A (aa: both): case, parameters, options, launch spec, artifacts
  Json subject_b;          ///< arm B, likewise; null for aa
  /// Of qualified arms: {"record", "name", "provenance", "point", "a", "b", "equal_bits"}; else
  /// null.
  Json qualification;
  Json prediction; ///< of a positive control, made before: measure/prediction.hpp; else null
  std::array<std::string, 2> cubins; ///< sha256 of the arms' cubins
  Json inputs;                       ///< buffer name to sha256 of its bytes
  Json device; ///< {"provenance", …}; for sim: model, faults, how outputs are made
  Tier tier;
  int pairs = 0;
  Seconds window{0}, warm_up{0};
  std::uint64_t seed = 0;
  std::vector<PairOrder> order;
  Margins margins;
  int resamples = 10000;
  double level = 0.95, alpha = 0.05;
  /// The counter is read by its own updates (measure/counter_updates.hpp). Plans from before do not
  /// say so, and are judged by the reads' own interval for ever.
  bool counter_by_updates = true;
};

/// What arm B runs: its own subject, or arm A's.
[[nodiscard]] inline const Json& subject_of(const Plan& plan, int arm) {
  return arm == 1 && !plan.subject_b.is_null() ? plan.subject_b : plan.subject;
}

/// Random order with as many AB as BA (one more of either when odd), from the seed. Balance makes
/// an order effect cancel in the mean and testable beside it.
[[nodiscard]] std::vector<PairOrder> random_order(int pairs, std::uint64_t seed);

/// Checks counts and lengths against the tier (below_tier_minimum names the minimum) and draws the
/// order.
[[nodiscard]] Status complete_plan(Plan& plan);

/// The window's random phase: its pre-roll is longer by this fraction of the meter's period, so
/// that no window starts in step with the meter. In [0, 1), a function of the seed and the window's
/// number.
[[nodiscard]] double start_phase(const Plan& plan, std::int64_t window_index);

[[nodiscard]] Json to_json(const Plan& plan); ///< schema hebe.run.plan/1
[[nodiscard]] Result<Plan> plan_from(const Json& json, std::string_view where);

} // namespace hebe::measure
