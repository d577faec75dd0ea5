// Tiers: named sets of thresholds. In: a name; out: numbers. Invariant: a request below a tier's
// minimum is refused with the minimum named, never quietly downgraded.
#pragma once

#include "core/json.hpp"
#include "core/units.hpp"

#include <optional>

namespace hebe::measure {

struct Tier {
  std::string name;
  bool is_evidence = false; ///< only such a tier can qualify a study
  int min_pairs = 2;
  Seconds min_window{0.5}, min_warm_up{1};
  Seconds max_warm_up{10};       ///< refuse (or, where drift is only reported, go on) after this
  Seconds settle_span{4};        ///< the stretch at the end of the warm-up that must be stable
  double settle_power = 0.01;    ///< relative range of block means of one arm within it
  Celsius settle_temperature{2}; ///< range within it
  /// Where drift is judged over minutes, 20 s do not show it: an H200 that rose by 1 C in them rose
  /// by 4 C in the job. Then its temperature (whole degrees) must have stood still for the first
  /// span, or stayed within settle_temperature for the second. None: settle_span's range decides.
  std::optional<Seconds> still_span{}, steady_span{};
  /// Or it stayed within this for steady_span, its halves' means no further apart than
  /// steady_change: near its power limit an H200 went 57, 55, 57 C within a job while its power
  /// stood within 0.2 % (evidence/h200-studies-not-settled). None: plans from before.
  std::optional<Celsius> steady_temperature{}, steady_change{};
  /// The power of an arm that the power limit holds flickers: within the first for steady_span,
  /// while the quarters' mean energies of a launch are no further apart than the second (relative),
  /// it has settled. At 698 W an H200's blocks were 0.6 to 1.1 % apart in 20 s for more than a
  /// minute, their quarters of a minute by at most 0.3 % (evidence/h200-studies-not-settled,
  /// 071153Z). None: plans from before.
  std::optional<double> steady_power{}, steady_energy_change{};
  /// Each arm's temperature is held against its own: alternating arms of 250 and 500 W took an
  /// H200 from 49 to 59 C and back, block after block, for as long as anybody waited. False: plans
  /// from before.
  bool settle_by_arm = false;
  std::optional<Celsius> max_job_drift, max_pair_drift; ///< none: report only
  /// All in all a job waits no longer for a board that has left the temperature at which it
  /// settled, rather than spend attempts on it: an H200 went from 52 to 55 and to 51 C within three
  /// minutes of pairs (evidence/h200-studies-repeated). None: never, as plans from before.
  std::optional<Seconds> max_hold{};
  /// Drift is what goes beyond the arms' own difference: different arms leave a board unequally
  /// warm, an H200 by up to 1.2 C where they were 78 W apart (evidence/h200-studies-points, three
  /// pairs measured again for it). False: plans from before, which held any difference to be drift.
  bool drift_beyond_arms = false;
  double min_coverage = 0.9; ///< samples found / samples expected from the measured period
  Seconds max_sample_gap{0.15};
  Seconds max_repeat{1};          ///< samples showing one value for longer are frozen
  double max_clock_change = 0.02; ///< SM clock, between the edges of a window
  /// The same where the power limit held the clock down all the time; in between by the share of
  /// the window. There the board moves it, an H200 by up to 3.5 % between the edges of 5 s
  /// (evidence/h200-studies-wide), 5.0 % of 2 s (evidence/h200-tunes-prefill). None: plans from
  /// before, which knew no difference.
  std::optional<double> max_capped_clock_change{};
  /// Of replay times there: those of arithmetic follow that clock, a product's on an H200 by 2.1 %
  /// (evidence/h200-tunes-prefill), those of memory by 0.9 %. None: plans from before.
  std::optional<double> max_capped_replay_cv{};
  /// By how much longer a replay may take that begins at the clock which the arm before it had been
  /// held down to: as far as that clock read lower, and no further. An H200's read 1515 of 1980 MHz
  /// at the lowest (evidence/h200-tunes-prefill). None: plans from before, which held all of it to
  /// be idleness.
  std::optional<double> max_clock_recovery{};
  double meter_agreement = 0.03; ///< beyond one update of the counter at each edge
  double max_replay_cv = 0.02;   ///< within a window
  Seconds max_idle{0.005};       ///< GPU idleness before a window's pre-roll
  int max_attempts = 3;          ///< of one pair
  // Beyond these a job may hold its claim but cannot qualify.
  double max_energy_margin = 0.5, max_latency_margin = 0.25; ///< percent
  double max_failed_pairs = 0.25; ///< failed attempts of pairs / planned pairs
  double order_alpha = 0.01, trend_alpha = 0.01;
};

[[nodiscard]] Result<Tier> tier_named(std::string_view name);
[[nodiscard]] Json to_json(const Tier& tier);
[[nodiscard]] Result<Tier> tier_from(const Json& json);

} // namespace hebe::measure
