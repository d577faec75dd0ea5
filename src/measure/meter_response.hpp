// How late a board's primary meter is, by a probe of it. In: a stored response, found by the
// caller; out: what a run takes from it, and whether the run's own step agrees. Invariant: a run
// says which record it followed, or why none.
#pragma once

#include "core/json.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <optional>
#include <string>

namespace hebe::measure {

struct MeterResponse {
  std::string id;     ///< of the stored response
  std::string source; ///< whose it is
  Seconds lag{0}, pre_roll{0}, minimum_window{0};
};

/// A response for a run to follow, or why there is none. Neither: nobody looked.
struct KnownResponse {
  std::optional<MeterResponse> record;
  std::string why_not;
};
[[nodiscard]] Json to_json(const KnownResponse& response); ///< null: nobody looked
[[nodiscard]] KnownResponse known_response_from(const Json& json);

/// What a warm-up's step may differ from the recorded lag by. The step is seen at the next sample
/// only, and a sample may come late: an H200's came 2 to 29 ms after the lag that was measured over
/// 24 steps, in 24 runs, and its samples are 45 ms apart at most.
inline constexpr double kLagToleranceInPeriods = 3;
[[nodiscard]] bool agrees_with_step(const MeterResponse& response, Seconds step_lag,
                                    Seconds sample_period);
/// The numbers of a disagreement.
[[nodiscard]] std::string disagreement(const MeterResponse& response, Seconds step_lag,
                                       Seconds sample_period);

} // namespace hebe::measure
