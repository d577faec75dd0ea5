#include "measure/analysis.hpp"

#include "measure/counter_updates.hpp"
#include "measure/gates.hpp"
#include "measure/power_analysis.hpp"
#include "measure/prediction.hpp"
#include "measure/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace hebe::measure {
namespace {

struct Pair {
  int number = 0, attempt = 0;
  std::array<const Window*, 2> arm{}; ///< A, B
};

std::vector<Pair> accepted_pairs(std::span<const Window> windows) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2) {
    if (!windows[i].pair_accepted || !windows[i + 1].pair_accepted) continue;
    Pair p{windows[i].reading.pair, windows[i].reading.attempt, {}};
    for (const auto* w : {&windows[i], &windows[i + 1]})
      p.arm[static_cast<std::size_t>(w->reading.arm)] = w;
    pairs.push_back(p);
  }
  return pairs;
}

struct ArmSeries {
  std::vector<double> energy, latency, power;
};

Result<Json> arm_json(const ArmSeries& s) {
  HEBE_TRY(const auto e, summarise(s.energy));
  HEBE_TRY(const auto t, summarise(s.latency));
  HEBE_TRY(const auto p, summarise(s.power));
  const auto cv = [](const Summary& x) { return x.cv ? Json(*x.cv) : Json(nullptr); };
  return Json{
      {"energy_per_launch_j", e.mean}, {"energy_cv_ratio", cv(e)}, {"latency_s", t.mean},
      {"latency_cv_ratio", cv(t)},     {"power_w", p.mean},        {"power_cv_ratio", cv(p)}};
}

// How many pairs a later contrast needs on this board, from the spread seen here.
Result<Json> pairs_needed_json(double spread) {
  Json out = Json::array();
  for (const double effect : {0.05, 0.1, 0.2, 0.5, 1.0, 2.0}) {
    HEBE_TRY(const auto n, pairs_needed(spread, std::log1p(effect / 100)));
    out.push_back({{"effect_percent", effect}, {"pairs", n ? Json(*n) : Json(nullptr)}});
  }
  return out;
}

struct Extremes {
  double worst_disagreement = 0, worst_idle_s = 0, worst_gap_s = 0, lowest_coverage = 1;
  std::optional<double> coldest, warmest;
  std::optional<double> capped_s;
  int failed_windows = 0, failed_pairs = 0;
};

Extremes extremes_of(std::span<const Window> windows) {
  Extremes x;
  for (const auto& w : windows) {
    x.failed_windows += w.passed() ? 0 : 1;
    x.failed_pairs += w.reading.position == 1 && !w.pair_accepted ? 1 : 0;
    if (!w.pair_accepted) continue;
    if (w.estimate.mean_power && w.estimate.counter_power)
      x.worst_disagreement = std::max(
          x.worst_disagreement, std::abs(*w.estimate.counter_power / *w.estimate.mean_power - 1));
    x.worst_idle_s = std::max(x.worst_idle_s, w.reading.idle_before.value());
    x.worst_gap_s = std::max(x.worst_gap_s, w.estimate.max_gap.value());
    x.lowest_coverage = std::min(x.lowest_coverage, w.estimate.coverage);
    for (const auto* b : {&w.reading.begin, &w.reading.end}) {
      if (!b->temperature_c) continue;
      const auto t = static_cast<double>(*b->temperature_c);
      x.coldest = std::min(x.coldest.value_or(t), t);
      x.warmest = std::max(x.warmest.value_or(t), t);
    }
    const auto &from = w.reading.begin.throttle.power_cap_ns,
               &to = w.reading.end.throttle.power_cap_ns;
    if (from && to) x.capped_s = x.capped_s.value_or(0) + static_cast<double>(*to - *from) * 1e-9;
  }
  return x;
}

std::string gate_text(const Contrast& c) {
  return fmt::format("order effect {} (p {}), trend {} (p {})",
                     c.order.difference ? fmt::format("{:+.4f} %", percent(*c.order.difference))
                                        : "untestable",
                     c.order.p ? fmt::format("{:.3g}", *c.order.p) : "-",
                     fmt::format("{:+.4f} %", percent(c.trend.total_change)),
                     c.trend.p ? fmt::format("{:.3g}", *c.trend.p) : "-");
}

bool decided(Verdict v) { return v != Verdict::inconclusive && v != Verdict::invalid; }

std::vector<Condition> conditions_for(const Plan& plan, const Acquisition& a, const Analysis& r,
                                      std::size_t pairs, const Extremes& x) {
  const auto equivalence = [](const Contrast& c) {
    return fmt::format("effect {:+.4f} % [{:+.4f}, {:+.4f}], margin {:.3g} %, p {:.3g}",
                       percent(c.effect), percent(c.shown().low), percent(c.shown().high),
                       percent(c.margin), c.tost.p);
  };
  std::vector<Condition> out = {
      {"tier is evidence", plan.tier.is_evidence, plan.tier.name},
      {"provenance is measured", a.provenance == Provenance::measured,
       std::string(name_of(a.provenance))},
      {"warm-up settled", a.warm_up.stable, fmt::format("{:.1f} s", a.warm_up.duration.value())},
      {"few attempts failed", x.failed_pairs <= plan.tier.max_failed_pairs * plan.pairs,
       fmt::format("{} of {} planned pairs' attempts failed a gate, allowed {}", x.failed_pairs,
                   plan.pairs, plan.tier.max_failed_pairs * plan.pairs)},
      {"margins within the tier's",
       plan.margins.energy_percent <= plan.tier.max_energy_margin &&
           plan.margins.latency_percent <= plan.tier.max_latency_margin,
       fmt::format("energy {} %, latency {} %", plan.margins.energy_percent,
                   plan.margins.latency_percent)},
      {"other processes could be seen", a.errors.value("processes", Json()).is_string(),
       a.errors.value("processes", Json()).dump()},
      {"every planned pair accepted", pairs == static_cast<std::size_t>(plan.pairs),
       fmt::format("{} of {}, {} windows failed a gate", pairs, plan.pairs, x.failed_windows)},
  };
  if (plan.kind == "aa") {
    out.push_back({"arms are one cubin", plan.cubins[0] == plan.cubins[1], plan.cubins[0]});
    out.push_back(
        {"energy equivalent", r.energy.verdict == Verdict::equivalent, equivalence(r.energy)});
    out.push_back(
        {"latency equivalent", r.latency.verdict == Verdict::equivalent, equivalence(r.latency)});
  } else if (plan.kind == "positive_control") {
    for (auto& c : control_conditions(plan.prediction, r.energy, r.latency))
      out.push_back(std::move(c));
  } else {
    out.push_back({"a verdict was reached", decided(r.energy.verdict), equivalence(r.energy)});
  }
  out.push_back({"no order effect or trend in energy", r.energy.order_gate && r.energy.trend_gate,
                 gate_text(r.energy)});
  out.push_back({"no order effect or trend in latency",
                 r.latency.order_gate && r.latency.trend_gate, gate_text(r.latency)});
  return out;
}

// The control's own conditions; those of a job that can be evidence are judged apart.
bool is_of_control(const Condition& c) { return c.name.starts_with("control: "); }

std::string not_seen(const std::vector<Condition>& conditions) {
  std::string text;
  for (const auto& c : conditions)
    if (is_of_control(c) && !c.holds)
      text += (text.empty() ? "not seen: " : "; ") + c.name.substr(9) + " fails: " + c.evidence;
  return text;
}

void decide(Analysis& r, const std::string& kind) {
  const auto& e = r.energy;
  const auto& l = r.latency;
  r.verdict = e.verdict;
  const bool aa = kind == "aa";
  if (aa && e.verdict == Verdict::equivalent && l.verdict != Verdict::equivalent)
    r.verdict = l.verdict;
  if (e.verdict == Verdict::invalid || l.verdict == Verdict::invalid) {
    r.verdict = Verdict::invalid;
    r.reason = "order effect or trend: " + gate_text(e.verdict == Verdict::invalid ? e : l);
  }
  if (r.verdict == Verdict::inconclusive)
    r.reason = "neither equivalence within the margin nor a difference could be shown: more pairs "
               "or longer windows";
  r.claim_holds = aa ? r.verdict == Verdict::equivalent : decided(r.verdict);
  if (kind == "positive_control") {
    // An effect whose interval reaches 0 may still be there; any other failure is a failure.
    const auto why = not_seen(r.conditions);
    r.claim_holds = r.claim_holds && why.empty();
    if (!why.empty() && r.verdict != Verdict::invalid) r.reason = why;
  }
  r.qualified = r.claim_holds && std::all_of(r.conditions.begin(), r.conditions.end(),
                                             [](auto& c) { return c.holds; });
}

// Windows come two and two: one pair of the plan, in the plan's order, accepted once at most.
Status are_pairs(std::span<const Window> windows, const Plan& plan) {
  const auto fail = [](std::size_t at, const char* what) {
    return refuse(RefusalCode::bad_schema, fmt::format("window {} {}", at, what));
  };
  if (windows.size() % 2 != 0)
    return refuse(RefusalCode::bad_schema,
                  fmt::format("{} windows are no whole number of pairs", windows.size()));
  std::vector<int> attempts(plan.order.size(), 0);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto &r = windows[i].reading, &first = windows[i - i % 2].reading;
    if (r.pair < 0 || static_cast<std::size_t>(r.pair) >= plan.order.size())
      return fail(i, "is of a pair that is not in the plan");
    const auto number = static_cast<std::size_t>(r.pair);
    const bool a_first = plan.order[number] == PairOrder::ab;
    if (r.position != static_cast<int>(i % 2) || r.arm != (a_first ? r.position : 1 - r.position))
      return fail(i, "is not in the plan's order");
    if (r.pair != first.pair || r.attempt != first.attempt)
      return fail(i, "is not of the pair before it");
    if (i % 2 == 0 && r.attempt != ++attempts[number])
      return fail(i, "is not the pair's next attempt");
  }
  return {};
}

std::optional<CounterUpdates> counter_updates_of(std::span<const Window> windows, const Plan& plan,
                                                 const Acquisition& a) {
  if (!plan.counter_by_updates) return std::nullopt;
  return find_counter_updates(windows, a.behaviour.counter_period);
}

Json json_of(const std::optional<CounterUpdates>& u, std::span<const Window> windows) {
  if (!u)
    return {{"unavailable", "no period of updates explains the counter's reads, or there are too "
                            "few of them: its power is that of the reads' own interval"}};
  int doubtful = 0;
  double certain = 0; // the largest disagreement of a window whose edges are in no doubt
  for (const auto& w : windows) {
    doubtful += w.estimate.doubtful_edges;
    if (w.pair_accepted && w.estimate.counter_updates && w.estimate.doubtful_edges == 0)
      certain = std::max(certain, std::abs(*w.estimate.counter_power / *w.estimate.mean_power - 1));
  }
  return {{"period_s", u->period_ns * 1e-9},     {"windows", u->windows},
          {"spread_ratio", u->spread},           {"doubtful_edges", doubtful},
          {"doubtful_s", u->doubtful_ns * 1e-9}, {"largest_certain_disagreement_ratio", certain}};
}

} // namespace

Status judge_windows(std::vector<Window>& windows, std::span<const meter::AlignedSample> samples,
                     const Plan& plan, const Acquisition& a) {
  HEBE_CHECK(are_pairs(windows, plan));
  const auto margin = to_nanos(Seconds(1)).count();
  for (auto& w : windows) {
    const auto& r = w.reading;
    const auto by_time = [](const meter::AlignedSample& s, std::int64_t t) {
      return s.t_mono_ns < t;
    };
    const auto first =
        std::lower_bound(samples.begin(), samples.end(), r.begin_ns - margin, by_time);
    const auto last = std::lower_bound(first, samples.end(), r.end_ns + margin + 1, by_time);
    w.estimate = estimate_window(r, {first, last}, a.behaviour);
  }
  if (const auto updates = counter_updates_of(windows, plan, a))
    for (auto& w : windows) time_counter(w, *updates);
  for (auto& w : windows) {
    const auto& r = w.reading;
    const bool jumped = std::any_of(a.clock_jumps_ns.begin(), a.clock_jumps_ns.end(), [&](auto t) {
      return t >= r.begin_ns && t <= r.end_ns + margin / 2;
    });
    w.gates = judge_window(r, w.estimate, plan.tier, a.behaviour, a.reference, jumped);
  }
  judge_temperatures(windows, plan.tier, a.reference, plan.kind == "aa");
  std::set<int> accepted;
  for (std::size_t i = 0; i < windows.size(); i += 2) {
    auto &first = windows[i], &second = windows[i + 1];
    // The first attempt that passes counts; samples that came late may let an earlier one pass as
    // well.
    first.pair_accepted = second.pair_accepted =
        first.passed() && second.passed() && accepted.insert(first.reading.pair).second;
  }
  return {};
}

Result<Analysis> analyse(const Plan& plan, const std::string& plan_id, const Acquisition& a,
                         std::span<const Window> windows) {
  const auto pairs = accepted_pairs(windows);
  if (pairs.size() < 2)
    return refuse(RefusalCode::gate_failed,
                  fmt::format("{} accepted pairs: nothing can be said", pairs.size()));
  std::array<ArmSeries, 2> arms;
  std::vector<double> energy, latency, power;
  std::vector<PairOrder> order;
  Json pair_list = Json::array();
  for (const auto& p : pairs) {
    std::array<double, 2> e{}, t{}, w{};
    for (std::size_t k = 0; k < 2; ++k) {
      e[k] = p.arm[k]->estimate.energy_per_launch->value();
      t[k] = p.arm[k]->reading.latency().value();
      w[k] = p.arm[k]->estimate.mean_power->value();
      arms[k].energy.push_back(e[k]);
      arms[k].latency.push_back(t[k]);
      arms[k].power.push_back(w[k]);
    }
    energy.push_back(std::log(e[1] / e[0]));
    latency.push_back(std::log(t[1] / t[0]));
    power.push_back(std::log(w[1] / w[0]));
    order.push_back(plan.order[static_cast<std::size_t>(p.number)]);
    pair_list.push_back({{"pair", p.number},
                         {"attempt", p.attempt},
                         {"order", order.back() == PairOrder::ab ? "AB" : "BA"},
                         {"energy_percent", percent(energy.back())},
                         {"latency_percent", percent(latency.back())},
                         {"power_percent", percent(power.back())}});
  }
  Analysis r;
  HEBE_TRY(r.energy, contrast_of(energy, order, plan.margins.energy_percent, plan));
  HEBE_TRY(r.latency, contrast_of(latency, order, plan.margins.latency_percent, plan));
  HEBE_TRY(r.power, contrast_of(power, order, plan.margins.energy_percent, plan));
  const auto x = extremes_of(windows);
  r.conditions = conditions_for(plan, a, r, pairs.size(), x);
  decide(r, plan.kind);

  Json conditions = Json::array();
  for (const auto& c : r.conditions)
    conditions.push_back({{"name", c.name}, {"holds", c.holds}, {"evidence", c.evidence}});
  HEBE_TRY(auto arm_a, arm_json(arms[0]));
  HEBE_TRY(auto arm_b, arm_json(arms[1]));
  HEBE_TRY(auto needed, pairs_needed_json(r.energy.spread));
  const auto number = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
  r.json = {{"schema", "hebe.run.analysis/1"},
            {"plan_id", plan_id},
            {"kind", plan.kind},
            {"provenance", name_of(a.provenance)},
            {"verdict", name_of(r.verdict)},
            {"reason", r.reason},
            {"claim_holds", r.claim_holds},
            {"qualified", r.qualified},
            {"conditions", conditions},
            {"pairs", pair_list},
            {"energy", to_json(r.energy)},
            {"latency", to_json(r.latency)},
            {"power", to_json(r.power)},
            {"arms", {{"A", arm_a}, {"B", arm_b}}},
            {"pairs_needed", needed},
            {"windows",
             {{"attempted", windows.size()},
              {"failed_a_gate", x.failed_windows},
              {"failed_pairs", x.failed_pairs},
              {"largest_meter_disagreement_ratio", x.worst_disagreement},
              {"largest_idle_s", x.worst_idle_s},
              {"largest_sample_gap_s", x.worst_gap_s},
              {"lowest_coverage_ratio", x.lowest_coverage},
              {"coldest_c", number(x.coldest)},
              {"warmest_c", number(x.warmest)},
              {"power_capped_s", number(x.capped_s)}}},
            {"sampler_cpu_share_ratio", number(a.sampler_cpu_share)}};
  if (plan.counter_by_updates)
    r.json["windows"]["counter_updates"] = json_of(counter_updates_of(windows, plan, a), windows);
  if (plan.kind == "positive_control") {
    std::vector<Condition> of_control;
    std::copy_if(r.conditions.begin(), r.conditions.end(), std::back_inserter(of_control),
                 is_of_control);
    r.json["control"] = control_json(plan.prediction, of_control, x.capped_s);
  }
  return r;
}

} // namespace hebe::measure
