// One job from request to sealed run. In: a case, a protocol, a machine; out: the sealed record and
// its analysis. Invariant: everything that can be refused is refused before the first write of a
// record.
#pragma once

#include "campaign/measurement.hpp"
#include "evidence/captured_run.hpp"

namespace hebe::campaign {

/// Turns a captured directory into a sealed run: in this process (evidence::seal_captured) or in
/// another, so that compaction costs the measuring one nothing.
using Sealer = std::function<Result<evidence::SealedRun>(const std::filesystem::path& captured)>;

struct JobRequest : JobSpec {
  MachineRequest machine;
  kernel::WorkerCommand worker;
  std::filesystem::path scratch; ///< for inputs and oracle outputs; removed afterwards
  std::vector<std::string> argv; ///< as recorded
  evidence::Variables variables;
  bool redact = false;
  Sealer sealer; ///< none: in this process
  /// This process as the meter lists it, where it had the board before (our_processes).
  std::set<std::int64_t> own_processes{};
  /// Where both arms come from when no case is compiled for them; must outlive the job.
  std::function<Result<PreparedArms>(CasePreparer& preparer)> arms{};
};

struct JobOutcome {
  evidence::SealedRun run;
  measure::Analysis analysis;
  measure::Acquisition acquisition;
  std::string plan_id;
  bool simulated = false;
};

/// What a job would do, without measuring: the frozen plan's id needs the compile, nothing is
/// recorded.
struct JobPreview {
  Json plan;
  std::string plan_id;
  Seconds estimated{0};
};

/// One job on a machine whose lease is held, and that was not measured on before: a device context
/// belongs to one job.
[[nodiscard]] Result<JobOutcome> run_leased(const evidence::DataRoot& root,
                                            const JobRequest& request, Machine& machine,
                                            const BoardLease& lease, const JobCallbacks& callbacks,
                                            const Predict& predict = {});
/// A machine to measure on: notices what lies in the data root, takes the lease, and finds the
/// board free.
struct LeasedMachine {
  std::unique_ptr<Machine> machine;
  BoardLease lease;
};
[[nodiscard]] Result<LeasedMachine> lease_machine(const evidence::DataRoot& root,
                                                  const JobRequest& request,
                                                  const JobCallbacks& callbacks);
/// The same of a machine that is open already.
[[nodiscard]] Result<LeasedMachine> lease_machine(const evidence::DataRoot& root,
                                                  const JobRequest& request,
                                                  std::unique_ptr<Machine> machine,
                                                  const JobCallbacks& callbacks);

[[nodiscard]] Result<JobOutcome> run_job(const evidence::DataRoot& root, const JobRequest& request,
                                         const JobCallbacks& callbacks);
[[nodiscard]] Result<JobPreview> preview_job(const evidence::DataRoot& root,
                                             const JobRequest& request,
                                             const JobCallbacks& callbacks);

/// How long a plan takes on the GPU, roughly.
[[nodiscard]] Seconds estimated_duration(const measure::Plan& plan);

} // namespace hebe::campaign
