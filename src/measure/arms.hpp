// Two loaded arms, ready to be timed. In: kernels on a device; out: one graph an arm, of a length
// fixed once from the measured latency. Invariant: after this nothing about an arm changes.
#pragma once

#include "gpu/device.hpp"

#include <array>
#include <optional>

namespace hebe::measure {

struct Arms {
  std::array<std::unique_ptr<gpu::Graph>, 2> graphs;
  std::array<std::uint32_t, 2> launches_per_replay{};
  std::array<Seconds, 2> replay_time{}; ///< as calibrated
  /// Each replay is enqueued call by call by somebody else's code, which may be too slow to keep
  /// the GPU busy.
  bool external = false;
  std::array<std::uint32_t, 2> launches_per_call{1, 1}; ///< of external work

  /// Device time of one call of external work, by arm.
  [[nodiscard]] std::array<Seconds, 2> call_times() const {
    std::array<Seconds, 2> out{};
    for (std::size_t a = 0; a < 2; ++a)
      out[a] = replay_time[a] * launches_per_call[a] / launches_per_replay[a];
    return out;
  }
};

/// One kernel's graph, sized.
struct SizedGraph {
  std::unique_ptr<gpu::Graph> graph;
  std::uint32_t launches = 0;
  Seconds replay_time{0}; ///< as calibrated
};

/// Lasts about `target`, or has `launches` of them where that is given.
[[nodiscard]] Result<SizedGraph> size_graph(gpu::Device& device, gpu::Kernel& kernel,
                                            std::optional<std::uint32_t> launches = {},
                                            Seconds target = Seconds(0.025));

/// Sizes each arm's graph to last about `target`: long beside the host's pauses, short beside a
/// window. `same_code`: both arms are one cubin, and then get one length, so that nothing differs
/// between them.
[[nodiscard]] Result<Arms> prepare_arms(gpu::Device& device, std::array<gpu::Kernel*, 2> kernels,
                                        bool same_code, Seconds target = Seconds(0.025));

/// The same of external work; one call of it is `launches_per_call` of what is counted.
struct ExternalArm {
  gpu::ExternalWork work;
  std::uint32_t launches_per_call = 1;
};
[[nodiscard]] Result<Arms> prepare_external_arms(gpu::Device& device,
                                                 const std::array<ExternalArm, 2>& arms,
                                                 bool same_code, Seconds target = Seconds(0.025));

} // namespace hebe::measure
