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

[[nodiscard]] Result<JobOutcome> run_job(const evidence::DataRoot& root, const JobRequest& request,
                                         const JobCallbacks& callbacks);
[[nodiscard]] Result<JobPreview> preview_job(const evidence::DataRoot& root,
                                             const JobRequest& request,
                                             const JobCallbacks& callbacks);

/// How long a plan takes on the GPU, roughly.
[[nodiscard]] Seconds estimated_duration(const measure::Plan& plan);

} // namespace hebe::campaign
