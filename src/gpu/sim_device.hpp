// The simulated GPU as a Device. In: the same calls as cuda; out: outputs from the kernel's TTGIR,
// interpreted as it is compiled (products and sums contracted), time and power from the board
// model, priced from what the interpreter counted. Invariant: a kernel that cannot be interpreted
// takes its outputs from the case's reference and its price from the declared work, and every
// record of such a run says so.
#pragma once

#include "gpu/device.hpp"
#include "gpu/sim_board.hpp"

#include <deque>
#include <map>

namespace hebe::gpu {

/// A launch that takes `each` and draws `drawn` beyond the board's static power.
struct TimedWork {
  Seconds each{0};
  Watts drawn{0};
};

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
  [[nodiscard]] Result<std::unique_ptr<Graph>> external(ExternalWork work,
                                                        std::uint32_t calls) override;
  /// For external work, while it is called: all of `graph` in its order, `times` times, after the
  /// host has spent `host` on the call. It is one entry of the driver's queue.
  void enqueue_timed(std::span<const TimedWork> graph, std::uint32_t times, Seconds host);
  [[nodiscard]] Result<std::unique_ptr<Event>> make_event() override;
  [[nodiscard]] Status replay(Graph& graph) override;
  [[nodiscard]] Status record(Event& event) override;
  [[nodiscard]] Status wait(Event& event) override;
  [[nodiscard]] Result<bool> reached(Event& event) override;
  [[nodiscard]] Result<Seconds> elapsed(Event& from, Event& to) override;

private:
  [[nodiscard]] Result<std::span<std::byte>> memory(DevicePointer pointer, std::size_t size);
  void await_room();
  SimBoard& board_;
  DeviceInfo info_;
  std::deque<Instant> queued_; ///< when each entry of external work is done
  std::map<DevicePointer, std::vector<std::byte>> allocations_;
  DevicePointer next_ = 0x7000'0000'0000;
};

/// enqueue_timed() by the handle that external work was called with, on its thread and during its
/// call; bad_argument otherwise, and for a time or power that no work has.
[[nodiscard]] Status enqueue_timed_work(void* stream, std::span<const TimedWork> graph,
                                        std::uint32_t times, Seconds host);

/// The identity of the default simulated board.
[[nodiscard]] DeviceInfo sim_device_info();

} // namespace hebe::gpu
