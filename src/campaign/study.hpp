// A causal study from its specification to a sealed answer. In: a qualification that passed,
// contrasts of it, a protocol, a board; out: one frozen campaign (A/A, contrasts, positive control,
// floor) measured in order under one lease, its aggregate analysis and its dataset. Invariant: what
// a control must show is predicted and frozen before any job of the study is measured; nothing is
// measured that was not qualified.
#pragma once

#include "campaign/study_spec.hpp"
#include "campaign/submission.hpp"

namespace hebe::campaign {

struct StudyRequest {
  StudySpec spec;
  std::string qualification; ///< file, id, or a unique part of one
  CaseLookup find_case;      ///< the cases that the qualification names
  JobRequest job;            ///< machine, worker, scratch, what is recorded, sealer
  SubmitRequest submit;      ///< engine local; its lease is set here
  bool dry_run = false;
};

struct StudyOutcome {
  FrozenCampaign campaign;
  SubmitOutcome submitted; ///< none of it where nothing was run
  std::optional<evidence::SealedRun> calibration;
  Seconds estimated{0};
};

/// Refuses, before the first launch, what QualifiedArms refuses, a specification that is not of
/// this qualification, contrasts of it that are not fit; then what a job and a campaign refuse.
/// With `dry_run`: says what would be measured.
[[nodiscard]] Result<StudyOutcome> run_study(const evidence::DataRoot& root,
                                             const StudyRequest& request,
                                             const JobCallbacks& callbacks);

/// The primary contrast alone, as one sealed run.
[[nodiscard]] Result<JobOutcome> run_contrast(const evidence::DataRoot& root,
                                              const StudyRequest& request,
                                              const JobCallbacks& callbacks);

/// The newest campaign frozen for this study that is not finished; not_found.
[[nodiscard]] Result<FrozenCampaign> pending_study(const evidence::DataRoot& root,
                                                   const std::string& study);

} // namespace hebe::campaign
