// One job from request to sealed run. In: a case, a protocol, a machine; out: the sealed record and
// its analysis. Invariant: everything that can be refused is refused before the first write of a
// record.
#pragma once

#include "campaign/lease.hpp"
#include "campaign/machine.hpp"
#include "evidence/environment.hpp"
#include "evidence/sealed_run.hpp"
#include "kernel/compiled_case.hpp"
#include "measure/experiment.hpp"

#include <functional>

namespace hebe::campaign {

struct JobRequest {
  std::string kind = "aa";
  kernel::CaseRequest subject;
  measure::Tier tier;
  int pairs = 0;
  Seconds window{0}, warm_up{0};
  std::optional<std::uint64_t> seed; ///< none: random when measured, 0 when simulated
  measure::Margins margins;
  MachineRequest machine;
  kernel::WorkerCommand worker;
  std::filesystem::path scratch; ///< for inputs and oracle outputs; removed afterwards
  std::vector<std::string> argv; ///< as recorded
  evidence::Variables variables;
  bool redact = false;
};

struct JobCallbacks {
  std::function<bool()> interrupted;
  std::function<void(const measure::Progress&)> progress;
  std::function<void(const std::string&)> notice; ///< one line for the log
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

} // namespace hebe::campaign
