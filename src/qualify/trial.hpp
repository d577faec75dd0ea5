// A kernel launched on one device and looked at. In: a compiled case, its oracle's outputs; out:
// checks with their evidence, and the bits of every output. Invariant: nothing is timed, no energy
// is read; the first check that fails in a way that makes the rest meaningless stops the trial, and
// the rest are not_run.
#pragma once

#include "qualify/check.hpp"
#include "qualify/launch_buffers.hpp"
#include "ttgir/counts.hpp"

#include <map>
#include <optional>

namespace hebe::qualify {

struct Trial {
  std::vector<Check> checks;
  Json outputs = Json::object(); ///< name to digest and errors against the oracle
  std::map<std::string, std::vector<std::byte>> bytes; ///< of every output
  Json occupancy = nullptr;            ///< as the driver says; null where there is none
  std::optional<ttgir::Counts> counts; ///< of the interpreter
  [[nodiscard]] bool passed() const;
};

/// On a GPU, named in every check. `launches`: how many from poisoned outputs, at least 2.
[[nodiscard]] Trial try_on_gpu(gpu::Device& device, const kernel::CompiledCase& compiled,
                               const ExpectedOutputs& expected, int launches);
/// On the simulated GPU, where two forms of one computation can be compared bit for bit: products
/// and sums are contracted there as the compiler does. It also sees every access outside of a
/// buffer, and counts.
[[nodiscard]] Trial try_in_interpreter(const kernel::CompiledCase& compiled,
                                       const ExpectedOutputs& expected, int launches);

/// The checks that a GPU would have made, not run.
[[nodiscard]] std::vector<Check> no_gpu_trial(const std::string& why);

/// Whether two kernels' outputs have the same bits: a check named "bits_equal" of `candidate`.
[[nodiscard]] Check compare_bits(const kernel::LaunchSpec& launch, const Trial& baseline,
                                 const Trial& candidate, const std::string& by);

} // namespace hebe::qualify
