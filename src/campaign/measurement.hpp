// One frozen job on one board. In: the plan, the prepared case, an open machine, its lease; out:
// everything a run's record is made of. Invariant: nothing is written here, and whatever makes the
// board, its meter or the kernel unfit is a refusal.
#pragma once

#include "campaign/board_lease.hpp"
#include "campaign/frozen_job.hpp"
#include "evidence/environment.hpp"
#include "evidence/qualification_store.hpp"
#include "evidence/sealed_run.hpp"
#include "measure/experiment.hpp"

#include <functional>
#include <set>

namespace hebe::campaign {

struct JobCallbacks {
  std::function<bool()> interrupted;
  std::function<void(const measure::Progress&)> progress;
  std::function<void(const std::string&)> notice; ///< one line for the log
  std::function<Status()> may_continue{};         ///< asked with the lease, before every window
};

/// What the environment record says beside what can be read off the machine.
struct Circumstances {
  std::vector<std::string> argv; ///< as recorded
  std::string no_argv;           ///< why there is none, where the record must not depend on it
  evidence::Variables variables;
  Json toolchain;           ///< the compile worker's hello
  std::string no_toolchain; ///< why there is none
  bool redact = false;
  std::optional<Fact> meter_qualification{};
  measure::KnownResponse response{};      ///< what sets the pre-roll
  std::set<std::int64_t> own_processes{}; ///< of an earlier context of ours (board_is_free)
};

/// A qualification, or why there is none, as a fact for the record; a refusal where the tier is
/// evidence.
[[nodiscard]] Result<Fact> qualification_fact(Result<evidence::StoredQualification> stored,
                                              const measure::Tier& tier);
/// The board's present meter qualification as a fact for the record. A tier that is evidence
/// refuses a real board without one (meter_not_qualified); the simulated board's meters are known.
[[nodiscard]] Result<Fact> qualified_meter(const evidence::DataRoot& root, const Machine& machine,
                                           const measure::Tier& tier);

/// The board's present response record, of the source that the runs are measured with; or why there
/// is none. It is looked up when a job is measured and never when it is frozen: it ends with the
/// boot, and a plan may be frozen where there is no GPU. The plan says what is measured, the record
/// of the run what it was measured by. Refuses a window that is shorter than what the response asks
/// for, where the tier is evidence (below_tier_minimum).
[[nodiscard]] Result<measure::KnownResponse> known_response(const evidence::DataRoot& root,
                                                            const Machine& machine,
                                                            const measure::Tier& tier,
                                                            Seconds window);

/// Before our own context exists, so that every process on the board but `own` is somebody else's:
/// gpu_busy, mig_enabled. `own` is known (our_processes) where this process had the board before: a
/// library that was used on it (cuBLASLt's runtime) keeps the primary context to the process's end.
[[nodiscard]] Status board_is_free(Machine& machine, const std::set<std::int64_t>& own = {});
/// With our context open and nobody else on the board, the one process listed is ours, whatever its
/// number is in the meter's eyes: gpu_busy when there are more. None: the meter cannot see
/// processes.
[[nodiscard]] Result<std::set<std::int64_t>> our_processes(Machine& machine);

[[nodiscard]] Result<evidence::RunParts>
measure_job(const measure::Plan& plan, const std::string& plan_id, const PreparedArms& prepared,
            Machine& machine, const BoardLease& lease, const Circumstances& circumstances,
            const JobCallbacks& callbacks);

} // namespace hebe::campaign
