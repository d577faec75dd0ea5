#include "tune/finalists.hpp"

#include "measure/intervals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::tune {
namespace {

std::string effect_text(const measure::Contrast& c) {
  return fmt::format("{:+.3f} % [{:+.3f}, {:+.3f}]", measure::percent(c.effect),
                     measure::percent(c.shown().low), measure::percent(c.shown().high));
}

double latency_of(const measure::Analysis& analysis, const char* arm) {
  return analysis.json.at("arms").at(arm).at("latency_s").get<double>();
}

bool spares_the_choice(RefusalCode code) {
  using enum RefusalCode;
  return code == not_stable || code == throttled || code == gate_failed || code == interrupted;
}

// In a record that was written nothing says that nothing was.
Refusal left_out(Refusal why) {
  if (why.code == RefusalCode::interrupted)
    why = {why.code, "interrupted before the pair was measured", {}, "tune the shape again", {}};
  return why;
}

Decision by_edp(const measure::Analysis& a) {
  // The product's interval is no wider than the sum of the two.
  const double low = a.energy.shown().low + a.latency.shown().low;
  const double high = a.energy.shown().high + a.latency.shown().high;
  const auto text = fmt::format("energy x time {:+.3f} % [{:+.3f}, {:+.3f}] in pairs",
                                measure::percent(a.energy.effect + a.latency.effect),
                                measure::percent(low), measure::percent(high));
  return {high < 0 && a.energy.verdict != measure::Verdict::invalid &&
              a.latency.verdict != measure::Verdict::invalid,
          text};
}

} // namespace

Decision decide(Objective objective, const measure::Analysis& a,
                const std::optional<double>& bound_ns) {
  if (objective == Objective::edp) return by_edp(a);
  Decision out;
  out.b_wins = a.energy.verdict == measure::Verdict::lower;
  out.words = fmt::format("energy {} in pairs: {}", effect_text(a.energy),
                          measure::name_of(a.energy.verdict));
  if (!bound_ns) return out;
  const double latency_ns = latency_of(a, "B") * 1e9, baseline_ns = latency_of(a, "A") * 1e9;
  const bool within = latency_ns <= *bound_ns;
  out.words += fmt::format("; {:.0f} ns against a bound of {:.0f} ns", latency_ns, *bound_ns);
  // A baseline beyond the bound is no answer: whoever keeps to it is taken, whatever it costs.
  if (baseline_ns > *bound_ns && within) {
    out.b_wins = true;
    out.words += fmt::format(", which the baseline's {:.0f} ns exceed", baseline_ns);
  }
  out.b_wins = out.b_wins && within;
  return out;
}

Result<Confirmed> confirm(const SearchedShape& s, Objective objective, const MeasurePair& measure) {
  Confirmed out;
  constexpr std::size_t kBaseline = 0;
  const auto& o = s.outcome;
  const auto place = [&](std::size_t contender) { return s.candidate[contender]; };
  out.fastest = place(o.fastest);
  const auto run = [&](std::size_t a, std::size_t b) -> Result<std::size_t> {
    HEBE_TRY(auto job, measure(a, b));
    out.runs.push_back({a, b, std::move(job)});
    return out.runs.size() - 1;
  };
  // Where the search likes the baseline best, the next best has its chance.
  auto challenger = o.best && *o.best != kBaseline ? o.best : o.runner_up;
  const auto b = challenger ? place(*challenger) : kBaseline;
  HEBE_TRY(out.own_run, run(kBaseline, b));
  out.choice = kBaseline;
  if (!challenger) {
    const bool kept_out = std::ranges::any_of(o.contenders, [&](const Contender& c) {
      return &c != &o.contenders[kBaseline] && c.cost.has_value();
    });
    out.words = kept_out && o.latency_bound_ns
                    ? fmt::format("the baseline stays: no other candidate is within {:.1f} ns",
                                  *o.latency_bound_ns)
                    : "nothing else could be measured";
  } else {
    const auto decision = decide(objective, out.runs.front().job.analysis, o.latency_bound_ns);
    if (decision.b_wins) out.choice = b;
    out.words = (decision.b_wins ? "" : "the baseline stays: ") + decision.words;
  }
  if (out.fastest == out.choice) return out;
  const auto same = [&](const PairedRun& r) {
    return std::minmax(r.a, r.b) == std::minmax(out.fastest, out.choice);
  };
  const auto hit = std::ranges::find_if(out.runs, same);
  if (hit != out.runs.end()) {
    out.against_fastest = static_cast<std::size_t>(hit - out.runs.begin());
  } else {
    auto compared = run(out.fastest, out.choice);
    if (compared)
      out.against_fastest = *compared;
    else if (spares_the_choice(compared.error().code))
      out.not_compared = left_out(std::move(compared).error());
    else
      return std::unexpected(std::move(compared).error());
  }
  return out;
}

Amount amount_of(const MarginalCost& cost) { return {cost.cost_nj, cost.low_nj, cost.high_nj}; }

Result<ArmCost> arm_cost(const campaign::JobOutcome& job, const char* arm, const SearchedShape& s,
                         const std::string& not_written) {
  const auto& a = job.analysis.json.at("arms").at(arm);
  const auto pairs = static_cast<double>(job.analysis.json.at("pairs").size());
  const double power = a.at("power_w"), latency = a.at("latency_s");
  const double widened = measure::t_exceeded_with(0.025, std::max(1.0, pairs - 1)) / kNormal95;
  // Samples count in milliwatts: windows that agree to the last digit are not without error.
  constexpr double kLeast = 1e-6;
  const auto error = [&](const char* cv) {
    return std::max(a.at(cv).get<double>() / std::sqrt(pairs) * widened, kLeast);
  };
  constexpr double kStretch = 1; // s: a mean power has no length of its own
  MarginalRequest q;
  q.busy = MeteredWindow{s.meter, PowerWindow{Watts(power), Watts(power * error("power_cv_ratio")),
                                              to_nanos(Seconds(kStretch))}};
  q.idle =
      MeteredWindow{s.meter, PowerWindow{s.idle.mean, s.idle.error, to_nanos(s.idle.duration)}};
  q.idle_state = s.idle.state;
  q.operations = std::max<std::int64_t>(1, std::llround(kStretch / latency));
  // Whole launches: the window is as long as they take.
  std::get<PowerWindow>(q.busy->readings).duration =
      to_nanos(Seconds(static_cast<double>(q.operations) * latency));
  q.not_written = not_written;
  ArmCost out;
  HEBE_TRY(out.energy, marginal_cost(q));
  const double ns = latency * 1e9, half = kNormal95 * error("latency_cv_ratio") * ns;
  if (std::llround(ns) < 1)
    return refuse(RefusalCode::gate_failed,
                  fmt::format("a launch takes {:.3g} ns, which rounds to 0 ns", ns),
                  "count many of them as one operation");
  out.time_ns = {std::llround(ns), ns - half, ns + half};
  return out;
}

Result<Decision> decide_host(Objective objective, const HostContender& host, const ArmCost& choice,
                             const std::optional<double>& bound_ns,
                             const std::string& not_written) {
  // Both are positive and finite, or there is nothing to compare.
  HEBE_CHECK(cost_ratio({host.cost.energy.exact_nj, host.meter},
                        {choice.energy.exact_nj, choice.energy.meter}, not_written));
  Decision out;
  double high = host.cost.energy.high_nj, low = choice.energy.low_nj;
  const auto& c = host.cost;
  out.words = fmt::format("on the host {:.0f} nJ [{:.0f}, {:.0f}] by {}, on the board {:.0f} nJ "
                          "[{:.0f}, {:.0f}] by {}: "
                          "not in pairs",
                          c.energy.exact_nj, c.energy.low_nj, c.energy.high_nj, host.meter.name,
                          choice.energy.exact_nj, choice.energy.low_nj, choice.energy.high_nj,
                          choice.energy.meter.name);
  if (objective == Objective::edp) {
    high *= c.latency_ns + kNormal95 * c.latency_error_ns;
    low *= choice.time_ns.low;
  }
  out.b_wins = high < low;
  if (!bound_ns) return out;
  const bool within = c.latency_ns <= *bound_ns;
  out.words += fmt::format("; {:.0f} ns against a bound of {:.0f} ns", c.latency_ns, *bound_ns);
  if (static_cast<double>(choice.time_ns.value) > *bound_ns && within) out.b_wins = true;
  out.b_wins = out.b_wins && within;
  return out;
}

void weigh_host(Confirmed& c, HostContender host, const Decision& decision, double fastest_ns) {
  c.words += "; " + decision.words;
  const bool is_fastest = host.cost.latency_ns < fastest_ns;
  if (is_fastest) c.fastest = host.candidate;
  if (decision.b_wins) c.choice = host.candidate;
  // Nothing pairs the host with the board, and nothing is paired with itself.
  if (is_fastest || decision.b_wins) c.against_fastest.reset();
  c.weighed = std::move(host);
}

Status weigh_best_host(Confirmed& c, const SearchedShape& s, Objective objective,
                       const MeasureHost& measure, const std::string& not_written) {
  const auto& bound = s.outcome.latency_bound_ns;
  const auto* best = best_host(s.hosts, bound);
  if (best == nullptr) return {};
  HEBE_TRY(auto again, measure(best->candidate));
  HEBE_TRY(const auto choice,
           arm_cost(c.runs[c.own_run].job, c.choice == 0 ? "A" : "B", s, not_written));
  HEBE_TRY(const auto decision, decide_host(objective, again, choice, bound, not_written));
  const auto& fastest = s.outcome.contenders[s.outcome.fastest];
  weigh_host(c, std::move(again), decision, fastest.cost->latency_ns);
  return {};
}

} // namespace hebe::tune
