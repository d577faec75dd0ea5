// A study whose jobs are all sealed: its dataset, its page, its seal; and later whether all of it
// still is what it was. In: the campaign and its analysis; out: studies/<id>/. Invariant: safe to
// repeat: equal parts give the same study.
#pragma once

#include "campaign/frozen_campaign.hpp"
#include "evidence/sealed_study.hpp"
#include "evidence/verify.hpp"

namespace hebe::campaign {

struct FinishedStudy {
  evidence::SealedStudy sealed;
  Json analysis; ///< schema hebe.analysis.study/1
};

/// Once the journal has the study's analysis.
[[nodiscard]] Result<FinishedStudy> finish_study(const evidence::DataRoot& root,
                                                 const FrozenCampaign& campaign,
                                                 const std::string& analysis_id);

/// Everything again: qualification and its rewrites, campaign, each run from its samples, the
/// calibration, the aggregate analysis from the runs, the dataset's rows. Parts that are not in the
/// data root are named as not checked, and without them the study is not verified.
[[nodiscard]] Result<evidence::PartsReport> verify_study(const evidence::DataRoot& root,
                                                         const evidence::SealedStudy& study);

} // namespace hebe::campaign
