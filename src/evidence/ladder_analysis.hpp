// What a control ladder says: the response to known fractions of extra memory traffic. In: sealed
// runs whose arms are one case at fraction 0 and at another; out: JSON of schema
// hebe.analysis.ladder/1. Invariant: pure functions of stored data, so that verification computes
// them again; a smoke ladder says so in its label.
#pragma once

#include "core/json.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hebe::evidence {

/// The time for which the smallest detectable fraction is stated.
inline constexpr double kDetectionBudgetS = 60;

/// One element of "points". Refuses bad_argument for a run that is no step of a ladder or of
/// another campaign or job.
[[nodiscard]] Result<Json> ladder_point(const std::string& campaign_id, const std::string& job_id,
                                        const std::filesystem::path& run);
/// The whole analysis, from its points alone. Refuses bad_argument for points of several tiers or
/// provenances, or too few to fit.
[[nodiscard]] Result<Json> ladder_summary(const std::string& campaign_id, const Json& points);

/// Jobs (id and run) in the campaign's order.
[[nodiscard]] Result<Json>
ladder_analysis(const std::string& campaign_id,
                const std::vector<std::pair<std::string, std::filesystem::path>>& jobs);

/// A self-contained picture of the response, as SVG.
[[nodiscard]] std::string ladder_plot(const Json& ladder);

} // namespace hebe::evidence
