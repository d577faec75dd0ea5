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
Status size_graph(gpu::Device& device, Arms& arms, std::size_t a, bool given, Seconds target,
                  const Make& make) {
  std::uint32_t launches = given ? arms.launches_per_replay[0] : 4;
  for (int round = 0; round < 3; ++round) { // a cold clock makes the first estimate too long
    HEBE_TRY(arms.graphs[a], make(launches));
    HEBE_TRY(arms.replay_time[a], time_graph(device, *arms.graphs[a]));
    arms.launches_per_replay[a] = launches;
    const double wanted = target / (arms.replay_time[a] / launches);
    if (arms.replay_time[a].value() <= 0)
      return refuse(RefusalCode::driver_call_failed, "a graph's events are 0 s apart",
                    "run `hebe doctor`", "cuEventElapsedTime");
    const auto next = static_cast<std::uint32_t>(
        std::clamp(std::round(wanted), 1.0, static_cast<double>(kMostLaunches)));
    if (given || std::abs(static_cast<double>(next) / launches - 1) < 0.2) break;
    if (round < 2) launches = next;
  }
  return {};
}

} // namespace

Result<Arms> prepare_arms(gpu::Device& device, std::array<gpu::Kernel*, 2> kernels, bool same_code,
                          Seconds target) {
  Arms arms;
  for (std::size_t a = 0; a < 2; ++a)
    HEBE_CHECK(size_graph(device, arms, a, same_code && a == 1, target,
                          [&](std::uint32_t n) { return device.capture(*kernels[a], n); }));
  return arms;
}

Result<Arms> prepare_external_arms(gpu::Device& device, const std::array<ExternalArm, 2>& external,
                                   bool same_code, Seconds target) {
  Arms arms;
  for (std::size_t a = 0; a < 2; ++a)
    HEBE_CHECK(size_graph(device, arms, a, same_code && a == 1, target,
                          [&](std::uint32_t n) { return device.external(external[a].work, n); }));
  for (std::size_t a = 0; a < 2; ++a) arms.launches_per_replay[a] *= external[a].launches_per_call;
  arms.external = true;
  return arms;
}

} // namespace hebe::measure
