// Real kernels looked at, one after the other. In: cases, a machine; out: of each what it moves and
// moves twice, whether it is right, and what the passes make of it (schema hebe.recon/1).
// Invariant: what is not installed here is said and no failure; no energy is read.
#pragma once

#include "campaign/kernel_session.hpp"
#include "qualify/recon_spec.hpp"

namespace hebe::campaign {

struct ReconRequest : KernelSessionRequest {
  qualify::ReconSpec spec;
  std::set<std::string> groups; ///< empty: all
};

struct Recon {
  Json record;
  bool all_right = false; ///< every case that is installed compiled and computes what it should
};
[[nodiscard]] Result<Recon> recon_kernels(const evidence::DataRoot& root,
                                          const ReconRequest& request,
                                          const KernelCallbacks& callbacks);

/// What recon tries on a kernel that loads bytes again: the passes that its opportunities name, and
/// the loads hoisted with their loops kept.
[[nodiscard]] std::vector<qualify::Candidate> candidates_for(const qualify::PointResult& point);

} // namespace hebe::campaign
