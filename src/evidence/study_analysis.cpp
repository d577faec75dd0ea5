#include "evidence/study_analysis.hpp"

#include "evidence/study_agreement.hpp"
#include "evidence/study_arms.hpp"
#include "evidence/study_conditions.hpp"
#include "evidence/study_words.hpp"
#include "measure/multiplicity.hpp"

#include <algorithm>
#include <set>

namespace hebe::evidence {
namespace {

Json effect_json(const Json& contrast) {
  const auto interval = contrast.at("interval_shown").get<std::string>();
  const auto& ends = contrast.at("interval_" + interval);
  const double low = ends.at("low_percent"), high = ends.at("high_percent");
  return {{"effect_percent", contrast.at("effect_percent")},
          {"low_percent", low},
          {"high_percent", high},
          {"half_width_percent", (high - low) / 2},
          {"interval", interval},
          {"pair_spread_percent", contrast.at("pair_spread_percent")},
          {"verdict", contrast.at("verdict")}};
}

// What A/A, control and contrasts have in common.
Json run_json(const StudyJob& j) {
  const auto& a = j.run.analysis;
  return {{"job", j.job},
          {"run_id", j.run.run_id},
          {"seal", j.run.seal},
          {"plan_id", j.run.plan_id()},
          {"pairs", a.at("pairs").size()},
          {"window_s", j.run.plan.at("window_s")},
          {"energy", effect_json(a.at("energy"))},
          {"latency", effect_json(a.at("latency"))},
          {"verdict", a.at("verdict")},
          {"claim_holds", a.at("claim_holds")}};
}

Json aa_json(const StudyJob& j) {
  auto out = run_json(j);
  out["qualified"] = j.run.analysis.at("qualified");
  return out;
}

Json control_json(const StudyJob* j) {
  if (j == nullptr) return nullptr;
  auto out = run_json(*j);
  const auto& control = j->run.analysis.at("control");
  out["qualified"] = j->run.analysis.at("qualified");
  for (const char* member : {"fraction", "seen", "predicted"}) out[member] = control.at(member);
  return out;
}

Json floor_json(const StudyRuns& s, const PlainCopies& copies) {
  const auto* j = s.of_role("floor");
  if (j == nullptr) return nullptr;
  const auto& f = *copies.floor;
  return {{"job", j->job},
          {"run_id", j->run.run_id},
          {"seal", j->run.seal},
          {"case", f.case_name},
          {"bytes", f.bytes},
          {"energy_per_launch_j", f.energy_j},
          {"latency_s", f.latency_s},
          {"power_w", f.power_w},
          {"tier", f.tier}};
}

struct Standing {
  Json conditions = Json::array();
  bool shared = true, all = true; ///< shared: but for the primary's own
};
Standing standing_of(const StudyRuns& s) {
  Standing out;
  for (const auto& c : study_conditions(s)) {
    out.conditions.push_back({{"name", c.name}, {"holds", c.holds}, {"evidence", c.evidence}});
    out.all = out.all && c.holds;
    out.shared = out.shared && (c.holds || c.name == kPrimaryQualified);
  }
  return out;
}

// All but the words, which are of the rest.
Result<Json> contrast_json(const StudyJob& j, const PlainCopies& copies, bool shared,
                           double p_holm) {
  auto out = run_json(j);
  const auto& a = j.run.analysis;
  const auto& q = j.qualification();
  const bool run_qualified = a.at("qualified");
  HEBE_TRY(auto arms, study_arms(j, copies));
  out.update({{"role", j.role},
              {"point", q.at("point")},
              {"a", q.at("a")},
              {"b", q.at("b")},
              {"power", effect_json(a.at("power"))},
              {"energy_p", a.at("energy").at("sign_flip").at("p")},
              {"energy_p_holm", p_holm},
              {"reason", a.at("reason")},
              {"run_qualified", run_qualified},
              {"qualified", run_qualified && shared},
              {"arms", arms}});
  return out;
}

Result<Json> contrasts_json(const StudyRuns& s, const PlainCopies& copies, bool shared) {
  std::vector<double> p;
  for (const auto* j : s.contrasts())
    p.push_back(j->run.analysis.at("energy").at("sign_flip").at("p"));
  HEBE_TRY(const auto adjusted, measure::holm(p));
  Json out = Json::array();
  for (const auto* j : s.contrasts()) {
    HEBE_TRY(auto one, contrast_json(*j, copies, shared, adjusted[out.size()]));
    one["words"] = study_words(one, j->run);
    out.push_back(std::move(one));
  }
  return out;
}

Json platform_json(const StudyRuns& s) {
  const auto& run = s.primary().run;
  const auto version = fact_value(run, "hebe.version"), git = fact_value(run, "hebe.git");
  const auto text = [](const Json& v) { return v.is_string() ? v.get<std::string>() : "unknown"; };
  std::set<Json> leases;
  for (const auto& j : s.jobs) leases.insert(fact_value(j.run, "run.lease"));
  return {{"board", fact_value(run, "device.name")},
          {"device_uuid", fact_value(run, "device.uuid")},
          {"boot_id", fact_value(run, "host.boot_id")},
          {"driver", fact_value(run, "board.driver")},
          {"hebe", text(version) + " (" + text(git) + ")"},
          {"leases", leases.contains(Json()) ? Json(nullptr) : Json(leases.size())}};
}

Result<Json> analysis_of(const StudyRuns& s) {
  const auto standing = standing_of(s);
  HEBE_TRY(const auto copies, plain_copies_of(s));
  HEBE_TRY(auto contrasts, contrasts_json(s, copies, standing.shared));
  const auto jobs = s.judged();
  const bool evidence = std::all_of(jobs.begin(), jobs.end(), [](const StudyJob* j) {
    return j->run.plan.at("tier").value("is_evidence", false);
  });
  auto aa = aa_json(s.aa()), control = control_json(s.of_role("control"));
  const auto& primary = contrasts.front();
  const bool holds = primary.at("claim_holds").get<bool>() && aa.at("claim_holds").get<bool>() &&
                     (control.is_null() || control.at("seen").get<bool>());
  Json out{{"schema", "hebe.analysis.study/1"},
           {"campaign", s.campaign},
           {"study", s.study},
           {"tier", s.study.at("tier")},
           {"label", evidence ? "research" : "smoke: checks the plumbing, never evidence"},
           {"provenance", s.primary().run.provenance()},
           {"platform", platform_json(s)},
           {"conditions", standing.conditions},
           {"study_qualified", standing.all},
           {"aa", aa},
           {"control", control},
           {"floor", floor_json(s, copies)},
           {"multiplicity",
            {{"method", "holm"},
             {"family", "the energy contrasts of this study"},
             {"alpha", s.primary().run.plan.at("analysis").at("alpha")}}},
           {"verdict", primary.at("verdict")},
           {"claim_holds", holds}};
  out["contrasts"] = std::move(contrasts);
  return out;
}

} // namespace

Result<Json>
study_analysis(const std::string& campaign_id, const Json& study, const Json& qualification_record,
               const std::vector<std::pair<std::string, std::filesystem::path>>& jobs) {
  HEBE_TRY(const auto runs, read_study_runs(campaign_id, study, qualification_record, jobs));
  try {
    return analysis_of(runs);
  } catch (const Json::exception& e) { // a member that no schema asks for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), {}, "study " + campaign_id);
  }
}

} // namespace hebe::evidence
