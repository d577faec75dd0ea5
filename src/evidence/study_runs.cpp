#include "evidence/study_runs.hpp"

#include "core/schema.hpp"
#include "evidence/qualified_arms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

namespace hebe::evidence {
namespace {

struct Role {
  std::string_view name, kind;
  std::size_t fewest, most;
};
constexpr std::array<Role, 5> kRoles = {{{"aa", "aa", 1, 1},
                                         {"primary", "ab", 1, 1},
                                         {"contrast", "ab", 0, SIZE_MAX},
                                         {"control", "positive_control", 0, 1},
                                         {"floor", "aa", 0, 1}}};

Status roles_are_a_studys(const Json& jobs) {
  std::string found;
  std::vector<std::string> roles;
  std::set<Json> ids;
  for (const auto& j : jobs) {
    roles.push_back(j.at("role"));
    found += (found.empty() ? "" : ", ") + roles.back();
    ids.insert(j.at("job"));
  }
  std::size_t taken = 0; // in this order, each as often as it may be
  bool right = ids.size() == jobs.size();
  for (const auto& role : kRoles) {
    const auto first = taken;
    while (taken < roles.size() && roles[taken] == role.name) ++taken;
    right = right && taken - first >= role.fewest && taken - first <= role.most;
  }
  if (right && taken == roles.size()) return {};
  return refuse(
      RefusalCode::bad_schema,
      "a study's jobs are aa, primary, contrasts, control and floor in this order, each of "
      "its own name; found " +
          (found.empty() ? "none" : found));
}

std::string names_of(const Json& jobs) {
  std::string out;
  for (const auto& j : jobs) out += (out.empty() ? "" : ", ") + j.at("job").get<std::string>();
  return out;
}

Status jobs_are_the_studys(const Json& planned,
                           const std::vector<std::pair<std::string, std::filesystem::path>>& jobs) {
  std::set<std::string> seen;
  std::string given;
  bool same = planned.size() == jobs.size();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& id = jobs[i].first;
    given += (given.empty() ? "" : ", ") + id;
    same = same && planned[i].at("job") == id;
    if (!seen.insert(id).second)
      return refuse(RefusalCode::bad_argument, "job " + id + " is named twice", "name it once");
  }
  if (same) return {};
  return refuse(RefusalCode::bad_argument,
                fmt::format("the jobs given are {}; the study's are {}",
                            given.empty() ? "none" : given, names_of(planned)),
                "give every job of the study its run, in the study's order");
}

std::unexpected<Refusal> wrong_run(const StudyJob& j, const std::string& why) {
  return refuse(RefusalCode::bad_argument,
                fmt::format("job {} ({}): run {} {}", j.job, j.role, j.run.run_id, why),
                "give every job its own run");
}

Status is_of(const StudyJob& j, const std::string& campaign) {
  if (j.run.campaign_id() != campaign || j.run.job_id() != j.job)
    return wrong_run(j, fmt::format("is of campaign {}, job {}", j.run.campaign_id().dump(),
                                    j.run.job_id().dump()));
  const auto role =
      std::find_if(kRoles.begin(), kRoles.end(), [&](const Role& r) { return r.name == j.role; });
  if (j.run.kind() != role->kind)
    return wrong_run(j, fmt::format("is of kind {}, not {}", j.run.kind(), role->kind));
  return {};
}

Status names_its_qualification(const StudyJob& j, const StudyRuns& s) {
  const auto q = j.run.plan.value("qualification", Json());
  if (q.is_null()) return wrong_run(j, "names no qualification of its arms");
  for (const auto& [member, due] : {std::pair("record", s.study.at("qualification")),
                                    {"name", s.qualification.at("name")},
                                    {"provenance", s.qualification.at("provenance")}})
    if (q.at(member) != due)
      return wrong_run(j, fmt::format("names a qualification of {} {}, not {}", member,
                                      q.at(member).dump(), due.dump()));
  for (const char* arm : {"a", "b"})
    if (qualified_kernel(s.qualification, q.at("point"), q.at(arm)) == nullptr)
      return wrong_run(j, fmt::format("names {} at {}, which the qualification does not have",
                                      q.at(arm).dump(), q.at("point").dump()));
  return {};
}

// The A/A is of the primary's arm A; every contrast is another one.
Status arms_fit(const StudyRuns& s) {
  for (const auto& j : s.jobs)
    if (j.role == "aa" || j.is_contrast()) HEBE_CHECK(names_its_qualification(j, s));
  const auto &aa = s.aa().qualification(), &first = s.primary().qualification();
  if (aa.at("point") != first.at("point") || aa.at("a") != first.at("a") ||
      aa.at("b") != first.at("a"))
    return wrong_run(s.aa(),
                     fmt::format("is of {} against {} at {}, not of the primary's {} "
                                 "against itself at {}",
                                 aa.at("a").dump(), aa.at("b").dump(), aa.at("point").dump(),
                                 first.at("a").dump(), first.at("point").dump()));
  std::set<std::array<Json, 3>> seen;
  for (const auto* j : s.contrasts()) {
    const auto& q = j->qualification();
    if (q.at("a") == q.at("b"))
      return wrong_run(*j, "is of " + q.at("a").dump() + " against itself");
    const std::array<Json, 3> contrast{q.at("point"), q.at("a"), q.at("b")};
    if (!seen.insert(contrast).second)
      return wrong_run(*j, fmt::format("is of {} against {} at {}, which is another job's contrast",
                                       q.at("b").dump(), q.at("a").dump(), q.at("point").dump()));
  }
  return {};
}

Status control_fits(const StudyRuns& s) {
  const auto* control = s.of_role("control");
  if (control == nullptr) return {};
  const auto& due = s.study.at("calibration");
  const auto& c = control->run.plan.at("prediction").at("calibration");
  if (due.is_object() && c.at("run_id") == due.at("run_id") && c.at("seal") == due.at("seal"))
    return {};
  return wrong_run(*control, fmt::format("is predicted from run {} (seal {}), the study's "
                                         "calibration is {}",
                                         c.at("run_id").dump(), c.at("seal").dump(), due.dump()));
}

Status of_one_provenance(const StudyRuns& s) {
  const auto& first = s.jobs.front();
  for (const auto& j : s.jobs)
    if (j.run.provenance() != first.run.provenance())
      return wrong_run(j, fmt::format("is {}, that of job {} is {}", j.run.provenance(), first.job,
                                      first.run.provenance()));
  return {};
}

Result<StudyRuns> read(const std::string& campaign_id, const Json& study, const Json& record,
                       const std::vector<std::pair<std::string, std::filesystem::path>>& jobs) {
  HEBE_CHECK(check_schema(record, kKernelQualification, "the qualification record"));
  HEBE_TRY(const auto record_id, content_id(record));
  if (study.at("qualification") != record_id)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("the qualification record is {}, the study's is {}", record_id,
                              study.at("qualification").dump()),
                  "give the record that the study was frozen from");
  if (study.at("qualification_name") != record.at("name"))
    return refuse(RefusalCode::bad_argument,
                  fmt::format("the qualification is {}, the study calls it {}",
                              record.at("name").dump(), study.at("qualification_name").dump()),
                  "give the record that the study was frozen from");
  const auto& planned = study.at("jobs");
  HEBE_CHECK(roles_are_a_studys(planned));
  HEBE_CHECK(jobs_are_the_studys(planned, jobs));
  StudyRuns out{campaign_id, study, record, {}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    StudyJob j{jobs[i].first, planned[i].at("role"), {}};
    HEBE_TRY(j.run,
             read_stored_run(jobs[i].second, j.is_contrast() ? Telemetry::read : Telemetry::leave));
    HEBE_CHECK(is_of(j, campaign_id));
    out.jobs.push_back(std::move(j));
  }
  HEBE_CHECK(of_one_provenance(out));
  HEBE_CHECK(arms_fit(out));
  HEBE_CHECK(control_fits(out));
  return out;
}

} // namespace

const Json& StudyJob::subject(const std::string& arm) const {
  const auto b = run.plan.find("subject_b");
  return arm == "B" && b != run.plan.end() ? *b : run.plan.at("subject");
}

const StudyJob* StudyRuns::of_role(std::string_view role) const {
  const auto hit =
      std::find_if(jobs.begin(), jobs.end(), [&](const StudyJob& j) { return j.role == role; });
  return hit == jobs.end() ? nullptr : &*hit;
}

std::vector<const StudyJob*> StudyRuns::contrasts() const {
  std::vector<const StudyJob*> out;
  for (const auto& j : jobs)
    if (j.is_contrast()) out.push_back(&j);
  return out;
}

std::vector<const StudyJob*> StudyRuns::judged() const {
  std::vector<const StudyJob*> out;
  for (const auto& j : jobs)
    if (j.role != "floor") out.push_back(&j);
  return out;
}

Result<StudyRuns>
read_study_runs(const std::string& campaign_id, const Json& study, const Json& qualification_record,
                const std::vector<std::pair<std::string, std::filesystem::path>>& jobs) {
  try {
    return read(campaign_id, study, qualification_record, jobs);
  } catch (const Json::exception& e) { // a member that no schema asks for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), {}, "study " + campaign_id);
  }
}

} // namespace hebe::evidence
