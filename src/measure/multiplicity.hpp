// Several contrasts in one study. In: their p values; out: adjusted p values in the same order.
// Invariant: rejecting adjusted p <= alpha makes any false rejection at most alpha likely, however
// they depend.
#pragma once

#include <span>
#include <vector>

#include "core/result.hpp"

namespace hebe::measure {

/// Holm's step-down adjustment (1979, Scand. J. Statist. 6:65), in input order; none in, none out.
/// Errors: bad_argument for a p outside [0, 1] or NaN.
[[nodiscard]] Result<std::vector<double>> holm(std::span<const double> p_values);

} // namespace hebe::measure
