// Jobs of a campaign as tasks of a Slurm cluster. In: which jobs of which campaign; out: scripts in
// the campaign's folder and Slurm's job ids. Invariant: each job index is in exactly one task; a
// refused submission leaves no task in Slurm's queue. Slurm only starts tasks, again where a node
// was lost; what is done and what is not, the campaign's own journal says.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hebe::campaign {

struct SlurmOptions {
  std::string partition, account;
  std::string gres = "gpu:1";     ///< empty: none
  std::string time_limit;         ///< empty: the partition's
  int max_parallel = 0;           ///< tasks at a time; 0: as many as Slurm gives
  std::vector<std::string> extra; ///< further options of sbatch, which win over ours
};

struct SlurmRequest {
  std::filesystem::path program, data_root;
  std::filesystem::path folder; ///< <data root>/campaigns/<id>/slurm: scripts and logs
  std::string campaign;
  std::vector<std::size_t> jobs; ///< indexes of pending jobs
  bool one_task = false;         ///< a study: one task runs all jobs, under one lease
  std::string device;            ///< for --device; the task picks the board by UUID itself
  SlurmOptions options;
  std::map<std::string, std::string> environment; ///< to export, e.g. HEBE_PYTHON
};

struct SlurmSubmission {
  std::vector<std::string> job_ids; ///< one an array
  std::vector<std::filesystem::path> scripts;
};

/// Refusals: bad_argument (a value that sbatch could not be given faithfully), slurm_failed (Slurm
/// is missing, does not answer, or said no, in its words; what this call had submitted is
/// cancelled).
[[nodiscard]] Result<SlurmSubmission> submit_to_slurm(const SlurmRequest& request);

/// Job ids of this campaign's arrays that wait or run, whoever submitted them and whatever the
/// journal knows of it.
[[nodiscard]] Result<std::vector<std::string>> living_slurm_jobs(const std::string& campaign);

/// Slurm's word for each job; of an array: RUNNING while a task runs, else PENDING while one waits,
/// else COMPLETED when all are, else what the others became. "GONE" where Slurm no longer knows it.
[[nodiscard]] Result<std::map<std::string, std::string>>
slurm_states(const std::vector<std::string>& job_ids);

} // namespace hebe::campaign
