// A study's sealed runs, each in its role. In: the "study" of a campaign's plan, its qualification
// record, a run a job; out: those runs. Invariant: a run of another campaign, job, kind or kernel
// never stands for one of the study's, and all are of one provenance.
#pragma once

#include "evidence/stored_run.hpp"

#include <utility>

namespace hebe::evidence {

struct StudyJob {
  std::string job, role; ///< aa | primary | contrast | control | floor
  StoredRun run;
  [[nodiscard]] bool is_contrast() const { return role == "primary" || role == "contrast"; }
  [[nodiscard]] const Json& qualification() const { return run.plan.at("qualification"); }
  /// What arm "A" or "B" runs.
  [[nodiscard]] const Json& subject(const std::string& arm) const;
};

struct StudyRuns {
  std::string campaign;
  Json study, qualification; ///< the plan's member; the record
  std::vector<StudyJob> jobs;

  /// Null where the study has none; aa and primary are always there.
  [[nodiscard]] const StudyJob* of_role(std::string_view role) const;
  [[nodiscard]] const StudyJob& aa() const { return *of_role("aa"); }
  [[nodiscard]] const StudyJob& primary() const { return *of_role("primary"); }
  [[nodiscard]] std::vector<const StudyJob*> contrasts() const; ///< primary first
  /// All but the floor, which is information and never a condition.
  [[nodiscard]] std::vector<const StudyJob*> judged() const;
};

/// Telemetry is read of the contrasts only. Refuses bad_argument for what is not the study's,
/// naming run and job; bad_schema for a study whose jobs are not aa, primary, contrasts, control,
/// floor.
[[nodiscard]] Result<StudyRuns>
read_study_runs(const std::string& campaign_id, const Json& study, const Json& qualification_record,
                const std::vector<std::pair<std::string, std::filesystem::path>>& jobs);

} // namespace hebe::evidence
