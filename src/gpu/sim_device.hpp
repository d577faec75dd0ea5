// The simulated GPU as a Device. In: the same calls as cuda; out: outputs from the kernel's TTGIR,
// interpreted, time and power from the board model, priced from what the interpreter counted.
// Invariant: a kernel that cannot be interpreted takes its outputs from the case's reference and
// its price from the declared work, and every record of such a run says so.
#pragma once

#include "gpu/device.hpp"
#include "gpu/sim_board.hpp"
#include "ttgir/counts.hpp"

#include <map>

namespace hebe::gpu {

class SimDevice final : public Device {
public:
  SimDevice(SimBoard& board, DeviceInfo info) : board_(board), info_(std::move(info)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] Clock& clock() override { return board_.clock(); }
  [[nodiscard]] Result<DevicePointer> allocate(Bytes size) override;
  void release(DevicePointer pointer) override;
  [[nodiscard]] Status write(DevicePointer to, std::span<const std::byte> from) override;
  [[nodiscard]] Status read(std::span<std::byte> to, DevicePointer from) override;
  [[nodiscard]] Status fill(DevicePointer to, std::byte value, Bytes size) override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>>
  load(const KernelImage& image, const std::vector<DevicePointer>& buffers) override;
  [[nodiscard]] Result<Occupancy> occupancy(Kernel& kernel) override;
  [[nodiscard]] Status launch_once(Kernel& kernel) override;
  [[nodiscard]] Result<std::unique_ptr<Graph>> capture(Kernel& kernel,
                                                       std::uint32_t launches) override;
  [[nodiscard]] Result<std::unique_ptr<Event>> make_event() override;
  [[nodiscard]] Status replay(Graph& graph) override;
  [[nodiscard]] Status record(Event& event) override;
  [[nodiscard]] Status wait(Event& event) override;
  [[nodiscard]] Result<bool> reached(Event& event) override;
  [[nodiscard]] Result<Seconds> elapsed(Event& from, Event& to) override;

  /// Before the first launch: also counts what each program loads again.
  static void count_rereads(Kernel& kernel);
  /// What the first launch of a kernel did; null where it was not interpreted.
  [[nodiscard]] static const ttgir::Counts* counts_of(const Kernel& kernel);

private:
  [[nodiscard]] Result<std::span<std::byte>> memory(DevicePointer pointer, std::size_t size);
  SimBoard& board_;
  DeviceInfo info_;
  std::map<DevicePointer, std::vector<std::byte>> allocations_;
  DevicePointer next_ = 0x7000'0000'0000;
};

/// The identity of the default simulated board.
[[nodiscard]] DeviceInfo sim_device_info();

} // namespace hebe::gpu
