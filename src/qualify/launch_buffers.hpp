// The memory of a launch on a device. In: a launch spec; out: a guarded buffer for each buffer
// argument, filled, poisoned, read back. Invariant: inputs are the same bytes on every machine, and
// outputs hold nothing of an earlier launch when a kernel begins.
#pragma once

#include "core/json.hpp"
#include "gpu/guarded_buffer.hpp"
#include "kernel/compiled_case.hpp"

#include <functional>
#include <map>

namespace hebe::qualify {

/// What a device loads of a compiled case, which must outlive it. `functional`: what the simulated
/// GPU does where it cannot interpret the case.
[[nodiscard]] gpu::KernelImage image_of(const kernel::CompiledCase& compiled,
                                        gpu::FunctionalModel functional);

using ExpectedOutputs = std::map<std::string, kernel::ReferenceOutput>;

class LaunchBuffers {
public:
  /// Allocates and fills the inputs. `launch` must outlive this.
  [[nodiscard]] static Result<LaunchBuffers> make(gpu::Device& device,
                                                  const kernel::LaunchSpec& launch);

  /// One a buffer argument, in order.
  [[nodiscard]] std::vector<gpu::DevicePointer> pointers() const;
  /// Fills every output with `value`, and every inout buffer with its input again.
  [[nodiscard]] Status poison(std::byte value);
  /// wrong_output, naming buffer and side.
  [[nodiscard]] Status canaries_intact() const;
  /// wrong_output, naming the input.
  [[nodiscard]] Status inputs_intact() const;
  /// Every output (role out or inout), in order.
  [[nodiscard]] std::vector<std::string> output_names() const;
  /// Of every output, in order.
  [[nodiscard]] Result<std::vector<std::string>> output_digests() const;
  [[nodiscard]] Result<std::vector<std::byte>> output_bytes(const std::string& name) const;
  /// Against the oracle, within the tolerance of `own`; wrong_output names the arm, the output and
  /// the first wrong element. Returns what was found, by output.
  [[nodiscard]] Result<Json> check_outputs(const kernel::LaunchSpec& own,
                                           const ExpectedOutputs& expected,
                                           const std::string& arm) const;
  /// What the simulated GPU does where it cannot interpret: writes the oracle's outputs.
  [[nodiscard]] static gpu::FunctionalModel
  functional_model(gpu::Device& device, const kernel::LaunchSpec& launch,
                   const ExpectedOutputs& expected,
                   const std::vector<gpu::DevicePointer>& pointers);

private:
  using Use = std::function<Status(const kernel::Argument&, const gpu::GuardedBuffer&)>;
  LaunchBuffers(gpu::Device& device, const kernel::LaunchSpec& launch)
      : device_(&device), launch_(&launch) {}
  [[nodiscard]] Status each(const Use& use) const;
  [[nodiscard]] Status fill_inputs(bool only_inout);

  gpu::Device* device_;
  const kernel::LaunchSpec* launch_;
  std::vector<gpu::GuardedBuffer> buffers_;
};

} // namespace hebe::qualify
