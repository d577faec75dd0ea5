#include "tune/planned_time.hpp"

#include "campaign/job.hpp"

#include <algorithm>

namespace hebe::tune {

Result<PlannedTime> planned_time(const TuneSpec& spec, const PreparedShape& shape) {
  constexpr double kAround =
      1.6; // s: a window's pre-roll, its load's settling, the wait for its samples
  constexpr std::ptrdiff_t kReferences = 2; // the baseline's windows beside its own, at least
  auto job = spec.protocol;
  job.kind = "ab";
  job.subject_b = kernel::CaseRequest{};
  HEBE_TRY(const auto plan, campaign::drafted(job));
  const auto ready = std::ranges::count(shape.candidates, TriedCandidate::State::ready,
                                        [](auto& c) { return c.state; });
  const auto window = spec.method == Method::halving ? spec.window : spec.longest_window;
  const auto around = Seconds(kAround);
  PlannedTime out;
  out.search = spec.warm_up + (spec.idle + around) * 2 +
               (window + around) * static_cast<double>(ready + kReferences);
  out.finalists = campaign::estimated_duration(plan);
  return out;
}

} // namespace hebe::tune
