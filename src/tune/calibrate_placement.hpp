// hebe calibrate placement: one reference operation measured on every member that was asked for.
// In: members, sizes, a machine; out: a placement. Invariant: the work is known to have run and to
// be right before it is timed; one member that was not measured is a refusal of the whole, and
// nothing is written here.
#pragma once

#include "campaign/job.hpp"
#include "tune/host_meter.hpp"
#include "tune/placement.hpp"
#include "tune/prepared_shape.hpp"

namespace hebe::tune {

struct CalibrationRequest {
  std::vector<std::string> members; ///< "cpu", "triton", "cublaslt"
  kernel::CaseRequest subject;      ///< of "triton", and what "cublaslt" is checked against
  std::int64_t m = 256, n = 4096, k = 4096;
  std::string dtype = "fp16";                  ///< of the GPU's members; the CPU multiplies fp32
  std::vector<std::filesystem::path> packages; ///< where libraries may lie (site-packages)
  std::filesystem::path openblas, cublaslt;    ///< a library's file; empty: looked for
  Seconds idle{2}, window{1}, warm_up{5};
  int windows = 5;
  /// Opens what meters the host over such windows; empty: the kernel's RAPL counters.
  std::function<Result<HostMeter>(const HostWindows&)> host_meter;
  campaign::JobRequest job; ///< machine, worker, scratch, whether the board's UUID is redacted
  std::string not_written;  ///< the file that a refusal keeps from being written
};

/// The refusal of a member that has no figure, named. What a member cannot do here is no wrong
/// usage: a code that would say so becomes toolchain_unavailable.
[[nodiscard]] Refusal without_figure(const std::string& member, Refusal why);

[[nodiscard]] Result<Placement> calibrate_placement(const evidence::DataRoot& root,
                                                    const CalibrationRequest& request,
                                                    const campaign::JobCallbacks& callbacks);

} // namespace hebe::tune
