// What the installed Triton can take back, tried on one kernel. In: a case; out: every way with
// what came of it, and whether rewriting TTGIR can be relied on. Invariant: nothing is downloaded
// or built: the programs that were started and the connections that were tried are in the record.
#pragma once

#include "campaign/kernel_session.hpp"

namespace hebe::campaign {

struct PipelineProbeRequest {
  kernel::CaseRequest subject;
  kernel::WorkerCommand worker;
  std::filesystem::path scratch;
  evidence::Variables variables;
  bool redact = false;
};

struct PipelineProbe {
  Json record; ///< schema hebe.qualification.toolchain/1
  bool qualified = false;
};
[[nodiscard]] Result<PipelineProbe> probe_pipeline(const evidence::DataRoot& root,
                                                   const PipelineProbeRequest& request);

} // namespace hebe::campaign
