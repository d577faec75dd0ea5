// What happened to a campaign's jobs (campaigns/<id>/state.jsonl). In: events; out: the state of
// each job. Invariant: append-only, one event a line, whole or not at all; each line carries a
// digest over the line before it and itself, so that a changed, lost or inserted line is found;
// several processes, on several machines, append in turn (flock).
#pragma once

#include "campaign/frozen_campaign.hpp"
#include "core/files.hpp"

#include <algorithm>

namespace hebe::campaign {

enum class JobState { pending, started, sealed, refused, interrupted };
[[nodiscard]] std::string_view name_of(JobState state);

struct JobRecord {
  JobState state = JobState::pending;
  int attempts = 0;
  std::string run, seal;     ///< run directory relative to the data root, once sealed
  std::string verdict;       ///< of the sealed run
  int exit = 0;              ///< the claim's exit code, once sealed
  std::string refusal;       ///< code of the last refusal
  std::string what;          ///< its text
  std::int64_t since_us = 0; ///< wall time of its last event
  [[nodiscard]] bool pending() const { return state != JobState::sealed; }
};

struct Submission {
  std::string engine;
  std::vector<std::string> slurm_jobs;
  std::int64_t at_us = 0;
};

struct CampaignState {
  std::vector<JobRecord> jobs; ///< as in the plan
  std::vector<Submission> submissions;
  std::vector<Json> sessions; ///< identities that worked on it, in order (campaign/session.hpp)
  std::string analysis;       ///< the campaign's analysis, once all jobs are sealed
  std::int64_t first_us = 0;  ///< wall time of the first event; 0: none
  std::string ladder;         ///< the ladder's, where the campaign is one
  std::string study;          ///< the study's, where its jobs have roles
  std::int64_t last_us = 0;   ///< wall time of the last event
  std::size_t events = 0;
  [[nodiscard]] std::size_t count(JobState state) const;
  [[nodiscard]] std::size_t pending() const;
};

/// The first day that a run of the campaign can lie in: of its first event; without one, of its
/// freezing. One day earlier, for hosts whose clocks differ.
[[nodiscard]] std::string first_day_of(const FrozenCampaign& campaign, const CampaignState& state);

class Journal {
public:
  /// Reads and checks every line; digest_mismatch names the line. A last line without its end was
  /// cut off by a crash: it never counted, and the next append removes it and says so.
  [[nodiscard]] static Result<Journal> open(const FrozenCampaign& campaign);
  /// For people who look: how many jobs are in which state. Lines are read, not checked, runs and
  /// seals are left out, and the file need not be there.
  [[nodiscard]] static Result<CampaignState> glance(const FrozenCampaign& campaign);

  /// Events that others appended since.
  [[nodiscard]] Status refresh();
  /// `event` has "event" and what belongs to it; the journal adds number, time, who, and digest.
  /// Refuses clock_jump when the wall clock stands more than ten seconds before the last event's,
  /// no_space with the file as it was, digest_mismatch when what others appended does not follow.
  [[nodiscard]] Status append(Json event, std::int64_t wall_us);
  /// A time that does not stand before the last event's: for the names of directories.
  [[nodiscard]] std::int64_t not_before_last(std::int64_t wall_us) const {
    return std::max(wall_us, state_.last_us);
  }

  [[nodiscard]] const CampaignState& state() const { return state_; }

private:
  explicit Journal(const FrozenCampaign& campaign) : campaign_(&campaign) {}
  [[nodiscard]] Status read_from(std::uint64_t offset, std::string_view bytes, bool check);
  [[nodiscard]] bool glance_at(std::string_view line);
  [[nodiscard]] Status apply(const Json& event, const std::string& where);
  const FrozenCampaign* campaign_;
  std::filesystem::path path_;
  std::map<std::string, std::size_t, std::less<>> index_of_; ///< job id to its place
  CampaignState state_;
  std::uint64_t whole_ = 0; ///< bytes of whole lines
  std::string link_;        ///< digest of the last one
};

/// Which job a process works on, and that a submitter is at work: byte-range locks (OFD) on
/// campaigns/<id>/jobs.lock, released by the kernel when the holder dies, on NFS as well.
class JobLocks {
public:
  [[nodiscard]] static Result<JobLocks> open(const FrozenCampaign& campaign);
  /// To look only: nothing is created. none: nobody ever worked on the campaign.
  [[nodiscard]] static std::optional<JobLocks> look(const FrozenCampaign& campaign);
  [[nodiscard]] Result<bool> try_lock(std::size_t job); ///< false: another process has it
  void unlock(std::size_t job);
  [[nodiscard]] Result<bool> try_lock_submission();
  /// lease_lost when the file was removed or replaced: another process could hold "the" lock now.
  [[nodiscard]] Status still_ours() const;
  /// Whether another process has it.
  [[nodiscard]] bool locked(std::size_t job) const;
  [[nodiscard]] bool submission_locked() const;

private:
  FileDescriptor fd_;
  std::filesystem::path path_;
};

} // namespace hebe::campaign
