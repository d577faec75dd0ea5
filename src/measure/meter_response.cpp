#include "measure/meter_response.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hebe::measure {

Json to_json(const KnownResponse& r) {
  if (r.record)
    return {{"id", r.record->id},
            {"source", r.record->source},
            {"lag_s", r.record->lag.value()},
            {"pre_roll_s", r.record->pre_roll.value()},
            {"minimum_window_s", r.record->minimum_window.value()}};
  return r.why_not.empty() ? Json(nullptr) : Json{{"unavailable", r.why_not}};
}

KnownResponse known_response_from(const Json& j) {
  if (j.is_null()) return {};
  if (j.contains("unavailable")) return {std::nullopt, j.at("unavailable")};
  return {MeterResponse{j.at("id"), j.at("source"), Seconds(j.at("lag_s")),
                        Seconds(j.at("pre_roll_s")), Seconds(j.at("minimum_window_s"))},
          {}};
}

bool agrees_with_step(const MeterResponse& r, Seconds step_lag, Seconds sample_period) {
  return std::abs((step_lag - r.lag).value()) <= kLagToleranceInPeriods * sample_period.value();
}

std::string disagreement(const MeterResponse& r, Seconds step_lag, Seconds sample_period) {
  return fmt::format("the warm-up's step was seen after {:.1f} ms, response record {} says {:.1f} "
                     "ms; allowed are {:.0f} ms either way ({:.0f} sample periods)",
                     1e3 * step_lag.value(), r.id, 1e3 * r.lag.value(),
                     1e3 * kLagToleranceInPeriods * sample_period.value(), kLagToleranceInPeriods);
}

} // namespace hebe::measure
