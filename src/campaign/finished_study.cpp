#include "campaign/finished_study.hpp"

#include "campaign/kernel_verification.hpp"
#include "core/files.hpp"
#include "core/sha256.hpp"
#include "evidence/analysis_store.hpp"
#include "evidence/dataset.hpp"
#include "evidence/dataset_verify.hpp"
#include "evidence/stored_run.hpp"
#include "evidence/study_agreement.hpp"
#include "report/study_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hebe::campaign {
namespace {

constexpr const char *kPage = "page.html", *kPicture = "effects.svg";

Json run_row(const Json& part) {
  return {{"job", part.at("job")}, {"run_id", part.at("run_id")}, {"seal", part.at("seal")}};
}

Json run_rows(const Json& analysis) {
  Json out = Json::array();
  out.push_back(run_row(analysis.at("aa")));
  for (const auto& c : analysis.at("contrasts")) out.push_back(run_row(c));
  for (const char* other : {"control", "floor"})
    if (!analysis.at(other).is_null()) out.push_back(run_row(analysis.at(other)));
  return out;
}

class StudyVerification {
public:
  StudyVerification(const evidence::DataRoot& root, const evidence::SealedStudy& study)
      : root_(root), study_(study) {}

  evidence::PartsReport parts() {
    auto& whole = part("study " + study_.id);
    whole.directory = study_.directory;
    whole.passed = {"name, schema and files"};
    campaign(whole);
    qualification();
    for (const auto& run : study_.json.at("runs")) one_run("run", run);
    if (!study_.json.at("calibration").is_null()) calibration();
    analysis();
    dataset();
    return std::move(out_);
  }

private:
  evidence::VerifyReport& part(std::string what) { return out_.part(std::move(what)); }
  void missing(evidence::VerifyReport& report, const std::string& what) {
    out_.missing(report, what);
  }
  static void take(evidence::VerifyReport& into, Result<evidence::VerifyReport> report) {
    if (report)
      into = std::move(*report);
    else
      into.problems.push_back(std::move(report).error());
  }

  void campaign(evidence::VerifyReport& whole) {
    const auto id = study_.json.at("campaign").get<std::string>();
    const auto frozen = load_campaign(root_, id);
    if (!frozen) {
      if (frozen.error().code == RefusalCode::not_found)
        missing(whole, "campaign " + id);
      else
        whole.problems.push_back(frozen.error());
      return;
    }
    const auto digest = sha256_of_file(frozen->directory / "plan.json");
    if (!digest || *digest != study_.json.at("plan_sha256"))
      whole.problems.push_back({RefusalCode::digest_mismatch,
                                "the campaign's plan is not the one that was measured",
                                (frozen->directory / "plan.json").string(),
                                "restore it from a copy",
                                {}});
    for (std::size_t i = 0; i < frozen->jobs.size(); ++i)
      if (auto job = check_job_file(*frozen, i); !job) whole.problems.push_back(job.error());
    if (whole.problems.empty())
      whole.passed.push_back(
          fmt::format("campaign: plan and {} jobs as frozen", frozen->jobs.size()));
  }

  void qualification() {
    const auto id = study_.json.at("qualification").get<std::string>();
    auto& report = part("qualification " + id);
    const auto file = evidence::kernel_qualification_file(root_, id);
    std::error_code ec;
    if (!std::filesystem::exists(file, ec)) return missing(report, "the record");
    const auto stored = evidence::load_record(file, evidence::kKernelQualification);
    if (!stored)
      report.problems.push_back(stored.error());
    else
      take(report, verify_kernel_qualification(root_, *stored));
  }

  void one_run(const std::string& what, const Json& run) {
    const auto id = run.at("run_id").get<std::string>();
    auto& report = part(what + " " + id);
    const auto place = evidence::place_of_run(root_, id);
    if (!place) return missing(report, "the run");
    take(report, evidence::verify_run(*place));
    if (report.seal != run.at("seal"))
      report.problems.push_back({RefusalCode::digest_mismatch,
                                 fmt::format("required seal {}, found {}",
                                             run.at("seal").get<std::string>(), report.seal),
                                 place->string(),
                                 "restore the run from a copy",
                                 {}});
  }

  // The control's prediction rests on it: that it is the same board, boot and kernel, and came
  // before, is in no condition of the analysis, which does not read it.
  void calibration() {
    const auto& run = study_.json.at("calibration");
    one_run("calibration", run);
    auto& report = out_.parts.back().report;
    const auto of = evidence::place_of_run(root_, run.at("run_id"));
    std::optional<std::filesystem::path> control;
    for (const auto& row : study_.json.at("runs"))
      if (row.at("job") == "control") control = evidence::place_of_run(root_, row.at("run_id"));
    if (!of || !control) return; // told as missing
    const auto calibrated = evidence::read_stored_run(*of),
               judged = evidence::read_stored_run(*control);
    if (!calibrated || !judged) return; // told as not verified
    const auto faults = evidence::calibration_faults(*calibrated, *judged);
    for (const auto& fault : faults)
      report.problems.push_back({RefusalCode::analysis_mismatch,
                                 "this run is not the control's calibration: " + fault,
                                 of->string(),
                                 "restore the study from a copy",
                                 {}});
    if (faults.empty())
      report.passed.push_back(
          "calibration: board, boot, kernel and fractions of the control, before it");
  }

  void analysis() {
    const auto id = study_.json.at("analysis").get<std::string>();
    auto& report = part("analysis " + id);
    std::error_code ec;
    if (!std::filesystem::is_directory(root_.analyses() / id, ec))
      return missing(report, "the analysis");
    take(report, evidence::verify_analysis(root_, id));
    const auto stored = evidence::load_analysis(root_, id);
    if (!stored) return;
    pages(report, *stored);
    const auto says = [&](const char* member, const Json& found) {
      if (study_.json.at(member) != found)
        report.problems.push_back({RefusalCode::analysis_mismatch,
                                   fmt::format("the study says {} {}, its analysis {}", member,
                                               study_.json.at(member).dump(), found.dump()),
                                   (study_.directory / "study.json").string(),
                                   {},
                                   {}});
    };
    says("study_qualified", stored->at("study_qualified"));
    says("verdict", stored->at("verdict"));
    says("provenance", stored->at("provenance"));
    says("runs", run_rows(*stored));
    says("name", stored->at("study").at("name"));
    says("campaign", stored->at("campaign"));
    says("qualification", stored->at("study").at("qualification"));
    says("calibration", stored->at("study").at("calibration"));
  }

  // A page is drawn from the analysis; another version of Hebe may draw it otherwise.
  void pages(evidence::VerifyReport& report, const Json& analysis) const {
    const std::pair<const char*, std::string> made[] = {{kPage, report::study_page(analysis)},
                                                        {kPicture, report::study_svg(analysis)}};
    for (const auto& [name, text] : made) {
      const auto stored = read_file(study_.directory / name);
      if (!stored)
        report.problems.push_back(stored.error());
      else if (*stored != text)
        report.not_checked.push_back(std::string(name) +
                                     ": not as this version of Hebe draws it from the analysis");
      else
        report.passed.push_back(std::string(name) + ": drawn again from the analysis, the same");
    }
  }

  void dataset() {
    const auto id = study_.json.at("dataset").get<std::string>();
    auto& report = part("dataset " + id);
    const auto folder = root_.datasets() / id;
    std::error_code ec;
    if (!std::filesystem::is_directory(folder, ec)) return missing(report, "the dataset");
    take(report, evidence::verify_dataset(root_, folder, {}));
    const auto text = read_file(folder / "manifest.json");
    const auto manifest = text ? parse_json(*text, folder.string()) : Result<Json>(Json());
    std::set<std::string> in_study, in_dataset;
    for (const auto& run : study_.json.at("runs")) in_study.insert(run.at("seal"));
    if (manifest && manifest->is_object())
      for (const auto& run : manifest->at("runs")) in_dataset.insert(run.at("seal"));
    if (in_study != in_dataset)
      report.problems.push_back({RefusalCode::analysis_mismatch,
                                 "its runs are not those of the study",
                                 (folder / "manifest.json").string(),
                                 {},
                                 {}});
  }

  const evidence::DataRoot& root_;
  const evidence::SealedStudy& study_;
  evidence::PartsReport out_;
};

} // namespace

Result<FinishedStudy> finish_study(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                                   const std::string& analysis_id) {
  FinishedStudy out;
  HEBE_TRY(out.analysis, evidence::load_analysis(root, analysis_id));
  evidence::DatasetRequest request;
  request.campaign = campaign.id;
  HEBE_TRY(const auto plan, evidence::plan_dataset(root, request));
  HEBE_TRY(const auto dataset, evidence::take_dataset(root, plan));
  HEBE_TRY(const auto plan_sha256, sha256_of_file(campaign.directory / "plan.json"));
  const auto& a = out.analysis;
  Json study{{"schema", "hebe.study/1"},
             {"name", campaign.name},
             {"campaign", campaign.id},
             {"plan_sha256", plan_sha256},
             {"qualification", campaign.design.at("qualification")},
             {"calibration", campaign.design.at("calibration")},
             {"runs", run_rows(a)},
             {"analysis", analysis_id},
             {"dataset", dataset.id},
             {"provenance", a.at("provenance")},
             {"study_qualified", a.at("study_qualified")},
             {"verdict", a.at("verdict")}};
  HEBE_TRY(out.sealed, evidence::seal_study(
                           root, std::move(study),
                           {{kPage, report::study_page(a)}, {kPicture, report::study_svg(a)}}));
  return out;
}

Result<evidence::PartsReport> verify_study(const evidence::DataRoot& root,
                                           const evidence::SealedStudy& study) {
  try {
    return StudyVerification(root, study).parts();
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::bad_schema, e.what(), "restore the study from a copy",
                  study.directory.string());
  }
}

} // namespace hebe::campaign
