// Handing a frozen campaign to whoever measures it. In: a campaign and an engine; out: its jobs
// sealed (local) or queued (slurm). Invariant: one submitter at a time; a campaign is begun once
// and then only resumed; nothing runs before every stored file it depends on has been checked.
#pragma once

#include "campaign/campaign_work.hpp"
#include "campaign/slurm_engine.hpp"

namespace hebe::campaign {

struct SubmitRequest {
  bool resume = false;
  bool accept_clock = false;        ///< the clock stood ahead once, and is right now
  std::string engine;               ///< "local", "slurm"; empty: the one before, else local
  std::vector<std::string> devices; ///< local: one process each, side by side; one: this process
  SlurmOptions slurm;
  std::filesystem::path program;           ///< hebe itself, for other processes
  std::vector<std::string> worker_options; ///< passed on to them, e.g. --sim-fault reboot
  std::map<std::string, std::string> slurm_environment;
  WorkRequest work; ///< its machine's selector is the single device
};

struct SubmitOutcome {
  std::string engine;
  SlurmSubmission slurm;
  WorkOutcome work;     ///< local, one device
  CampaignState state;  ///< afterwards
  std::string analysis; ///< of the campaign, when every job is sealed
};

/// Refuses: already_submitted (submitted before, naming when and by what; or another submitter is
/// at work), the refusals of check_integrity and work_on_campaign, slurm_failed.
[[nodiscard]] Result<SubmitOutcome> submit_campaign(const evidence::DataRoot& root,
                                                    const FrozenCampaign& campaign,
                                                    const SubmitRequest& request,
                                                    const JobCallbacks& callbacks);

/// Once every job is sealed: each run's point analysis and the campaign's, stored and written into
/// the journal. Safe to repeat. Returns the campaign analysis' id; empty while jobs are pending.
[[nodiscard]] Result<std::string> finish_campaign(const evidence::DataRoot& root,
                                                  const FrozenCampaign& campaign, Journal& journal);

/// The exit code of a campaign: what a job that did not hold its claim would exit with.
[[nodiscard]] ExitCode exit_code_of(const CampaignState& state);

} // namespace hebe::campaign
