// Keeps the GPU busy. In: which arm to replay next; out: one completion after another, each with
// its time on the device and on the host. Invariant: a fixed number of graphs is always queued, so
// neither the GPU starves nor does the host block at the driver's launch queue.
#pragma once

#include "gpu/device.hpp"

#include <array>
#include <deque>

namespace hebe::measure {

struct Completion {
  int arm = 0;
  Seconds since_previous{0}; ///< device time from the previous completion (0 for the very first)
  Instant at;                ///< host time at which it was seen
};

class ReplayStream {
public:
  /// Graphs in flight. At about 25 ms each they outlast every pause of the host by far.
  static constexpr std::size_t kDepth = 6;

  [[nodiscard]] static Result<ReplayStream> make(gpu::Device& device,
                                                 std::array<gpu::Graph*, 2> graphs);

  [[nodiscard]] Status enqueue(int arm);
  [[nodiscard]] std::size_t in_flight() const { return queue_.size(); }
  [[nodiscard]] bool full() const { return queue_.size() >= kDepth; }
  /// Waits for the oldest replay. Something must be in flight.
  [[nodiscard]] Result<Completion> complete();
  /// Whether the device has come to the end of what is queued, but for the last replay: it then
  /// waits for the host. Asked before complete(), with the queue full.
  [[nodiscard]] Result<bool> running_dry();
  /// Waits for all; the GPU idles afterwards.
  [[nodiscard]] Status drain();

private:
  explicit ReplayStream(gpu::Device& device) : device_(&device) {}
  gpu::Device* device_;
  std::array<gpu::Graph*, 2> graphs_{};
  std::vector<std::unique_ptr<gpu::Event>> events_;
  std::vector<gpu::Event*> free_;
  struct InFlight {
    int arm;
    gpu::Event* done;
  };
  std::deque<InFlight> queue_;
  gpu::Event* previous_ = nullptr;
};

} // namespace hebe::measure
