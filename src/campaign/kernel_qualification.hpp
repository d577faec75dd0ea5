// Kernels from a specification to a qualification. In: points, candidates, a machine; out: findings
// with every artifact stored. Invariant: no meter is opened and no energy read; a candidate that
// the interpreter sees leave its buffers is never launched on a GPU.
#pragma once

#include "campaign/board_lease.hpp"
#include "campaign/frozen_job.hpp"
#include "campaign/scratch_folder.hpp"
#include "evidence/environment.hpp"
#include "qualify/record.hpp"
#include "qualify/trial.hpp"

#include <functional>

namespace hebe::campaign {

struct QualifyRequest {
  qualify::QualificationSpec spec;
  bool all_points = true; ///< else: the primary one
  MachineRequest machine;
  kernel::WorkerCommand worker;
  std::filesystem::path scratch;
  std::vector<std::string> argv; ///< as recorded
  evidence::Variables variables;
  bool redact = false;
};

struct QualifyCallbacks {
  std::function<bool()> interrupted;
  std::function<void(const std::string&)> notice; ///< one line for the log
};

/// Opens the machine, takes the lease of a real board, qualifies point after point. The JSON is the
/// record: to_json(spec, findings) with environment and when. Refuses where the baseline cannot be
/// compiled or has no reference; what is wrong with a candidate is a finding.
struct Qualified {
  qualify::Findings findings;
  Json record;
};
[[nodiscard]] Result<Qualified> qualify_kernels(const evidence::DataRoot& root,
                                                const QualifyRequest& request,
                                                const QualifyCallbacks& callbacks);

} // namespace hebe::campaign
