#include "evidence/study_comparison.hpp"

#include "evidence/repeated_experiment.hpp"
#include "measure/multiplicity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hebe::evidence {
namespace {

std::unexpected<Refusal> not_comparable(std::string what, std::string next) {
  return refuse(RefusalCode::bad_argument, std::move(what), std::move(next));
}

Status check_distinct(const std::vector<ComparedStudy>& studies) {
  if (studies.size() < 2)
    return not_comparable(fmt::format("{} study cannot be compared", studies.size()),
                          "give two or more");
  for (std::size_t i = 0; i < studies.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto &one = studies[j], &two = studies[i];
      if (one.id == two.id)
        return not_comparable(
            fmt::format("{} and {} are the same study, {}", one.given, two.given, one.id),
            "give studies of different campaigns");
      for (const auto& seal : two.seals)
        if (std::find(one.seals.begin(), one.seals.end(), seal) != one.seals.end())
          return not_comparable(fmt::format("{} and {} are of the same study: both have the run "
                                            "sealed {}",
                                            one.given, two.given, seal),
                                "give studies that share no run");
      if (one.provenance != two.provenance)
        return not_comparable(
            fmt::format("{} is {}, {} is {}", one.given, one.provenance, two.given, two.provenance),
            "compare measured studies with measured ones");
    }
  return {};
}

std::string what_each_has(const std::vector<ComparedStudy>& studies) {
  std::string out;
  for (const auto& s : studies) {
    out += fmt::format("{}{} has", out.empty() ? "" : "; ", s.given);
    for (const auto& c : s.contrasts)
      out += fmt::format("{} \"{}\" (cubins {:.8} and {:.8})", &c == &s.contrasts[0] ? "" : ",",
                         c.name(), c.arm_a.cubin, c.arm_b.cubin);
    if (s.contrasts.empty()) out += " none";
  }
  return out;
}

// Several experiments, several chances of a small p: Holm over all energy differences.
Status adjust(Json& contrasts) {
  std::vector<double> p;
  std::vector<Json*> rows;
  for (auto& c : contrasts)
    for (auto& row : c.at("quantities").at("energy").at("between")) {
      row["p_holm"] = nullptr;
      if (row.at("p").is_null()) continue;
      p.push_back(row.at("p").get<double>());
      rows.push_back(&row);
    }
  HEBE_TRY(const auto adjusted, measure::holm(p));
  for (std::size_t i = 0; i < rows.size(); ++i) (*rows[i])["p_holm"] = adjusted[i];
  return {};
}

Json platform_json(const std::vector<ComparedStudy>& studies) {
  std::set<std::string> names;
  for (const auto& s : studies)
    for (const auto& [name, value] : s.platform.items()) names.insert(name);
  Json out = Json::array();
  for (const auto& name : names) {
    Json values = Json::array();
    bool known = true, equal = true;
    for (const auto& s : studies) {
      values.push_back(s.platform.value(name, Json()));
      known = known && !values.back().is_null();
      equal = equal && values.back() == values.front();
    }
    out.push_back({{"what", name}, {"values", values}, {"equal", known ? Json(equal) : Json()}});
  }
  return out;
}

Json notes_json(const std::vector<ComparedStudy>& studies) {
  Json notes = Json::array();
  std::set<std::string> tiers;
  bool boots = true, boards = true;
  for (const auto& s : studies) {
    tiers.insert(s.tier);
    if (s.label != "research") notes.push_back(fmt::format("{} is {}", s.given, s.label));
    if (!s.qualified) notes.push_back(fmt::format("{} is not qualified", s.given));
    boots = boots && !s.platform.value("boot_id", Json()).is_null();
    boards = boards && !s.platform.value("device_uuid", Json()).is_null();
  }
  if (tiers.size() > 1)
    notes.push_back(fmt::format("the tiers differ: {}", fmt::join(tiers, ", ")));
  if (studies.front().provenance != "measured")
    notes.push_back(studies.front().provenance + ": never evidence");
  if (!boots || !boards)
    notes.push_back(fmt::format("the analyses do not say whether {} the same; the runs' "
                                "environment does",
                                !boots && !boards ? "board and boot are"
                                : boots           ? "the board is"
                                                  : "the boot is"));
  return notes;
}

// Energy of the primary contrasts decides; one outside outweighs one that cannot be judged.
std::pair<std::string, std::string> result_of(const Json& contrasts) {
  int judged = 0, outside = 0, invalid = 0;
  for (const auto& c : contrasts) {
    if (!c.at("primary").get<bool>()) continue;
    const auto& jobs = c.at("jobs");
    const auto& energy = c.at("quantities").at("energy");
    if (energy.at("effects").size() < jobs.size() ||
        std::any_of(jobs.begin(), jobs.end(), [](auto& j) { return j.at("verdict") == "invalid"; }))
      ++invalid;
    else
      for (const auto& row : energy.at("between")) {
        const bool both = row.at("first_inside_second") && row.at("second_inside_first");
        ++(both ? judged : outside);
      }
  }
  if (outside > 0)
    return {"outside", fmt::format("{} of {} comparisons of a primary energy effect are outside",
                                   outside, outside + judged)};
  if (invalid > 0) return {"inconclusive", "a primary contrast is invalid or has no energy effect"};
  if (judged == 0) return {"inconclusive", "no study's primary contrast is in another study"};
  return {"inside",
          fmt::format("each of {} comparisons of a primary energy effect is inside", judged)};
}

Json studies_json(const std::vector<ComparedStudy>& studies,
                  const std::vector<RepeatedExperiment>& common) {
  Json out = Json::array();
  for (std::size_t s = 0; s < studies.size(); ++s) {
    const auto& one = studies[s];
    Json alone = Json::array();
    for (const auto& c : one.contrasts)
      if (std::none_of(common.begin(), common.end(), [&](const RepeatedExperiment& e) {
            return e.front().contrast->experiment() == c.experiment();
          }))
        alone.push_back(c.name());
    out.push_back({{"given", one.given},
                   {"id", one.id},
                   {"study", one.study},
                   {"campaign", one.campaign},
                   {"tier", one.tier},
                   {"label", one.label},
                   {"provenance", one.provenance},
                   {"study_qualified", one.qualified},
                   {"platform", one.platform},
                   {"only_here", alone}});
  }
  return out;
}

} // namespace

Result<Json> study_comparison(const std::vector<ComparedStudy>& studies) {
  HEBE_CHECK(check_distinct(studies));
  const auto common = repeated_experiments(studies);
  if (common.empty())
    return not_comparable("no contrast is in two of the studies: " + what_each_has(studies),
                          "compare studies of the same kernels: equal cubins, point and names");
  Json contrasts = Json::array();
  for (const auto& experiment : common) contrasts.push_back(repeated_json(experiment));
  HEBE_CHECK(adjust(contrasts));
  const auto [result, reason] = result_of(contrasts);
  return Json{
      {"schema", "hebe.comparison/1"},
      {"studies", studies_json(studies, common)},
      {"platform", platform_json(studies)},
      {"notes", notes_json(studies)},
      {"contrasts", contrasts},
      {"aa", repeated_aa_json(studies)},
      {"rule",
       "every energy effect of a contrast that is primary in one of the studies "
       "lies inside the 95 % interval of each other study that has the contrast; "
       "a strict test: where nothing differs, two studies of 12 to 20 pairs pass it 81 times "
       "in 100 (83 with many pairs)"},
      {"result", result},
      {"reason", reason}};
}

} // namespace hebe::evidence
