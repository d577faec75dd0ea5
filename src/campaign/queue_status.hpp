// What is leased, queued, running and left. In: a data root; out: a picture of this moment.
// Invariant: looks only: takes no lease, writes nothing, and waits for nobody; a campaign that
// cannot be read is listed with its reason.
#pragma once

#include "campaign/journal.hpp"
#include "campaign/lease.hpp"

namespace hebe::campaign {

struct CampaignView {
  std::string id, problem; ///< problem: why it cannot be read
  bool study = false, submitting = false;
  std::size_t jobs = 0, sealed = 0, refused = 0, waiting = 0;
  std::vector<std::string> running; ///< job ids with a live process
  std::vector<std::string> died;    ///< started, and no process has them: resume
  std::string last_refusal;         ///< "job: code: text"
  std::string engine, analysis;
  std::vector<std::string> slurm_jobs;
  std::int64_t last_us = 0; ///< wall time of the last event; 0: none
};

struct QueueView {
  std::vector<LeaseView> leases;
  std::vector<CampaignView> campaigns;
  std::vector<std::filesystem::path> half_written, captured;
};

/// `campaign` empty: all of them; else as in load_campaign.
[[nodiscard]] Result<QueueView> look_at_queue(const evidence::DataRoot& root,
                                              const std::string& campaign);

} // namespace hebe::campaign
