#include "evidence/derived_analysis.hpp"

#include "evidence/stored_run.hpp"
#include "measure/contrast.hpp"
#include "measure/multiplicity.hpp"
#include "measure/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace hebe::evidence {
namespace {

// Equal designs are replicates: everything in the plan but the seed, the order drawn from it, and
// what was predicted.
Result<std::string> design_id(Json plan) {
  plan.erase("seed");
  plan.erase("order");
  plan.erase("prediction");
  return content_id(plan);
}

Json case_name(const StoredRun& run) {
  const Json::json_pointer at("/subject/launch/name");
  return run.plan.contains(at) ? run.plan.at(at) : Json();
}

Json effect_json(const Json& contrast, std::size_t pairs) {
  const auto interval = contrast.at("interval_shown").get<std::string>();
  const auto& ends = contrast.at("interval_" + interval);
  return {{"effect_log_ratio", contrast.at("effect_log_ratio")},
          {"effect_percent", contrast.at("effect_percent")},
          {"low_percent", ends.at("low_percent")},
          {"high_percent", ends.at("high_percent")},
          {"interval", interval},
          {"standard_error_log_ratio", contrast.at("pair_spread_percent").get<double>() / 100 /
                                           std::sqrt(static_cast<double>(pairs))},
          {"verdict", contrast.at("verdict")}};
}

Result<Json> result_json(const StoredRun& run) {
  HEBE_TRY(const auto design, design_id(run.plan));
  const auto& a = run.analysis;
  const auto pairs = a.at("pairs").size();
  return Json{{"plan_id", run.plan_id()},
              {"design_id", design},
              {"kind", run.kind()},
              {"case", case_name(run)},
              {"tier", run.plan.at("tier").at("name")},
              {"seed", run.plan.at("seed")},
              {"provenance", run.provenance()},
              {"pairs", pairs},
              {"verdict", a.at("verdict")},
              {"reason", a.at("reason")},
              {"claim_holds", a.at("claim_holds")},
              {"qualified", a.at("qualified")},
              {"energy", effect_json(a.at("energy"), pairs)},
              {"latency", effect_json(a.at("latency"), pairs)},
              {"power", effect_json(a.at("power"), pairs)},
              {"energy_p", a.at("energy").at("sign_flip").at("p")},
              {"arms", a.at("arms")}};
}

// The spread of one number over replicates, beside what the pairs within them lead to expect.
Result<Json> effect_spread(const std::vector<Json>& results, const char* quantity) {
  std::vector<double> effects;
  double variance = 0;
  for (const auto& r : results) {
    effects.push_back(r.at(quantity).at("effect_log_ratio"));
    const auto error = r.at(quantity).at("standard_error_log_ratio").get<double>();
    variance += error * error / static_cast<double>(results.size());
  }
  HEBE_TRY(const auto s, measure::summarise(effects));
  const auto [low, high] = std::minmax_element(effects.begin(), effects.end());
  return Json{{"mean_effect_percent", measure::percent(s.mean)},
              {"lowest_effect_percent", measure::percent(*low)},
              {"highest_effect_percent", measure::percent(*high)},
              {"spread_between_percent", 100 * s.sd},
              {"spread_expected_from_pairs_percent", 100 * std::sqrt(variance)}};
}

Result<Json> arm_spread(const std::vector<Json>& results, const char* arm) {
  std::vector<double> energies;
  for (const auto& r : results) energies.push_back(r.at("arms").at(arm).at("energy_per_launch_j"));
  HEBE_TRY(const auto s, measure::summarise(energies));
  return Json{{"energy_per_launch_j", s.mean},
              {"energy_cv_between_ratio", s.cv ? Json(*s.cv) : Json(nullptr)}};
}

Result<Json> replicates_json(const Json& jobs) {
  std::map<std::string, std::vector<const Json*>> groups; // by design
  for (const auto& j : jobs)
    if (!j.at("result").is_null()) groups[j.at("result").at("design_id")].push_back(&j);
  Json out = Json::array();
  for (const auto& [design, members] : groups) {
    if (members.size() < 2) continue;
    Json ids = Json::array();
    std::vector<Json> results;
    for (const auto* j : members) ids.push_back(j->at("job")), results.push_back(j->at("result"));
    HEBE_TRY(auto energy, effect_spread(results, "energy"));
    HEBE_TRY(auto latency, effect_spread(results, "latency"));
    HEBE_TRY(auto a, arm_spread(results, "A"));
    HEBE_TRY(auto b, arm_spread(results, "B"));
    out.push_back({{"design_id", design},
                   {"jobs", ids},
                   {"energy", energy},
                   {"latency", latency},
                   {"arms", {{"A", a}, {"B", b}}}});
  }
  return out;
}

Json counts_json(const Json& jobs) {
  std::size_t with = 0, claims = 0, qualified = 0;
  Json verdicts = {
      {"lower", 0}, {"higher", 0}, {"equivalent", 0}, {"inconclusive", 0}, {"invalid", 0}};
  for (const auto& j : jobs) {
    const auto& r = j.at("result");
    if (r.is_null()) continue;
    ++with;
    claims += r.at("claim_holds").get<bool>() ? 1U : 0U;
    qualified += r.at("qualified").get<bool>() ? 1U : 0U;
    auto& count = verdicts.at(r.at("verdict").get<std::string>());
    count = count.get<std::size_t>() + 1;
  }
  return {{"jobs", jobs.size()},   {"with_a_run", with},     {"without_a_run", jobs.size() - with},
          {"claims_hold", claims}, {"qualified", qualified}, {"verdicts", verdicts}};
}

// A run that says where it was measured is not taken for another job's.
Status belongs(const StoredRun& run, const std::string& campaign, const std::string& job) {
  for (const auto& [what, said, due] :
       {std::tuple("campaign", run.campaign_id(), campaign), std::tuple("job", run.job_id(), job)})
    if (!said.is_null() && said != due)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("run {} is of {} {}, not {}", run.run_id, what, said.dump(), due),
                    "give every job its own run");
  return {};
}

} // namespace

Result<Json> point_analysis(const std::filesystem::path& directory) {
  HEBE_TRY(const auto run, read_stored_run(directory));
  try {
    Json files = Json::array();
    for (const auto& f : run.manifest.at("files"))
      files.push_back({{"path", f.at("path")}, {"sha256", f.at("sha256")}});
    const auto& a = run.analysis;
    return Json{{"schema", "hebe.analysis.point/1"},
                {"run_id", run.run_id},
                {"seal", run.seal},
                {"plan_id", run.plan_id()},
                {"campaign", run.campaign_id()},
                {"job", run.job_id()},
                {"kind", run.kind()},
                {"case", case_name(run)},
                {"tier", run.plan.at("tier").at("name")},
                {"provenance", run.provenance()},
                {"verdict", a.at("verdict")},
                {"reason", a.at("reason")},
                {"claim_holds", a.at("claim_holds")},
                {"qualified", a.at("qualified")},
                {"conditions", a.at("conditions")},
                {"energy", a.at("energy")},
                {"latency", a.at("latency")},
                {"power", a.at("power")},
                {"arms", a.at("arms")},
                {"computed_from", files}};
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::bad_schema, e.what(), {}, directory.string());
  }
}

Result<Json> campaign_job_json(const std::string& campaign_id, const CampaignJob& job) {
  if (!job.run) {
    if (job.why_none.empty())
      return refuse(RefusalCode::bad_argument,
                    "job " + job.job_id + " has no run and no reason for it", "say why");
    return Json{{"job", job.job_id},
                {"run_id", nullptr},
                {"seal", nullptr},
                {"why_none", job.why_none},
                {"result", nullptr}};
  }
  HEBE_TRY(const auto run, read_stored_run(*job.run));
  HEBE_CHECK(belongs(run, campaign_id, job.job_id));
  try {
    HEBE_TRY(auto result, result_json(run));
    return Json{{"job", job.job_id},
                {"run_id", run.run_id},
                {"seal", run.seal},
                {"why_none", nullptr},
                {"result", result}};
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::bad_schema, e.what(), {}, job.run->string());
  }
}

Result<Json> campaign_summary(const std::string& campaign_id, const Json& jobs) {
  std::set<std::string> ids, seals;
  std::vector<double> p;
  Json tested = Json::array();
  for (const auto& j : jobs) {
    const auto id = j.at("job").get<std::string>();
    if (!ids.insert(id).second)
      return refuse(RefusalCode::bad_argument, "job " + id + " is named twice", "name it once");
    const auto& result = j.at("result");
    if (result.is_null()) continue;
    if (!seals.insert(j.at("seal")).second)
      return refuse(RefusalCode::bad_argument, "the run of job " + id + " is another job's too",
                    "give every job its own run");
    tested.push_back(id);
    p.push_back(result.at("energy_p"));
  }
  HEBE_TRY(const auto adjusted, measure::holm(p));
  HEBE_TRY(auto replicates, replicates_json(jobs));
  return Json{{"schema", "hebe.analysis.campaign/1"},
              {"campaign", campaign_id},
              {"jobs", jobs},
              // The sign-flip test is the randomisation that was done: it needs no distribution,
              // and its null "A and B cost the same" is what a job could falsely reject.
              {"multiplicity",
               {{"method", "holm"},
                {"family", "the energy contrasts of all jobs with a run"},
                {"p_value", "energy/sign_flip/p"},
                {"jobs", tested},
                {"adjusted_p", adjusted}}},
              {"replicates", replicates},
              {"counts", counts_json(jobs)}};
}

Result<Json> campaign_analysis(const std::string& campaign_id,
                               const std::vector<CampaignJob>& jobs) {
  if (campaign_id.empty() || jobs.empty())
    return refuse(RefusalCode::bad_argument, "a campaign analysis needs a campaign and its jobs",
                  "name the campaign and at least one job");
  Json list = Json::array();
  for (const auto& job : jobs) {
    HEBE_TRY(auto json, campaign_job_json(campaign_id, job));
    list.push_back(std::move(json));
  }
  return campaign_summary(campaign_id, list);
}

} // namespace hebe::evidence
