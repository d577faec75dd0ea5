#include "tune/tune_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::tune {
namespace {

Json amount_json(double value, double low, double high) {
  return {{"value", value}, {"low", low}, {"high", high}};
}

Json refusal_json(const Refusal& r) {
  return {{"code", name_of(r.code)}, {"what", r.what}, {"where", r.where}, {"next", r.next}};
}

Json cost_json(const CandidateCost& c) {
  const double half = kNormal95 * c.latency_error_ns;
  return {{"energy_nj", amount_json(c.energy.exact_nj, c.energy.low_nj, c.energy.high_nj)},
          {"time_ns", amount_json(c.latency_ns, c.latency_ns - half, c.latency_ns + half)},
          {"objective", amount_json(c.value, c.low, c.high)}};
}

Json meter_json(const MeterIdentity& m) { return {{"name", m.name}, {"status", m.status}}; }

Json idle_json(const IdlePower& idle) {
  return {{"state", name_of(idle.state)},
          {"mean_w", idle.mean.value()},
          {"error_w", idle.error.value()}};
}

std::string_view state_of(const TriedCandidate& tried, const Contender* contender, bool voided) {
  if (tried.state != TriedCandidate::State::ready) return name_of(tried.state);
  if (voided || contender == nullptr) return "not_measured";
  switch (contender->state) {
  case Contender::State::dropped:
    return "dropped";
  case Contender::State::over_latency:
    return "over_latency";
  case Contender::State::alive:
    break;
  }
  return "measured";
}

Json candidate_json(const TriedCandidate& tried, const Contender* contender, bool voided) {
  const bool told = contender != nullptr && contender->cost && !voided;
  Json out{{"backend", tried.candidate.backend},
           {"name", tried.candidate.name},
           {"configuration", tried.candidate.configuration},
           {"artifact_sha256", nullptr},
           {"library", nullptr},
           {"triton", nullptr},
           {"state", state_of(tried, contender, voided)},
           {"why", tried.why ? refusal_json(*tried.why) : Json()},
           {"rung", nullptr},
           {"windows", nullptr},
           {"measured_s", nullptr},
           {"spent_s", nullptr},
           {"cost", nullptr}};
  if (tried.prepared) {
    if (tried.prepared->artifact_sha256) out["artifact_sha256"] = *tried.prepared->artifact_sha256;
    if (tried.prepared->version) out["library"] = *tried.prepared->version;
    if (tried.prepared->triton) out["triton"] = *tried.prepared->triton;
  }
  if (!told) return out;
  out["rung"] = contender->rung;
  out["windows"] = contender->windows.size();
  out["measured_s"] = contender->cost->measured.value();
  out["spent_s"] = contender->spent.value();
  out["cost"] = cost_json(*contender->cost);
  return out;
}

// A meter and an idle power of its own, and what both read.
Json host_cost_json(const HostContender& host) {
  auto out = cost_json(host.cost);
  out["meter"] = meter_json(host.meter);
  out["idle"] = idle_json(host.idle);
  out["readings"] = json_of(host.readings);
  return out;
}

// Host code has no rungs.
Json host_json(const TriedCandidate& tried, const HostContender& host) {
  auto out = candidate_json(tried, nullptr, false);
  out["state"] = "measured";
  out["measured_s"] = host.cost.measured.value();
  out["spent_s"] = host.spent.value();
  out["cost"] = host_cost_json(host);
  return out;
}

Json effect_json(const measure::Contrast& c) {
  return {{"percent", measure::percent(c.effect)},
          {"low_percent", measure::percent(c.shown().low)},
          {"high_percent", measure::percent(c.shown().high)},
          {"verdict", name_of(c.verdict)}};
}

Json run_json(const PairedRun& r) {
  return {{"a", r.a},
          {"b", r.b},
          {"seal", r.job.run.seal},
          {"verdict", name_of(r.job.analysis.verdict)},
          {"qualified", r.job.analysis.qualified},
          {"energy", effect_json(r.job.analysis.energy)},
          {"latency", effect_json(r.job.analysis.latency)}};
}

template <class T> Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// What the costs follow from, as it was read.
Json readings_json(const SearchedShape& s) {
  Json idles = Json::array(), windows = Json::array();
  for (const auto& i : s.idles)
    idles.push_back({i.power.value(), i.power_error.value(), i.duration.value(),
                     or_null(i.sm_clock_mhz), or_null(i.counts.begin_mj), or_null(i.counts.end_mj),
                     i.counts.between.value()});
  for (const auto& [contender, w] : s.outcome.taken)
    windows.push_back({s.candidate[contender], w.power.value(), w.power_error.value(),
                       w.latency.value(), w.latency_error.value(), w.duration.value(), w.launches,
                       w.spent.value(), w.attempts, or_null(w.counts.begin_mj),
                       or_null(w.counts.end_mj), w.counts.between.value()});
  return {{"loaded_clock_mhz", or_null(s.loaded_clock_mhz)},
          {"idle_columns", kIdleColumns},
          {"idle", idles},
          {"window_columns", kWindowColumns},
          {"windows", windows}};
}

Json search_json(const SearchedShape& s) {
  const auto& o = s.outcome;
  Json out{{"idle", idle_json(s.idle)},
           {"latency_bound_ns", o.latency_bound_ns ? Json(*o.latency_bound_ns) : Json()},
           {"rungs", o.rungs},
           {"stopped", o.stopped},
           {"measured_s", o.measured.value()},
           {"references_s", o.references.value()},
           {"spent_s", o.spent.value()},
           {"exhaustive_measured_s", o.exhaustive.value()},
           {"measured_of_exhaustive_ratio", nullptr},
           {"readings", readings_json(s)}};
  if (o.exhaustive > Seconds(0)) out["measured_of_exhaustive_ratio"] = o.measured / o.exhaustive;
  return out;
}

Json choice_json(const Confirmed& c) {
  Json runs = Json::array();
  for (const auto& r : c.runs) runs.push_back(run_json(r));
  Json out{{"choice", c.choice},
           {"is_baseline", c.choice == 0},
           {"why", c.words},
           {"latency_choice", c.fastest},
           {"latency_choice_differs", c.choice != c.fastest},
           {"against_latency_choice", c.against_fastest ? Json(*c.against_fastest) : Json()},
           {"runs", runs}};
  if (c.not_compared) out["not_compared"] = refusal_json(*c.not_compared);
  if (!c.weighed) return out;
  out["host"] = {{"candidate", c.weighed->candidate},
                 {"measured_s", c.weighed->cost.measured.value()},
                 {"spent_s", c.weighed->spent.value()},
                 {"cost", host_cost_json(*c.weighed)}};
  return out;
}

Result<Amount> time_of(const CandidateCost& c) {
  const double half = kNormal95 * c.latency_error_ns;
  if (std::llround(c.latency_ns) < 1)
    return refuse(RefusalCode::gate_failed,
                  fmt::format("an operation takes {:.3g} ns, which rounds to 0 ns", c.latency_ns),
                  "count many of them as one operation");
  return Amount{std::llround(c.latency_ns), c.latency_ns - half, c.latency_ns + half};
}

Implementation implementation_of(const TriedCandidate& tried) {
  return {tried.candidate.name, tried.candidate.configuration, tried.prepared->artifact_sha256};
}

} // namespace

Result<Json> shape_record(const TunedShape& shape, const TuneSpec& spec) {
  const auto& prepared = shape.prepared;
  const bool voided = shape.voided.has_value();
  HEBE_TRY(const auto bucket, bucket_of(prepared.spec->shape.sizes, spec.bucketed));
  Json candidates = Json::array();
  for (std::size_t i = 0; i < prepared.candidates.size(); ++i) {
    const Contender* contender = nullptr;
    if (shape.searched && !voided) {
      const auto& hosts = shape.searched->hosts;
      const auto hit = std::ranges::find(hosts, i, &HostContender::candidate);
      if (hit != hosts.end()) {
        candidates.push_back(host_json(prepared.candidates[i], *hit));
        continue;
      }
    }
    if (shape.searched) {
      const auto& places = shape.searched->candidate;
      const auto hit = std::ranges::find(places, i);
      if (hit != places.end())
        contender =
            &shape.searched->outcome.contenders[static_cast<std::size_t>(hit - places.begin())];
    }
    candidates.push_back(candidate_json(prepared.candidates[i], contender, voided));
  }
  return Json{{"name", prepared.spec->shape.name},
              {"sizes", sizes_json(prepared.spec->shape)},
              {"bucket", text_of(bucket)},
              {"voided", voided ? refusal_json(*shape.voided) : Json()},
              {"candidates", candidates},
              {"search", voided ? Json() : search_json(*shape.searched)},
              {"finalists", voided || !shape.confirmed ? Json() : choice_json(*shape.confirmed)}};
}

Result<Json> record_of(const std::vector<TunedShape>& shapes, const TuneSpec& spec,
                       const TunePlace& place) {
  Json list = Json::array();
  Json meter = nullptr;
  for (const auto& shape : shapes) {
    HEBE_TRY(auto one, shape_record(shape, spec));
    list.push_back(std::move(one));
    if (shape.searched && meter.is_null()) meter = meter_json(shape.searched->meter);
  }
  const auto& p = spec.protocol;
  Json out{{"schema", "hebe.tune/1"},
           {"name", spec.name},
           {"operation", spec.operation},
           {"dtype", spec.dtype},
           {"objective", name_of(spec.objective)},
           {"method", name_of(spec.method)},
           {"spec", spec.json},
           {"protocol",
            {{"tier", p.tier.name},
             {"pairs", p.pairs},
             {"window_s", p.window.value()},
             {"warm_up_s", p.warm_up.value()}}},
           {"provenance", name_of(place.provenance)},
           {"seed", std::to_string(place.seed)},
           {"when", place.date},
           {"board", {{"name", place.board}, {"uuid", *place.platform.board_uuid}}},
           {"driver", place.platform.driver},
           {"os", place.platform.os},
           {"hebe", place.platform.hebe},
           {"meter", meter},
           {"shapes", list}};
  if (spec.idle_power == IdleCharge::included) out["idle_power"] = name_of(spec.idle_power);
  if (!spec.all_shapes) {
    out["only_shapes"] = Json::array();
    for (const auto& s : spec.shapes) out["only_shapes"].push_back(s.shape.name);
  }
  return out;
}

Result<ProfileRow> row_of(const TunedShape& shape, const TuneSpec& spec, const TunePlace& place,
                          const std::string& record_id, const std::string& not_written) {
  const auto& s = *shape.searched;
  const auto& c = *shape.confirmed;
  const auto& run = c.runs[c.own_run];
  const bool baseline_stays = c.choice == 0;
  const auto& chosen = shape.prepared.candidates[c.choice];
  ProfileRow row;
  HEBE_TRY(const auto bucket, bucket_of(shape.prepared.spec->shape.sizes, spec.bucketed));
  row.key = {spec.operation, text_of(bucket), spec.dtype, place.board};
  HEBE_TRY(const auto a, arm_cost(run.job, "A", s, not_written));
  const auto* host = c.host();
  HEBE_TRY(const auto own, arm_cost(run.job, baseline_stays || host ? "A" : "B", s, not_written));
  row.implementation = implementation_of(chosen);
  if (host) {
    row.energy_nj = amount_of(host->cost.energy);
    HEBE_TRY(row.time_ns, time_of(host->cost));
    row.meter = host->meter;
    row.idle = host->idle.state;
  } else {
    row.energy_nj = amount_of(own.energy);
    row.time_ns = own.time_ns;
    row.meter = s.meter;
    row.idle = s.idle.state;
  }
  row.platform = place.platform;
  row.platform.triton = chosen.prepared->triton;
  row.date = place.date;
  row.study = record_id;
  row.objective = RowObjective{std::string(name_of(spec.objective)),
                               spec.idle_power == IdleCharge::included, s.outcome.latency_bound_ns,
                               spec.latency_bound ? spec.latency_bound->ratio : std::nullopt};
  for (const auto& r : c.runs) row.runs.push_back(r.job.run.seal);
  // Where the baseline stays, the row shows that by naming it as its own baseline.
  row.baseline = Baseline{implementation_of(shape.prepared.candidates.front()), amount_of(a.energy),
                          a.time_ns};
  if (!host) row.qualified = run.job.analysis.qualified;
  if (host) {
    row.baseline->meter = s.meter; // no pairs, and so no verdict
  } else if (!baseline_stays) {
    const auto& e = run.job.analysis.energy;
    row.verdict = std::string(measure::name_of(e.verdict));
    // A bootstrap's interval need not hold the mean, in the last digit.
    const double percent = measure::percent(e.effect);
    row.effect = PairedEffect{percent, std::min(percent, measure::percent(e.shown().low)),
                              std::max(percent, measure::percent(e.shown().high))};
  }
  HEBE_CHECK(check_row(row, not_written));
  return row;
}

} // namespace hebe::tune
