// What the simulated GPU executes: a kernel's TTGIR, interpreted. In: a launch spec, the text, the
// memory behind its buffers; out: the buffers as the compiled kernel leaves them, and what the
// launch moved and computed. Invariant: a kernel with an operation that is not understood has no
// engine; nothing is half run. What a load has to find out is found out once, not with each launch.
#pragma once

#include "gpu/sim_board.hpp"
#include "kernel/launch_spec.hpp"
#include "ttgir/counts.hpp"
#include "ttgir/ir.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hebe::gpu {

/// Whether the kernel is compiled so that a product and a sum may be rounded once (Triton's option
/// enable_fp_fusion). On: they are, where LLVM and ptxas do so (rewrite/contraction.hpp), which is
/// what runs; off: as the text has them.
enum class FpFusion : std::uint8_t { off, on };

class SimEngine {
public:
  /// Refuses a text whose function does not take the launch's arguments (abi_mismatch) or has an
  /// operation that cannot be interpreted, by its name and line.
  [[nodiscard]] static Result<std::unique_ptr<SimEngine>> make(const kernel::LaunchSpec& launch,
                                                               std::string ttgir, FpFusion fusion);

  /// One launch. `buffers`: the bytes of each buffer argument, in order.
  [[nodiscard]] Status run(const std::vector<std::span<std::byte>>& buffers);
  /// What the first launch did: bytes of global memory loaded and stored, floating-point operations
  /// (a multiply-add of a product is two). Known after one run.
  [[nodiscard]] const std::optional<Work>& counted() const { return counted_; }
  /// Has the first launch counted with the bytes that a program loads again (slower).
  void count_rereads() { rereads_ = true; }
  /// The same in full.
  [[nodiscard]] const std::optional<ttgir::Counts>& counts() const { return counts_; }

private:
  SimEngine(const kernel::LaunchSpec& launch, std::unique_ptr<ttgir::Module> module)
      : launch_(launch), module_(std::move(module)) {}
  kernel::LaunchSpec launch_;
  std::unique_ptr<ttgir::Module> module_;
  std::optional<Work> counted_;
  std::optional<ttgir::Counts> counts_;
  bool rereads_ = false;
};

} // namespace hebe::gpu
