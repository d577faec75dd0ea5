#include "evidence/repeated_experiment.hpp"

#include "measure/intervals.hpp"
#include "measure/summary.hpp"

#include <algorithm>
#include <cmath>

namespace hebe::evidence {
namespace {

struct Found {
  std::size_t study;
  ComparedEffect effect;
};

void add(std::vector<Found>& found, std::size_t study,
         const std::map<std::string_view, ComparedEffect>& effects, std::string_view quantity) {
  if (const auto e = effects.find(quantity); e != effects.end())
    found.push_back({study, e->second});
}

bool inside(const ComparedEffect& e, const ComparedEffect& of) {
  return of.low <= e.effect && e.effect <= of.high;
}

// Welch's t: each study's error has its own degrees of freedom. No p where neither has any error.
Json difference_json(const Found& one, const Found& two) {
  const auto &a = one.effect, &b = two.effect;
  const double va = a.standard_error * a.standard_error, vb = b.standard_error * b.standard_error,
               error = std::sqrt(va + vb), difference = b.effect - a.effect;
  Json t, df, p;
  if (error > 0) {
    df = (va + vb) * (va + vb) / (va * va / (a.pairs - 1) + vb * vb / (b.pairs - 1));
    t = difference / error;
    p = measure::t_two_sided_p(difference / error, df.get<double>());
  }
  return {{"studies", {one.study, two.study}},
          {"first_inside_second", inside(a, b)},
          {"second_inside_first", inside(b, a)},
          {"intervals_overlap", a.low <= b.high && b.low <= a.high},
          {"difference_percent", difference},
          {"standard_error_percent", error},
          {"t", t},
          {"df", df},
          {"p", p}};
}

// The spread between studies beside the one that their pairs lead to expect.
Json quantity_json(const std::vector<Found>& found) {
  Json effects = Json::array(), between = Json::array();
  std::vector<double> values;
  double variance = 0;
  for (const auto& [study, e] : found) {
    effects.push_back({{"study", study},
                       {"effect_percent", e.effect},
                       {"low_percent", e.low},
                       {"high_percent", e.high},
                       {"standard_error_percent", e.standard_error},
                       {"pairs", e.pairs}});
    values.push_back(e.effect);
    variance += e.standard_error * e.standard_error / static_cast<double>(found.size());
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::size_t j = i + 1; j < found.size(); ++j)
      if (found[i].study != found[j].study) between.push_back(difference_json(found[i], found[j]));
  Json sd, ratio;
  if (values.size() > 1) {
    sd = measure::sd_of(values, measure::mean_of(values));
    if (variance > 0) ratio = sd.get<double>() / std::sqrt(variance);
  }
  return {{"effects", effects},
          {"between", between},
          {"spread",
           {{"between_studies_percent", sd},
            {"expected_from_pairs_percent", std::sqrt(variance)},
            {"ratio", ratio}}}};
}

// What a launch costs in joules in each study: drift of board and temperature, which effects
// cancel.
Json arm_json(const RepeatedExperiment& experiment, ComparedArm ComparedContrast::*arm) {
  std::vector<double> joules;
  Json values = Json::array(), spread;
  for (const auto& [study, contrast] : experiment) {
    const auto j = (contrast->*arm).joules;
    values.push_back({{"study", study}, {"energy_per_launch_j", j ? Json(*j) : Json()}});
    if (j) joules.push_back(*j);
  }
  if (joules.size() > 1) {
    const double mean = measure::mean_of(joules), sd = measure::sd_of(joules, mean);
    const auto [least, most] = std::minmax_element(joules.begin(), joules.end());
    spread = {{"mean_j", mean},
              {"sd_j", sd},
              {"sd_percent", 100 * sd / mean},
              {"range_percent", 100 * (*most / *least - 1)}};
  }
  const auto& first = experiment.front().contrast->*arm;
  return {{"variant", first.variant},
          {"cubin_sha256", first.cubin},
          {"values", values},
          {"spread", spread}};
}

} // namespace

std::vector<RepeatedExperiment> repeated_experiments(const std::vector<ComparedStudy>& studies) {
  std::vector<RepeatedExperiment> all;
  for (std::size_t s = 0; s < studies.size(); ++s)
    for (const auto& c : studies[s].contrasts) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const RepeatedExperiment& e) {
        return e.front().contrast->experiment() == c.experiment();
      });
      if (same == all.end())
        all.push_back({{s, &c}});
      else
        same->push_back({s, &c});
    }
  std::erase_if(all, [](const RepeatedExperiment& e) { return e.front().study == e.back().study; });
  return all;
}

Json repeated_json(const RepeatedExperiment& experiment) {
  const auto& first = *experiment.front().contrast;
  Json quantities = Json::object(), jobs = Json::array();
  bool primary = false;
  for (const auto& [study, contrast] : experiment) {
    primary = primary || contrast->primary;
    jobs.push_back({{"study", study},
                    {"job", contrast->job},
                    {"verdict", contrast->verdict},
                    {"window_s", contrast->window_s}});
  }
  for (const auto quantity : kComparedQuantities) {
    std::vector<Found> found;
    for (const auto& [study, contrast] : experiment) add(found, study, contrast->effects, quantity);
    quantities[std::string(quantity)] = quantity_json(found);
  }
  return {{"point", first.point},
          {"a", first.a},
          {"b", first.b},
          {"primary", primary},
          {"jobs", jobs},
          {"quantities", quantities},
          {"arms",
           {{"A", arm_json(experiment, &ComparedContrast::arm_a)},
            {"B", arm_json(experiment, &ComparedContrast::arm_b)}}}};
}

Json repeated_aa_json(const std::vector<ComparedStudy>& studies) {
  Json out = Json::object();
  for (const auto quantity : kComparedQuantities) {
    std::vector<Found> found;
    for (std::size_t s = 0; s < studies.size(); ++s) add(found, s, studies[s].aa, quantity);
    if (!found.empty()) out[std::string(quantity)] = quantity_json(found);
  }
  return out;
}

} // namespace hebe::evidence
