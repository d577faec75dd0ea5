// Do the parts of a job belong together? In: plan, acquisition, windows as stored; out: nothing, or
// what contradicts what. Invariant: pure; what a reader would have to take on trust is only what no
// other stored fact could contradict.
#pragma once

#include "measure/acquisition.hpp"

#include <span>

namespace hebe::measure {

/// Tier against the named one, counts and order against tier and seed, provenance of plan, sources
/// and device, warm-up against its own blocks, windows in time, cubins against the artifacts.
[[nodiscard]] Status check_consistency(const Plan& plan, const Acquisition& acquisition,
                                       std::span<const Window> windows);

} // namespace hebe::measure
