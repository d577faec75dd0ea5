#include "evidence/ladder_analysis.hpp"

#include "evidence/stored_run.hpp"
#include "measure/contrast.hpp"
#include "measure/ladder_fit.hpp"
#include "measure/power_analysis.hpp"
#include "measure/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace hebe::evidence {
namespace {

double bytes_of(const Json& subject) {
  const auto& work = subject.at("launch").at("work");
  return work.at("bytes_read").get<double>() + work.at("bytes_written").get<double>();
}

std::unexpected<Refusal> no_step(const std::string& run, const std::string& why) {
  return refuse(RefusalCode::bad_argument, "run " + run + " is no step of a ladder: " + why,
                "a step's arms are one case at fraction 0 and at another fraction");
}

Json effect_json(const Json& contrast) {
  const auto& ends = contrast.at("interval_" + contrast.at("interval_shown").get<std::string>());
  return {{"effect_percent", contrast.at("effect_percent")},
          {"low_percent", ends.at("low_percent")},
          {"high_percent", ends.at("high_percent")},
          {"pair_spread_percent", contrast.at("pair_spread_percent")},
          {"above_0", ends.at("low_percent").get<double>() > 0}};
}

Json or_null(const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); }

std::vector<measure::LadderPoint> series(const Json& points, const char* quantity) {
  std::vector<measure::LadderPoint> out;
  for (const auto& p : points)
    out.push_back({p.at("fraction"), p.at(quantity).at("effect_percent")});
  return out;
}

Result<Json> response_json(const Json& points, const char* quantity) {
  const auto list = series(points, quantity);
  HEBE_TRY(const auto fit, measure::fit_line(list));
  HEBE_TRY(const auto monotone, measure::monotone_response(list));
  return Json{{"method",
               "weighted least squares of the percent effect on the fraction of extra traffic; "
               "weights (1 + effect)^-2, scale from the residuals; t intervals at 95 %"},
              {"slope_percent_per_100_percent", fit.slope},
              {"slope_standard_error", fit.slope_error},
              {"slope_low", fit.slope_interval.low},
              {"slope_high", fit.slope_interval.high},
              {"intercept_percent", fit.intercept},
              {"intercept_standard_error", fit.intercept_error},
              {"intercept_low", fit.intercept_interval.low},
              {"intercept_high", fit.intercept_interval.high},
              {"r_squared", or_null(fit.r_squared)},
              {"residual_sd_percent", fit.residual_sd},
              {"residuals_percent", fit.residuals},
              {"lack_of_fit",
               {{"f", fit.lack_of_fit.f},
                {"df_line", fit.lack_of_fit.df_line},
                {"df_replicates", fit.lack_of_fit.df_replicates},
                {"p", or_null(fit.lack_of_fit.p)}}},
              {"monotone",
               {{"holds", monotone.holds},
                {"largest_fall_percent", monotone.largest_fall},
                {"trend_p", or_null(monotone.trend_p)}}}};
}

struct Step {
  std::vector<double> energy, latency;
  int above_0 = 0;
};

std::map<double, Step> steps_of(const Json& points) {
  std::map<double, Step> steps;
  for (const auto& p : points) {
    auto& s = steps[p.at("fraction")];
    s.energy.push_back(p.at("energy").at("effect_percent"));
    s.latency.push_back(p.at("latency").at("effect_percent"));
    s.above_0 += p.at("energy").at("above_0").get<bool>() ? 1 : 0;
  }
  return steps;
}

Json steps_json(const std::map<double, Step>& steps) {
  Json out = Json::array();
  for (const auto& [fraction, s] : steps) {
    const double mean = measure::mean_of(s.energy);
    out.push_back({{"fraction", fraction},
                   {"runs", s.energy.size()},
                   {"mean_energy_percent", mean},
                   {"sd_energy_percent",
                    s.energy.size() > 1 ? Json(measure::sd_of(s.energy, mean)) : Json(nullptr)},
                   {"mean_latency_percent", measure::mean_of(s.latency)},
                   {"runs_above_0", s.above_0}});
  }
  return out;
}

// What the spread between pairs lets `budget` seconds of pairs detect, nine times out of ten.
Result<Json> detectable_json(double spread, double pair_s, double seconds, double slope) {
  const int pairs = static_cast<int>(seconds / pair_s);
  if (pairs < 2)
    return Json{
        {"seconds", seconds}, {"pairs", pairs}, {"effect_percent", nullptr}, {"fraction", nullptr}};
  HEBE_TRY(const double effect, measure::detectable_effect(spread, pairs));
  return Json{{"seconds", seconds},
              {"pairs", pairs},
              {"effect_percent", measure::percent(effect)},
              {"fraction", slope > 0 ? Json(measure::percent(effect) / slope) : Json(nullptr)}};
}

Result<Json> detection_json(const Json& points, const std::map<double, Step>& steps, double slope) {
  Json smallest; // every run at this fraction and above it is above 0
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    if (s->first <= 0 || s->second.above_0 != static_cast<int>(s->second.energy.size())) break;
    smallest = s->first;
  }
  double variance = 0, pair_s = 0, warm_up_s = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& p : points) {
    variance += std::pow(p.at("energy").at("pair_spread_percent").get<double>() / 100, 2) / n;
    pair_s += p.at("pair_s").get<double>() / n;
    warm_up_s += p.at("warm_up_s").get<double>() / n;
  }
  const double spread = std::sqrt(variance);
  HEBE_TRY(auto of_pairs, detectable_json(spread, pair_s, kDetectionBudgetS, slope));
  HEBE_TRY(auto with_warm_up,
           detectable_json(spread, pair_s, std::max(0.0, kDetectionBudgetS - warm_up_s), slope));
  return Json{{"smallest_fraction_seen", smallest},
              {"rule", "the interval of every run at the fraction, and at all larger ones, lies "
                       "above 0"},
              {"pooled_pair_spread_percent", 100 * spread},
              {"pair_s", pair_s},
              {"warm_up_s", warm_up_s},
              {"budget_s", kDetectionBudgetS},
              {"alpha", 0.05},
              {"power", 0.9},
              {"pairs_only", of_pairs},
              {"with_warm_up", with_warm_up}};
}

} // namespace

Result<Json> ladder_point(const std::string& campaign_id, const std::string& job_id,
                          const std::filesystem::path& directory) {
  HEBE_TRY(const auto run, read_stored_run(directory));
  try {
    if (run.campaign_id() != campaign_id || run.job_id() != job_id)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("run {} is of campaign {}, job {}", run.run_id,
                                run.campaign_id().dump(), run.job_id().dump()),
                    "give every job its own run");
    if (run.kind() != "ab") return no_step(run.run_id, "its kind is " + run.kind());
    const auto &a = run.plan.at("subject"), &b = run.plan.at("subject_b");
    const auto fraction = [](const Json& subject) {
      return subject.at("launch").at("parameters").value("fraction", Json());
    };
    if (!fraction(a).is_number() || fraction(a) != 0 || !fraction(b).is_number())
      return no_step(run.run_id, "its arms have fractions " + fraction(a).dump() + " and " +
                                     fraction(b).dump());
    // A case's steps are whole tiles: what it declares is the exact fraction, unless it declares
    // something else altogether, and then the fraction is what was asked for.
    const double asked = fraction(b), declared = bytes_of(b) / bytes_of(a) - 1;
    const bool declares = std::abs(declared - asked) <= 0.01 + 0.05 * asked;
    const auto& result = run.analysis;
    const auto& windows = result.at("windows");
    const auto& warm_up = run.acquisition.at("warm_up");
    HEBE_TRY(const auto from,
             integer_from(warm_up.at("blocks").back().at("end_ns"), directory.string()));
    HEBE_TRY(const auto to, integer_from(run.windows.back().at("end_ns"), directory.string()));
    const double pair_s =
        static_cast<double>(to - from) * 1e-9 / (windows.at("attempted").get<double>() / 2);
    return Json{{"job", job_id},
                {"run_id", run.run_id},
                {"seal", run.seal},
                {"plan_id", run.plan_id()},
                {"tier", run.plan.at("tier").at("name")},
                {"is_evidence", run.plan.at("tier").at("is_evidence")},
                {"provenance", run.provenance()},
                {"requested_fraction", asked},
                {"declared_fraction", declared},
                {"declares_it", declares},
                {"fraction", declares ? declared : asked},
                {"pairs", result.at("pairs").size()},
                {"window_s", run.plan.at("window_s")},
                {"warm_up_s", warm_up.at("duration_s")},
                {"pair_s", pair_s},
                {"power_capped_s", windows.at("power_capped_s")},
                {"verdict", result.at("verdict")},
                {"energy", effect_json(result.at("energy"))},
                {"latency", effect_json(result.at("latency"))}};
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::bad_schema, e.what(), {}, directory.string());
  }
}

Result<Json> ladder_summary(const std::string& campaign_id, const Json& points) {
  if (campaign_id.empty() || points.empty())
    return refuse(RefusalCode::bad_argument, "a ladder needs a campaign and its runs");
  double capped = 0;
  bool declared = true;
  for (const auto& p : points) {
    for (const char* same : {"tier", "provenance"})
      if (p.at(same) != points.front().at(same))
        return refuse(RefusalCode::bad_argument,
                      fmt::format("a ladder of several {}s: {} and {}", same,
                                  points.front().at(same).dump(), p.at(same).dump()));
    declared = declared && p.at("declares_it").get<bool>();
    if (!p.at("power_capped_s").is_null()) capped += p.at("power_capped_s").get<double>();
  }
  HEBE_TRY(auto energy, response_json(points, "energy"));
  HEBE_TRY(auto latency, response_json(points, "latency"));
  const auto steps = steps_of(points);
  HEBE_TRY(auto detection,
           detection_json(points, steps, energy.at("slope_percent_per_100_percent")));
  const bool evidence = points.front().at("is_evidence"),
             monotone = energy.at("monotone").at("holds"),
             rises = energy.at("slope_low").get<double>() > 0;
  return Json{{"schema", "hebe.analysis.ladder/1"},
              {"campaign", campaign_id},
              {"tier", points.front().at("tier")},
              {"label", evidence ? "research" : "smoke: checks the plumbing, never evidence"},
              {"provenance", points.front().at("provenance")},
              {"points", points},
              {"steps", steps_json(steps)},
              {"energy", energy},
              {"latency", latency},
              {"detection", detection},
              {"power_capped_s", capped},
              {"declares_its_traffic", declared},
              {"verdict", !(monotone || rises) || !declared ? "does not respond"
                          : monotone && rises               ? "responds"
                                                            : "inconclusive"},
              {"claim_holds", declared && monotone && rises}};
}

Result<Json>
ladder_analysis(const std::string& campaign_id,
                const std::vector<std::pair<std::string, std::filesystem::path>>& jobs) {
  Json points = Json::array();
  for (const auto& [job, run] : jobs) {
    HEBE_TRY(auto point, ladder_point(campaign_id, job, run));
    points.push_back(std::move(point));
  }
  return ladder_summary(campaign_id, points);
}

} // namespace hebe::evidence
