#include "measure/arms.hpp"

#include <algorithm>
#include <cmath>

namespace hebe::measure {
namespace {

constexpr std::uint32_t kMostLaunches =
    16'384; // nodes of a graph: beyond, instantiation takes seconds

// Device time of one replay, the second of two: the first pays for loading.
Result<Seconds> time_graph(gpu::Device& device, gpu::Graph& graph) {
  HEBE_TRY(auto begin, device.make_event());
  HEBE_TRY(auto end, device.make_event());
  HEBE_CHECK(device.replay(graph));
  HEBE_CHECK(device.record(*begin));
  HEBE_CHECK(device.replay(graph));
  HEBE_CHECK(device.record(*end));
  HEBE_CHECK(device.wait(*end));
  return device.elapsed(*begin, *end);
}

// Finds how many launches (or calls) fill a graph of about `target`. `make` makes one of so many.
template <class Make>
Result<SizedGraph> sized(gpu::Device& device, std::optional<std::uint32_t> given, Seconds target,
                         const Make& make) {
  SizedGraph out;
  std::uint32_t launches = given.value_or(4);
  for (int round = 0; round < 3; ++round) { // a cold clock makes the first estimate too long
    HEBE_TRY(out.graph, make(launches));
    HEBE_TRY(out.replay_time, time_graph(device, *out.graph));
    out.launches = launches;
    const double wanted = target / (out.replay_time / launches);
    if (out.replay_time.value() <= 0)
      return refuse(RefusalCode::driver_call_failed, "a graph's events are 0 s apart",
                    "run `hebe doctor`", "cuEventElapsedTime");
    const auto next = static_cast<std::uint32_t>(
        std::clamp(std::round(wanted), 1.0, static_cast<double>(kMostLaunches)));
    if (given || std::abs(static_cast<double>(next) / launches - 1) < 0.2) break;
    if (round < 2) launches = next;
  }
  return out;
}

// `make(a)` sizes arm a's graph as given, if it is given.
template <class Make> Result<Arms> both(bool same_code, const Make& make) {
  Arms arms;
  for (std::size_t a = 0; a < 2; ++a) {
    std::optional<std::uint32_t> given;
    if (same_code && a == 1) given = arms.launches_per_replay[0];
    HEBE_TRY(auto one, make(a, given));
    arms.graphs[a] = std::move(one.graph);
    arms.launches_per_replay[a] = one.launches;
    arms.replay_time[a] = one.replay_time;
  }
  return arms;
}

} // namespace

Result<SizedGraph> size_graph(gpu::Device& device, gpu::Kernel& kernel,
                              std::optional<std::uint32_t> given, Seconds target) {
  return sized(device, given, target, [&](std::uint32_t n) { return device.capture(kernel, n); });
}

Result<Arms> prepare_arms(gpu::Device& device, std::array<gpu::Kernel*, 2> kernels, bool same_code,
                          Seconds target) {
  return both(same_code, [&](std::size_t a, std::optional<std::uint32_t> given) {
    return size_graph(device, *kernels[a], given, target);
  });
}

Result<Arms> prepare_external_arms(gpu::Device& device, const std::array<ExternalArm, 2>& external,
                                   bool same_code, Seconds target) {
  HEBE_TRY(auto arms, both(same_code, [&](std::size_t a, std::optional<std::uint32_t> given) {
             return sized(device, given, target, [&](std::uint32_t calls) {
               return device.external(external[a].work, calls);
             });
           }));
  for (std::size_t a = 0; a < 2; ++a) {
    arms.launches_per_call[a] = external[a].launches_per_call;
    arms.launches_per_replay[a] *= external[a].launches_per_call;
  }
  arms.external = true;
  return arms;
}

} // namespace hebe::measure
