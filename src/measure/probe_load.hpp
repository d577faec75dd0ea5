// Load on demand: pulses of a wanted length, enqueued and not waited for. In: a prepared kernel;
// out: pulses, and afterwards the host times of their edges. Invariant: nothing is allocated on the
// board, no clock or limit is touched; the host stays free to read meters meanwhile.
#pragma once

#include "gpu/device.hpp"
#include "measure/source_recording.hpp"

#include <deque>

namespace hebe::measure {

/// The board was loaded in [begin, end), host monotonic time.
struct Pulse {
  std::int64_t begin_ns = 0, end_ns = 0;
};

class ProbeLoad {
public:
  /// `fine`: the shortest piece that pulses are made of.
  [[nodiscard]] static Result<ProbeLoad> make(gpu::Device& device, gpu::Kernel& kernel,
                                              Seconds fine = Seconds(0.0025));

  /// Behind what is queued; whole pieces, at least one. Returns the length that was enqueued.
  [[nodiscard]] Result<Seconds> pulse(Seconds length);
  /// Pulses that have not ended yet; resolves the edges of those that have.
  [[nodiscard]] Result<std::size_t> in_flight();
  /// Sleeps until all have ended.
  [[nodiscard]] Status drain();
  [[nodiscard]] const std::vector<Pulse>& pulses() const { return done_; }

private:
  struct Pending {
    std::int64_t enqueued_ns;
    bool from_idle;
    std::unique_ptr<gpu::Event> begin, end;
  };
  explicit ProbeLoad(gpu::Device& device) : device_(&device) {}
  [[nodiscard]] Status resolve();
  gpu::Device* device_;
  std::unique_ptr<gpu::Graph> fine_, coarse_;
  Seconds fine_time_{0}, coarse_time_{0};
  std::deque<Pending> pending_;
  std::unique_ptr<gpu::Event> last_end_;
  std::vector<Pulse> done_;
};

} // namespace hebe::measure
