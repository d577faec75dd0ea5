// Kernels from a specification to a qualification. In: points, candidates, a machine; out: findings
// and the record (schema hebe.qualification.kernel/1). Invariant: chosen before any energy is
// known.
#pragma once

#include "campaign/kernel_session.hpp"

namespace hebe::campaign {

struct QualifyRequest : KernelSessionRequest {
  qualify::QualificationSpec spec;
  bool all_points = true; ///< else: the primary one
};

struct Qualified {
  qualify::Findings findings;
  Json record;
};
[[nodiscard]] Result<Qualified> qualify_kernels(const evidence::DataRoot& root,
                                                const QualifyRequest& request,
                                                const KernelCallbacks& callbacks);

} // namespace hebe::campaign
