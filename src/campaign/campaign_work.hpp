// One process working on a campaign with one board. In: a frozen campaign; out: sealed runs of its
// pending jobs. Invariant: a job is sealed once, whatever was killed when: the directories are read
// before the journal is believed, and what a dead process had finished is sealed, not measured
// again.
#pragma once

#include "campaign/job.hpp"
#include "campaign/journal.hpp"

namespace hebe::campaign {

/// Adds a sealed run to the catalog.
using Ingest = std::function<Status(const std::filesystem::path& run)>;

struct WorkRequest {
  MachineRequest machine;        ///< faults: only such as change the board's identity
  std::vector<std::size_t> only; ///< indexes of jobs; empty: all that are pending
  std::string program_sha256;
  std::vector<std::string> argv;
  evidence::Variables variables;
  std::filesystem::path scratch;
  bool redact = false;
  Sealer sealer; ///< seals and adds to the catalog
  Ingest ingest; ///< for runs that were found sealed
  std::function<void(const std::string& job, std::size_t done, std::size_t all)> job_begins;
};

struct WorkOutcome {
  std::size_t sealed_now = 0;
  std::size_t held_elsewhere = 0; ///< jobs that another process has
  std::vector<Refusal> refusals;  ///< of jobs, in order; their jobs stay pending
};

/// What may stop it before anything is measured: digest_mismatch and the like (integrity),
/// session_changed, no_device (not the kind of GPU it was planned for), lease_held, clock_jump.
[[nodiscard]] Result<WorkOutcome> work_on_campaign(const evidence::DataRoot& root,
                                                   const FrozenCampaign& campaign,
                                                   const WorkRequest& request,
                                                   const JobCallbacks& callbacks);

/// Every file that the campaign depends on against its digest, on all cores: jobs, artifacts of the
/// pending ones, and each sealed run's files. Names the first that is wrong.
[[nodiscard]] Status check_integrity(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                                     const CampaignState& state);

/// The journal's event for a sealed run of a job.
[[nodiscard]] Result<Json> sealed_event(const evidence::DataRoot& root, const std::string& job,
                                        const std::filesystem::path& directory);

/// Seals what dead processes had captured for this campaign, and writes into the journal what was
/// sealed without it, of the jobs `only` (empty: of all). Needs no lease.
[[nodiscard]] Status reconcile(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                               Journal& journal, const std::vector<std::size_t>& only,
                               const Sealer& sealer, const Ingest& ingest,
                               const JobCallbacks& callbacks);

} // namespace hebe::campaign
