// Findings as they are stored. In: a qualification; out: JSON of hebe.qualification.meter/1's
// "qualification" member. Invariant: what is not known is null.
#include "measure/source_qualification.hpp"

namespace hebe::measure {
namespace {

template <class T> Json or_null(const std::optional<T>& v) { return v ? Json(*v) : Json(nullptr); }
Json integer_or_null(const std::optional<std::int64_t>& v) {
  return v ? json_integer(*v) : Json(nullptr);
}
Json spread_json(const std::optional<Spread>& s) {
  if (!s) return nullptr;
  return {{"median", s->median},
          {"mean", s->mean},
          {"p1", s->p1},
          {"p99", s->p99},
          {"count", s->count}};
}

Json statistics_json(const SourceStatistics& t) {
  Json stamps = nullptr, counter = nullptr;
  if (t.stamps)
    stamps = {{"domain", t.stamps->domain},
              {"offset_s", t.stamps->offset_s},
              {"newest_age_s", t.stamps->newest_age_s},
              {"offset_drift_s", t.stamps->drift}};
  if (t.counter)
    counter = {{"falls", t.counter->falls},
               {"declared_wraps", t.counter->declared_wraps},
               {"undeclared_wraps", t.counter->undeclared_wraps},
               {"resets", t.counter->resets},
               {"what", t.counter->what}};
  const bool cached = t.repeats.value_or(0) > 0.3;
  return {{"readings", t.readings},
          {"failed", t.failed},
          {"failure", t.failure},
          {"call_s", spread_json(t.call_s)},
          {"poll_s", spread_json(t.poll_s)},
          {"period_s", spread_json(t.period_s)},
          {"period_from", t.period_from},
          {"unseen_updates_ratio", t.unseen},
          {"smallest_step_raw", integer_or_null(t.smallest_step)},
          {"cached", t.repeats ? Json(cached) : Json(nullptr)},
          {"repeats_ratio", or_null(t.repeats)},
          {"zero_differences_ratio", or_null(t.zero_differences)},
          {"longest_age_s", or_null(t.longest_age_s)},
          {"buffer_length", or_null(t.buffer_length)},
          {"buffer_span_s", or_null(t.buffer_span_s)},
          {"stamps", stamps},
          {"counter", counter},
          {"zeros", t.zeros},
          {"least_raw", integer_or_null(t.least)},
          {"most_raw", integer_or_null(t.most)},
          {"moves_at_idle", t.moves_at_idle},
          {"moves_under_load", t.moves_under_load},
          {"settles_s", or_null(t.settles_s)}};
}

} // namespace

Json to_json(const Qualification& q) {
  Json sources = Json::array();
  for (const auto& f : q.sources) {
    Json levels = Json::array(), observer = nullptr;
    for (const auto& l : f.levels)
      levels.push_back({{"level", name_of(l.level)},
                        {"power_w", l.watts},
                        {"error_ratio", l.error},
                        {"ratio", or_null(l.ratio)},
                        {"ratio_error", or_null(l.ratio_error)}});
    if (f.observer)
      observer = {{"power_w", f.observer->watts}, {"standard_error_w", f.observer->error_w}};
    sources.push_back(
        {{"name", f.name},
         {"verdict", name_of(f.verdict)},
         {"rejection", f.rejection == Rejection::none ? Json(nullptr) : Json(name_of(f.rejection))},
         {"reason", f.reason},
         {"findings", statistics_json(f.statistics)},
         {"levels", levels},
         {"observer_effect", observer}});
  }
  const auto named = [](const std::string& s) { return s.empty() ? Json(nullptr) : Json(s); };
  return {{"sources", sources},          {"reference", named(q.reference)},
          {"primary", named(q.primary)}, {"cross_check", named(q.cross_check)},
          {"refusal", named(q.refusal)}, {"qualified", q.qualified()}};
}

} // namespace hebe::measure
