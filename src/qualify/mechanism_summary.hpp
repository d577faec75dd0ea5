// The static features of a qualified kernel that a measurement carries beside its energy. In: a
// point of a stored qualification and one of its kernels; out: the plan's member `mechanism`.
// Invariant: a number that the record does not hold is null; bytes that were counted at a smaller
// launch say so, and how many programs that launch had.
#pragma once

#include "core/json.hpp"
#include "kernel/launch_spec.hpp"

namespace hebe::qualify {

/// `kernel` is the point's baseline or one of its candidates, `launch` what it is launched with.
[[nodiscard]] Json mechanism_summary(const Json& point, const Json& kernel,
                                     const kernel::LaunchSpec& launch);

} // namespace hebe::qualify
