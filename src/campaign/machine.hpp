// One GPU with its clock and its meter, real or simulated. In: a selector; out: the three,
// belonging together. Invariant: CUDA device and meter are the same board, by UUID and PCI id.
#pragma once

#include "gpu/sim_device.hpp"
#include "meter/board_meter.hpp"

#include <memory>
#include <optional>

namespace hebe::campaign {

struct MachineRequest {
  std::string selector = "auto"; ///< auto | sim | sim:<n> | <uuid> | <unique beginning of one> |
                                 ///< <pci id> | <index in PCI order>
  std::uint64_t seed = 0;        ///< of the simulated board
  gpu::BoardModel model;
  std::vector<gpu::Fault> faults;
  /// The caller's CUDA stream, for work that the caller enqueues; `auto` is then the GPU whose
  /// context is current. None: a stream of our own.
  std::optional<void*> stream{};
};

/// One of the devices that CUDA shows (CUDA_VISIBLE_DEVICES may hide some): auto is the first in
/// PCI order; by index in that order, UUID, the unique beginning of one, or PCI id. no_device lists
/// what is there.
[[nodiscard]] Result<gpu::DeviceInfo> choose_device(std::vector<gpu::DeviceInfo> devices,
                                                    const std::string& selector);

class Machine {
public:
  /// `auto` falls back to the simulated GPU when there is no driver or no device; why() says so.
  [[nodiscard]] static Result<std::unique_ptr<Machine>> open(const MachineRequest& request);
  /// A board that somebody else found: its clock, identity, meter and, if it is to run anything,
  /// its device (which must be of that clock).
  [[nodiscard]] static std::unique_ptr<Machine> of_parts(std::unique_ptr<Clock> clock,
                                                         gpu::DeviceInfo info,
                                                         std::unique_ptr<meter::BoardMeter> meter,
                                                         std::unique_ptr<gpu::Device> device = {});
  /// Creates the device's context. After this our own process is on the GPU.
  [[nodiscard]] Result<gpu::Device*> device();

  [[nodiscard]] const gpu::DeviceInfo& info() const { return info_; }
  [[nodiscard]] Clock& clock() const { return *clock_; }
  [[nodiscard]] meter::BoardMeter& meter() const { return *meter_; }
  [[nodiscard]] bool simulated() const { return board_ != nullptr; }
  [[nodiscard]] const gpu::SimBoard* sim_board() const { return board_.get(); }
  /// Changes with every start of the machine.
  [[nodiscard]] Result<std::string> boot() const;
  /// The driver that the board's numbers come through.
  [[nodiscard]] std::string driver() const {
    return meter_->board().driver + " (CUDA " + info_.driver + ")";
  }
  /// Memory that a case's buffers may take: the GPU's, or half the host's where it is simulated.
  [[nodiscard]] Bytes memory() const;
  [[nodiscard]] const std::string& why() const {
    return why_;
  } ///< why simulated under `auto`, or empty

private:
  Machine() = default;
  [[nodiscard]] Status make_sim(const MachineRequest& request);
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<gpu::SimBoard> board_;
  gpu::DeviceInfo info_;
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<meter::BoardMeter> meter_;
  std::string why_;
  std::optional<void*> stream_;
};

} // namespace hebe::campaign
