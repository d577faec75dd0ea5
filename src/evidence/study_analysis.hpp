// What a study says: its contrasts, its A/A, its control and whether it qualifies. In: the "study"
// of a campaign's plan, the qualification that it was frozen from, and its sealed runs; out: JSON
// of schema hebe.analysis.study/1. Invariant: a pure function of stored data, so that verification
// computes it again; only measured runs of confirmation-v1 of qualified kernels can qualify.
#pragma once

#include "core/json.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hebe::evidence {

/// A study's jobs (id and run directory) in the order of its "jobs". Refuses bad_argument for what
/// is not the study's, naming run and job; bad_schema, digest_mismatch and not_found as reading
/// runs does.
[[nodiscard]] Result<Json>
study_analysis(const std::string& campaign_id, const Json& study, const Json& qualification_record,
               const std::vector<std::pair<std::string, std::filesystem::path>>& jobs);

} // namespace hebe::evidence
