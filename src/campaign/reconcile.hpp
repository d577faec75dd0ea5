// What the directories say against what the journal says. In: a campaign's journal; out: the
// journal with every sealed run of the campaign in it. Invariant: the directories are believed: a
// run that lies sealed is never measured again, whatever became of the process, or of the journal's
// lines.
#pragma once

#include "campaign/job.hpp"
#include "campaign/journal.hpp"

namespace hebe::campaign {

/// Adds a sealed run to the catalog.
using Ingest = std::function<Status(const std::filesystem::path& run)>;

struct Reconciler {
  const evidence::DataRoot& root;
  const FrozenCampaign& campaign;
  Journal& journal;
  JobLocks& locks;
  const Sealer& sealer;
  const Ingest& ingest;
  const JobCallbacks& callbacks;

  /// Seals what dead processes had captured of its jobs, and writes down what was sealed without
  /// the journal. Jobs that a living process has are left to it. Refuses by name when a directory
  /// that could be the campaign's cannot be read as what it was.
  [[nodiscard]] Status all_jobs();
  /// The same for one job whose lock the caller holds.
  [[nodiscard]] Status locked_job(std::size_t index);

private:
  [[nodiscard]] Status look(const std::map<std::string, std::size_t>& wanted, bool locked);
  [[nodiscard]] Status with_job(const std::optional<evidence::JobIdentity>& whose,
                                const std::map<std::string, std::size_t>& wanted, bool locked,
                                const std::function<Status(const std::string& job)>& use);
  [[nodiscard]] Status seal_capture(const std::string& job, const std::filesystem::path& captured,
                                    const std::filesystem::path& sealed_before);
  [[nodiscard]] Status write_down(const std::string& job, const std::filesystem::path& run);
};

/// The journal's event for a sealed run of a job.
[[nodiscard]] Result<Json> sealed_event(const evidence::DataRoot& root, const std::string& job,
                                        const std::filesystem::path& directory);

/// Every file that the campaign depends on against its digest, on all cores: its jobs, the
/// artifacts of pending ones, and each sealed run. The refusal names the first that is wrong.
[[nodiscard]] Status check_integrity(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                                     const CampaignState& state);

/// `hebe ingest` of one captured directory. A campaign's job is sealed under its lock and written
/// into the journal. none: a living process has the job and will seal it itself. already_exists
/// when the job has another sealed run: a second one would count it twice.
[[nodiscard]] Result<std::optional<evidence::SealedRun>>
ingest_captured(const evidence::DataRoot& root, const std::filesystem::path& captured,
                const Ingest& ingest, const JobCallbacks& callbacks);

} // namespace hebe::campaign
