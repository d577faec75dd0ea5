// One process working on a campaign with one board. In: a frozen campaign; out: sealed runs of its
// pending jobs. Invariant: a job is sealed once, whatever was killed when: the directories are read
// before the journal is believed, and what a dead process had finished is sealed, not measured
// again.
#pragma once

#include "campaign/job.hpp"
#include "campaign/reconcile.hpp"

namespace hebe::campaign {

struct WorkRequest {
  MachineRequest machine;        ///< faults: only such as change the board's identity
  std::vector<std::size_t> only; ///< indexes of jobs; empty: all that are pending
  std::string program_sha256;
  std::vector<std::string> argv;
  evidence::Variables variables;
  std::filesystem::path scratch;
  bool redact = false;
  BoardLease* lease = nullptr; ///< of the board, held by the caller; none: the worker takes its own
  Sealer sealer;               ///< seals and adds to the catalog
  Ingest ingest;               ///< for runs that were found sealed
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

/// The same where the caller has just reconciled journal and directories.
[[nodiscard]] Result<WorkOutcome> work_on_reconciled(const evidence::DataRoot& root,
                                                     const FrozenCampaign& campaign,
                                                     const WorkRequest& request,
                                                     const JobCallbacks& callbacks);

} // namespace hebe::campaign
