// How many pairs an answer needs. In: spread of the log ratios (A/A pairs), the effect or margin,
// alpha and power; out: pairs, or the effect a number of pairs can see. Invariant: one pair fewer
// would not do.
#pragma once

#include <optional>

#include "core/result.hpp"

namespace hebe::measure {

inline constexpr int kFewestPairs = 2;
inline constexpr int kMostPairs = 1'000'000;

/// Smallest number of pairs with which a two-sided one-sample t test at alpha finds a mean log
/// ratio of `effect` (either sign) with probability `power`, from the noncentral t; nullopt above a
/// million. `sd` is that of the log ratios of single pairs; sd 0 needs 2 pairs. Errors:
/// bad_argument for sd < 0, effect 0, a number that is not finite, alpha or power outside (0, 1),
/// power not above alpha.
[[nodiscard]] Result<std::optional<int>> pairs_needed(double sd, double effect, double alpha = 0.05,
                                                      double power = 0.9);

/// Smallest mean log ratio (> 0, or 0 for sd 0) that n pairs find with probability `power`. Errors:
/// as pairs_needed, and n outside 2 to a million.
[[nodiscard]] Result<double> detectable_effect(double sd, int n, double alpha = 0.05,
                                               double power = 0.9);

/// Smallest number of pairs with which tost() at alpha finds equivalence within +-margin (log) with
/// probability `power` if the true mean log ratio is `true_effect`; nullopt above a million, and
/// always if the true effect is not inside the margin. Errors: as pairs_needed, and a margin not
/// above 0.
[[nodiscard]] Result<std::optional<int>> pairs_needed_for_equivalence(double sd, double margin,
                                                                      double alpha = 0.05,
                                                                      double power = 0.9,
                                                                      double true_effect = 0);

} // namespace hebe::measure
