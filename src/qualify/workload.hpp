// Two arms over one set of buffers. In: launch specs and cubins; out: loaded kernels, checked.
// Invariant: both arms read the same inputs and write the same outputs at the same addresses, so
// that only the code differs; a kernel that is wrong is never timed.
#pragma once

#include "qualify/launch_buffers.hpp"

#include <array>
#include <map>

namespace hebe::qualify {

class Workload {
public:
  /// Allocates, fills inputs and loads both arms, each with its own oracle's outputs. Their buffers
  /// must agree in name, type, shape and role; scalars and the order of arguments may differ.
  [[nodiscard]] static Result<Workload> make(gpu::Device& device,
                                             std::array<const kernel::CompiledCase*, 2> arms,
                                             std::array<const ExpectedOutputs*, 2> expected);

  /// Poisons the outputs and launches each arm twice: outputs against the arm's oracle, equal
  /// between the launches, every element written, inputs and canaries intact. wrong_output says
  /// which arm and where; so it does where `equal_arms` and the arms' outputs differ in a bit.
  [[nodiscard]] Result<Json> check(bool equal_arms = false);

  /// After the windows: inputs and canaries intact, outputs those of the check. wrong_output
  /// otherwise.
  [[nodiscard]] Status still_right();

  [[nodiscard]] std::array<gpu::Kernel*, 2> kernels() const {
    return {kernels_[0].get(), kernels_[1].get()};
  }
  [[nodiscard]] Json occupancy();

private:
  Workload(gpu::Device& device, std::array<const kernel::CompiledCase*, 2> arms,
           std::array<const ExpectedOutputs*, 2> expected, LaunchBuffers buffers)
      : device_(&device), arms_(arms), expected_(expected), buffers_(std::move(buffers)) {}
  [[nodiscard]] const kernel::LaunchSpec& launch() const { return arms_[0]->launch; }
  [[nodiscard]] Result<Json> arms_agree(bool required) const;

  gpu::Device* device_;
  std::array<const kernel::CompiledCase*, 2> arms_;
  std::array<const ExpectedOutputs*, 2> expected_;
  LaunchBuffers buffers_;
  std::array<std::unique_ptr<gpu::Kernel>, 2> kernels_;
  std::array<std::vector<std::string>, 2> checked_outputs_; ///< digests, per arm
};

/// Writes every input to `folder` as raw files (for the oracle) and returns name -> file and
/// name -> sha256 of its bytes.
struct InputFiles {
  std::map<std::string, std::filesystem::path> paths;
  Json digests = Json::object();
};
/// name -> sha256 of each input's bytes, with nothing written.
[[nodiscard]] Result<Json> input_digests(const kernel::LaunchSpec& launch);
[[nodiscard]] Result<InputFiles> write_inputs(const kernel::LaunchSpec& launch,
                                              const std::filesystem::path& folder);

} // namespace hebe::qualify
