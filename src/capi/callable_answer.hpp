// What a measurement of callables is told as. In: its outcome; out: JSON with energy and time of a
// call, intervals, the marginal energy or why there is none, and every window. Invariant: every
// value has the meter's provenance beside it; what was not measured is null or a refusal, never 0.
#pragma once

#include "campaign/callable_measurement.hpp"

namespace hebe::capi {

[[nodiscard]] Result<Json> measured_json(const campaign::CallableOutcome& outcome);
[[nodiscard]] Json compared_json(const campaign::CallableOutcome& outcome);

} // namespace hebe::capi
