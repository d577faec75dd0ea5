#include "evidence/analysis_store.hpp"

#include "core/files.hpp"
#include "evidence/content_record.hpp"
#include "evidence/derived_analysis.hpp"
#include "evidence/ladder_analysis.hpp"
#include "evidence/qualified_arms.hpp"
#include "evidence/stored_run.hpp"
#include "evidence/study_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

class AnalysisVerification {
public:
  AnalysisVerification(const DataRoot& root, fs::path directory) : root_(root) {
    report_.directory = std::move(directory);
  }

  VerifyReport run(const std::string& id) {
    auto stored = load_analysis(root_, id);
    if (!stored) {
      problem(stored.error());
      return std::move(report_);
    }
    report_.seal = id.substr(kAnalysisPrefix.size());
    report_.passed.push_back("digests and schema: content id " + report_.seal);
    if (stored->at("schema") == "hebe.analysis.point/1")
      point(*stored);
    else if (stored->at("schema") == "hebe.analysis.ladder/1")
      ladder(*stored);
    else if (stored->at("schema") == "hebe.analysis.study/1")
      study(*stored);
    else
      campaign(*stored);
    return std::move(report_);
  }

private:
  // Once: what several runs rest on is found by each of them.
  void problem(Refusal r) {
    const auto same = [&](const Refusal& p) { return p.where == r.where && p.what == r.what; };
    if (std::ranges::none_of(report_.problems, same)) report_.problems.push_back(std::move(r));
  }
  void differs(const std::string& where) {
    problem({RefusalCode::analysis_mismatch,
             "computed again from its runs, it differs at " + where,
             (report_.directory / "analysis.json").string(),
             "make it again from its runs",
             {}});
  }

  // The run's directory if it is there, is that run and verifies; says what was not checked.
  std::optional<fs::path> source(const std::string& run_id, const std::string& seal) {
    auto found = verified_run(root_, run_id, seal);
    if (!found) {
      problem(std::move(found).error());
      return std::nullopt;
    }
    if (!*found) report_.not_checked.push_back("run " + run_id + ": not in this data root");
    return *found;
  }

  void point(const Json& stored) {
    const auto run = source(stored.at("run_id"), stored.at("seal"));
    if (!run) return;
    const auto again = point_analysis(*run);
    if (!again) return problem(again.error());
    if (const auto where = first_difference(stored, *again); !where.empty()) return differs(where);
    report_.passed.push_back("analysis: recomputed from its run");
  }

  void campaign(const Json& stored) {
    const std::string id = stored.at("campaign");
    const auto& jobs = stored.at("jobs");
    std::size_t recomputed = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      CampaignJob job{jobs[i].at("job"), {}, {}};
      if (jobs[i].at("run_id").is_null()) {
        job.why_none = jobs[i].at("why_none").is_string() ? jobs[i].at("why_none") : Json("");
      } else {
        job.run = source(jobs[i].at("run_id"), jobs[i].at("seal"));
        if (!job.run) continue;
      }
      const auto again = campaign_job_json(id, job);
      if (!again) return problem(again.error());
      if (const auto where = first_difference(jobs[i], *again, fmt::format("/jobs[{}]", i));
          !where.empty())
        return differs(where);
      ++recomputed;
    }
    // What is said of all jobs follows from what is said of each, whether or not the runs are here.
    const auto summary = campaign_summary(id, jobs);
    if (!summary) return problem(summary.error());
    if (const auto where = first_difference(stored, *summary); !where.empty())
      return differs(where);
    report_.passed.push_back(fmt::format("analysis: {} of {} jobs recomputed, and the summary",
                                         recomputed, jobs.size()));
    against_plan(id, jobs);
  }

  void ladder(const Json& stored) {
    const std::string id = stored.at("campaign");
    const auto& points = stored.at("points");
    std::size_t recomputed = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto run = source(points[i].at("run_id"), points[i].at("seal"));
      if (!run) continue;
      const auto again = ladder_point(id, points[i].at("job"), *run);
      if (!again) return problem(again.error());
      if (const auto where = first_difference(points[i], *again, fmt::format("/points[{}]", i));
          !where.empty())
        return differs(where);
      ++recomputed;
    }
    const auto summary = ladder_summary(id, points);
    if (!summary) return problem(summary.error());
    if (const auto where = first_difference(stored, *summary); !where.empty())
      return differs(where);
    report_.passed.push_back(
        fmt::format("analysis: {} of {} runs of the ladder recomputed, and the line through them",
                    recomputed, points.size()));
    against_plan(id, points);
  }

  // A study's conditions are of all its runs together: all have to be there.
  void study(const Json& stored) {
    const std::string id = stored.at("campaign");
    Json elements = stored.at("contrasts");
    elements.insert(elements.begin(), stored.at("aa"));
    for (const char* other : {"control", "floor"})
      if (!stored.at(other).is_null()) elements.push_back(stored.at(other));
    std::vector<std::pair<std::string, fs::path>> jobs;
    for (const auto& e : elements)
      if (const auto run = source(e.at("run_id"), e.at("seal")))
        jobs.emplace_back(e.at("job").get<std::string>(), *run);
    const auto record = qualification(stored.at("study").at("qualification"));
    if (record && jobs.size() == elements.size()) {
      const auto again = study_analysis(id, stored.at("study"), *record, jobs);
      if (!again) return problem(again.error());
      auto where = first_difference(stored, *again);
      // Its prose has no number of its own: every one is a run's, as stored.
      if (where.empty() && stored.at("conditions") != again->at("conditions"))
        where = "/conditions: another evidence";
      if (!where.empty()) return differs(where);
      report_.passed.push_back(
          fmt::format("analysis: recomputed from its {} runs and its qualification", jobs.size()));
    } else {
      report_.not_checked.push_back("analysis: not recomputed, for want of what is named here");
    }
    against_plan(id, elements, stored.at("study"));
  }

  // The record by its id, where it is here; one that is not what its name says is a problem.
  std::optional<Json> qualification(const std::string& id) {
    const auto file = kernel_qualification_file(root_, id);
    std::error_code ec;
    if (!fs::exists(fs::symlink_status(file, ec))) {
      report_.not_checked.push_back("qualification record " + id + ": not in this data root");
      return std::nullopt;
    }
    auto record = load_record(file, kKernelQualification);
    if (record) return std::move(record->json);
    problem(record.error());
    return std::nullopt;
  }

  // The campaign's frozen plan says which jobs there had to be, and of a study what it is.
  void against_plan(const std::string& id, const Json& jobs, const Json& study = nullptr) {
    const auto file = root_.path() / "campaigns" / id / "plan.json";
    const auto bytes = id.find('/') == std::string::npos && id != ".."
                           ? read_file(file)
                           : refuse(RefusalCode::bad_argument, "no such campaign");
    const auto plan = bytes ? parse_json(*bytes, file.string()) : std::unexpected(bytes.error());
    if (!plan || !plan->is_object() || !plan->contains("jobs") || !plan->at("jobs").is_array()) {
      report_.not_checked.push_back("jobs against the campaign's plan: not in this data root");
      return;
    }
    const auto& planned = plan->at("jobs");
    bool same =
        planned.size() == jobs.size() && (study.is_null() || plan->value("study", Json()) == study);
    for (std::size_t i = 0; same && i < jobs.size(); ++i)
      same = planned[i].is_object() && planned[i].value("id", Json()) == jobs[i].at("job") &&
             (plan_of(jobs[i]).is_null() || !planned[i].contains("plan_id") ||
              planned[i].at("plan_id") == plan_of(jobs[i]));
    if (!same)
      return problem({RefusalCode::analysis_mismatch,
                      study.is_null()
                          ? "its jobs are not those of the campaign's plan"
                          : "its jobs or its study are not those of the campaign's plan",
                      (report_.directory / "analysis.json").string(),
                      "make it again from the campaign's jobs",
                      {}});
    report_.passed.push_back("jobs: those of the campaign's plan");
  }

  // A ladder's point names its plan itself, a campaign's job with its result; without one, null.
  static Json plan_of(const Json& job) {
    const auto result = job.value("result", Json());
    return result.is_null() ? job.value("plan_id", Json()) : result.at("plan_id");
  }

  const DataRoot& root_;
  VerifyReport report_;
};

} // namespace

Result<VerifyReport> verify_analysis(const DataRoot& root, const std::string& id) {
  std::error_code ec;
  const auto directory = root.analyses() / id;
  if (!id.starts_with(kAnalysisPrefix) || !fs::is_directory(directory, ec))
    return refuse(RefusalCode::not_found, "no analysis is named \"" + id + "\"",
                  "give an id below " + root.analyses().string());
  try {
    return AnalysisVerification(root, directory).run(id);
  } catch (const Json::exception& e) { // a member that the schema does not ask for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), {}, directory.string());
  }
}

} // namespace hebe::evidence
