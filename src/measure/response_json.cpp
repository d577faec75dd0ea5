// A response as it is stored. In: what was found; out: JSON of hebe.qualification.response/1's
// "findings" member. Invariant: what is not known is null.
#include "measure/response.hpp"

namespace hebe::measure {
namespace {
template <class T> Json or_null(const std::optional<T>& v) { return v ? Json(*v) : Json(nullptr); }

Json step_json(const Step& s) {
  return {{"points", s.points.size()}, {"t10_s", or_null(s.t10_s)},
          {"t50_s", or_null(s.t50_s)}, {"t90_s", or_null(s.t90_s)},
          {"t95_s", or_null(s.t95_s)}, {"rise_s", or_null(s.rise_s())}};
}

Json aliasing_json(const AliasingPoint& a, int rule) {
  Json j{{"period_s", a.period_s},
         {"duty_ratio", a.duty},
         {"seen_ratio", a.seen_ratio},
         {"predicted_ratio", a.predicted_ratio},
         {"apparent_period_s", a.apparent_period_s},
         {"apparent_ratio", a.apparent_ratio},
         {"mean_error_ratio", a.mean_error_ratio},
         {"locked", a.locked},
         {"aliases", a.aliases}};
  if (rule >= 2)
    j.update({{"standing_harmonic", a.standing},
              {"standing_ratio", a.standing_ratio},
              {"standing_error_ratio", a.standing_error_ratio}});
  return j;
}

Json source_json(const SourceResponse& s, int rule) {
  Json fit = nullptr, tail = nullptr, aliasing = Json::array();
  if (s.fit)
    fit = {{"delay_s", s.fit->delay_s},       {"window_s", s.fit->window_s},
           {"off_w", s.fit->off_w},           {"on_w", s.fit->on_w},
           {"residual_w", s.fit->residual_w}, {"points", s.fit->points}};
  if (s.tail)
    tail = {{"power_w", s.tail->watts},
            {"standard_error_w", s.tail->standard_error_w},
            {"time_s", s.tail->time_s}};
  for (const auto& a : s.aliasing) aliasing.push_back(aliasing_json(a, rule));
  return {{"name", s.name},
          {"fit", fit},
          {"rise", step_json(s.on)},
          {"fall", step_json(s.off)},
          {"tail", tail},
          {"sample_period_s", or_null(s.sample_period_s)},
          {"aliasing", aliasing},
          {"why_not", s.why_not}};
}
} // namespace

Json to_json(const Response& r) {
  Json sources = Json::array();
  for (const auto& s : r.sources) sources.push_back(source_json(s, r.aliasing_rule));
  const bool ok = r.qualified();
  Json out{{"sources", sources},
           {"primary", r.primary.empty() ? Json(nullptr) : Json(r.primary)},
           {"lag_s", ok ? Json(r.lag_s) : Json(nullptr)},
           {"pre_roll_s", ok ? Json(r.pre_roll_s) : Json(nullptr)},
           {"minimum_window_s", ok ? Json(r.minimum_window_s) : Json(nullptr)},
           {"edge_error_ratio", kEdgeError},
           {"refusal", ok ? Json(nullptr) : Json(r.refusal)},
           {"qualified", ok}};
  if (r.aliasing_rule >= 2) out["aliasing_rule"] = r.aliasing_rule;
  return out;
}

} // namespace hebe::measure
