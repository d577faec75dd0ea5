// What stored runs say, one run or a whole campaign. In: run directories; out: JSON of schema
// hebe.analysis.point/1 or hebe.analysis.campaign/1. Invariant: pure functions of stored data, so
// that verification computes them again.
#pragma once

#include "core/json.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hebe::evidence {

/// The run's contrasts, conditions and verdict, and the digests of the files they came from.
[[nodiscard]] Result<Json> point_analysis(const std::filesystem::path& run);

/// A job of a campaign: its sealed run, or why there is none.
struct CampaignJob {
  std::string job_id;
  std::optional<std::filesystem::path> run;
  std::string why_none; ///< required when there is no run
};

/// Jobs in the order given. Refuses: bad_argument for a job named twice, a run named twice, a job
/// with neither run nor reason, a run of another campaign or job.
[[nodiscard]] Result<Json> campaign_analysis(const std::string& campaign_id,
                                             const std::vector<CampaignJob>& jobs);

/// One element of a campaign analysis' "jobs".
[[nodiscard]] Result<Json> campaign_job_json(const std::string& campaign_id,
                                             const CampaignJob& job);
/// The rest of a campaign analysis, from its jobs alone: adjusted p-values, replicates, counts.
[[nodiscard]] Result<Json> campaign_summary(const std::string& campaign_id, const Json& jobs);

} // namespace hebe::evidence
