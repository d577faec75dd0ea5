// What a campaign shall measure, as its author wrote it. In: a TOML or JSON file (schema
// hebe.campaign.spec/1); out: jobs in order, each complete and within its tier's limits. Invariant:
// one wrong job refuses the whole file; the refusal names the job.
#pragma once

#include "campaign/qualified_arms.hpp"
#include "evidence/data_root.hpp"

#include <functional>

namespace hebe::campaign {

struct CampaignJobSpec {
  std::string id;
  JobSpec job;
  std::string plan; ///< a frozen plan to measure again, relative to the data root; empty: `job`
  /// Arms of the campaign's qualification, in place of the job's cases.
  std::optional<QualifiedContrast> qualified{};
  Predict predict{};                ///< of a positive control
  std::vector<gpu::Fault> faults{}; ///< of this job's simulated board, beside the target's
};

struct CampaignSpec {
  std::string name;
  bool study = false;  ///< all jobs on one board, in one boot session, under one lease, in order
  bool ladder = false; ///< a control ladder: analysed as one when every job is sealed
  std::vector<CampaignJobSpec> jobs;
  const QualifiedArms* arms = nullptr; ///< of qualified jobs; outlives the planning
  Json design = nullptr; ///< of a study with roles: the plan's member "study", as it is frozen
};

/// A case's name, and the folder that a relative file is relative to, to a case.
using CaseResolver = std::function<Result<kernel::CaseRequest>(const std::string& name,
                                                               const std::filesystem::path& base)>;

[[nodiscard]] Result<CampaignSpec> read_campaign_spec(const std::filesystem::path& file,
                                                      const CaseResolver& resolve);

/// A job's seed where only the campaign has one: a function of that seed and the job's id, so that
/// adding or moving jobs changes no other job's seed.
[[nodiscard]] std::uint64_t seed_for(const std::string& campaign_seed, const std::string& job);

} // namespace hebe::campaign
