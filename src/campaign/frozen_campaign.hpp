// A campaign that cannot change. In: a spec and the kind of machine it is for; out: a directory
// that holds every job's frozen plan and names every artifact and oracle output by digest.
// Invariant: written whole or not at all; its name carries the digest of plan.json, which has the
// digest of every job's file: measuring it needs no Python, no Triton and no case file.
#pragma once

#include "campaign/campaign_spec.hpp"

namespace hebe::campaign {

struct CampaignJob {
  std::string id, plan_id, file_sha256;
};

/// plan.json (schema hebe.campaign.plan/1), checked.
struct FrozenCampaign {
  std::string id, name;
  std::filesystem::path directory;
  bool study = false;
  Json device; ///< {"provenance", "arch"}
  std::vector<CampaignJob> jobs;
  std::vector<std::string> artifacts{}; ///< digests of all that its jobs need
  bool ladder = false;   ///< a control ladder: analysed as one when every job is sealed
  Json design = nullptr; ///< a study's jobs and their roles (campaign/study.hpp); null: none
  [[nodiscard]] bool simulated() const { return device.at("provenance") == "simulated"; }
};

/// jobs/<id>.json (schema hebe.campaign.job/1), checked.
struct FrozenJob {
  std::string id, plan_id;
  measure::Plan plan;
  Json oracle;   ///< arm A's: output name to {"dtype", "sha256"}
  Json oracle_b; ///< arm B's; null where arm B is arm A
};

struct PlanRequest {
  Target target;
  Bytes memory; ///< of the GPU, for the buffers
  kernel::WorkerCommand worker;
  std::filesystem::path scratch;
  bool dry_run = false; ///< everything but the campaign's directory (the compile fills caches)
  std::function<void(std::size_t done, std::size_t all)> progress;
  std::function<bool()> interrupted;
};

struct PlanOutcome {
  FrozenCampaign campaign;
  bool existed = false; ///< the same campaign was frozen before
  Seconds estimated{0}; ///< of all jobs, one after another
};

/// Refuses, having written nothing under campaigns/, whatever is wrong with any job.
[[nodiscard]] Result<PlanOutcome>
plan_campaign(const evidence::DataRoot& root, const CampaignSpec& spec, const PlanRequest& request);

/// By id, by a unique part of one, or by directory (inside the data root). digest_mismatch names
/// plan.json.
[[nodiscard]] Result<FrozenCampaign> load_campaign(const evidence::DataRoot& root,
                                                   const std::string& name);
/// Campaign directories, in the order of their names.
[[nodiscard]] std::vector<std::filesystem::path>
campaign_directories(const evidence::DataRoot& root);

/// The job's file against its digest, without reading it as a job.
[[nodiscard]] Status check_job_file(const FrozenCampaign& campaign, std::size_t index);
/// digest_mismatch names the job's file.
[[nodiscard]] Result<FrozenJob> load_job(const FrozenCampaign& campaign, std::size_t index);

/// A campaign's name ends in so many digits of its plan's digest.
inline constexpr std::size_t kDigestDigitsInName = 16;

/// One arm as frozen; each stored file against its digest.
[[nodiscard]] Result<PreparedCase> case_from_store(const kernel::ArtifactStore& store,
                                                   const Json& subject, const Json& inputs,
                                                   const Json& oracle, const std::string& where);

/// The arms as frozen: cubins, inputs and oracles from the artifact store, each checked.
[[nodiscard]] Result<PreparedArms> prepared_from_store(const evidence::DataRoot& root,
                                                       const FrozenJob& job);

} // namespace hebe::campaign
