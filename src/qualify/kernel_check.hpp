// Is one loaded kernel right, on buffers that it shares with others? In: the kernel, its launch,
// the outputs that it must have; out: what was found, and the digests of its outputs. Invariant:
// what is timed afterwards was launched twice from poisoned outputs and gave the same bits.
#pragma once

#include "qualify/launch_buffers.hpp"

namespace hebe::qualify {

struct CheckedOutputs {
  Json outputs;                     ///< by name: what check_outputs found, and the sha256
  std::vector<std::string> digests; ///< of every output, in the buffers' order
};

/// wrong_output: outputs against `expected` within `own`'s tolerance, equal between two launches,
/// every element written, inputs and canaries intact. bad_spec: it changes its own input. `who`
/// names the kernel in refusals.
[[nodiscard]] Result<CheckedOutputs> check_kernel(gpu::Device& device, LaunchBuffers& buffers,
                                                  gpu::Kernel& kernel,
                                                  const kernel::LaunchSpec& own,
                                                  const ExpectedOutputs& expected,
                                                  const std::string& who);

/// For each buffer argument of `b`, in its order, which one of `a` it is; bad_spec where the two do
/// not take the same buffers.
[[nodiscard]] Result<std::vector<std::size_t>> same_buffers(const kernel::LaunchSpec& a,
                                                            const kernel::LaunchSpec& b);

} // namespace hebe::qualify
