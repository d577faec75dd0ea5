#include "gpu/sim_device.hpp"

#include "gpu/sim_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hebe::gpu {
namespace {

struct SimKernel final : Kernel {
  Work work;
  FunctionalModel functional;
  std::unique_ptr<SimEngine> engine;                          ///< null: it cannot be interpreted
  std::vector<std::pair<DevicePointer, std::size_t>> buffers; ///< of buffer arguments, in order
  DevicePointer first_output = 0;
};
struct SimGraph final : Graph {
  Work work;
  std::uint32_t launches = 0; ///< of external work: its calls
  ExternalWork external;
};
struct SimEvent final : Event {
  Instant at;
};

thread_local SimDevice* called_for = nullptr; // while external work is called

} // namespace

DeviceInfo sim_device_info() {
  DeviceInfo info;
  info.name = "Hebe simulated GPU (H200-like)";
  info.uuid = "SIM-00000000-0000-0000-0000-000000000001";
  info.pci_bus_id = "sim:0";
  info.arch = 90;
  info.multiprocessors = 132;
  info.memory = {140ULL << 30};
  info.l2 = {60ULL << 20};
  info.shared_per_block_optin = {232448};
  info.driver = "simulated";
  info.simulated = true;
  return info;
}

Result<DevicePointer> SimDevice::allocate(Bytes size) {
  const auto pointer = next_;
  allocations_[pointer].resize(size.count);
  next_ += (size.count + 511) / 256 * 256;
  board_.open_context();
  return pointer;
}

void SimDevice::release(DevicePointer pointer) { allocations_.erase(pointer); }

Result<std::span<std::byte>> SimDevice::memory(DevicePointer pointer, std::size_t size) {
  auto it = allocations_.upper_bound(pointer);
  if (it != allocations_.begin()) {
    --it;
    const auto offset = pointer - it->first;
    if (offset + size <= it->second.size()) return std::span(it->second).subspan(offset, size);
  }
  return refuse(RefusalCode::internal, "simulated access outside every allocation");
}

Status SimDevice::write(DevicePointer to, std::span<const std::byte> from) {
  HEBE_TRY(auto target, memory(to, from.size()));
  std::memcpy(target.data(), from.data(), from.size());
  return {};
}

Status SimDevice::read(std::span<std::byte> to, DevicePointer from) {
  HEBE_TRY(auto source, memory(from, to.size()));
  std::memcpy(to.data(), source.data(), to.size());
  return {};
}

Status SimDevice::fill(DevicePointer to, std::byte value, Bytes size) {
  HEBE_TRY(auto target, memory(to, size.count));
  std::fill(target.begin(), target.end(), value);
  return {};
}

Result<std::unique_ptr<Kernel>> SimDevice::load(const KernelImage& image,
                                                const std::vector<DevicePointer>& buffers) {
  auto kernel = std::make_unique<SimKernel>();
  if (!image.ttgir.empty()) {
    const auto fusion = image.fp_fusion ? FpFusion::on : FpFusion::off;
    if (auto engine = SimEngine::make(*image.launch, std::string(image.ttgir), fusion))
      kernel->engine = *std::move(engine);
    else if (!image.functional)
      return std::unexpected(std::move(engine).error());
  }
  if (const auto& work = image.launch->work) {
    kernel->work.bytes = static_cast<double>(work->read.count + work->written.count);
    for (const auto& [kind, count] : work->operations) kernel->work.operations += count;
  } else if (!kernel->engine) {
    return refuse(
        RefusalCode::bad_spec,
        "case \"" + image.launch->name +
            "\" declares no work and cannot be interpreted: the simulated GPU cannot price it",
        "declare bytes and operations in the case (Work), or measure on a real GPU");
  }
  kernel->functional = image.functional;
  for (std::size_t next = 0; const auto& a : image.launch->arguments)
    if (a.is_buffer) kernel->buffers.emplace_back(buffers[next++], a.bytes().count);
  for (std::size_t next = 0; const auto& a : image.launch->arguments) {
    if (!a.is_buffer) continue;
    if (a.role != kernel::Role::in && kernel->first_output == 0)
      kernel->first_output = buffers[next];
    ++next;
  }
  board_.open_context();
  return kernel;
}

Result<Occupancy> SimDevice::occupancy(Kernel&) {
  return refuse(RefusalCode::driver_unavailable, "the simulated GPU has no registers to count");
}

Status SimDevice::launch_once(Kernel& kernel) {
  auto& k = static_cast<SimKernel&>(kernel);
  if (k.engine) {
    std::vector<std::span<std::byte>> spans;
    for (const auto& [pointer, size] : k.buffers) {
      HEBE_TRY(spans.emplace_back(), memory(pointer, size));
    }
    HEBE_CHECK(k.engine->run(spans));
    k.work = *k.engine->counted();
  } else if (k.functional) {
    HEBE_CHECK(k.functional());
  }
  clock().sleep_until(board_.enqueue(k.work, 1));
  if (k.first_output != 0 && board_.active(FaultKind::wrong_output, clock().now())) {
    HEBE_TRY(const auto byte, memory(k.first_output + 1, 1));
    byte[0] ^= std::byte{0x40};
  }
  return {};
}

Result<std::unique_ptr<Graph>> SimDevice::capture(Kernel& kernel, std::uint32_t launches) {
  auto graph = std::make_unique<SimGraph>();
  graph->work = static_cast<SimKernel&>(kernel).work;
  graph->launches = launches;
  return graph;
}

Result<std::unique_ptr<Event>> SimDevice::make_event() { return std::make_unique<SimEvent>(); }

Status SimDevice::replay(Graph& graph) {
  auto& g = static_cast<SimGraph&>(graph);
  if (!g.external) {
    board_.enqueue(g.work, g.launches);
    return {};
  }
  struct Calling { // also past an exception of the caller's
    explicit Calling(SimDevice* device) { called_for = device; }
    ~Calling() { called_for = nullptr; }
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;
  } const calling(this);
  for (std::uint32_t i = 0; i < g.launches; ++i) HEBE_CHECK(g.external(this));
  return {};
}

Result<std::unique_ptr<Graph>> SimDevice::external(ExternalWork work, std::uint32_t calls) {
  auto graph = std::make_unique<SimGraph>();
  graph->external = std::move(work);
  graph->launches = calls;
  board_.open_context();
  return graph;
}

// As bytes at the rate that takes so long, scaled to the energy that draws so much: the board's
// noise, heat and power cap act on it as on a kernel.
void SimDevice::enqueue_timed(std::span<const TimedWork> graph, std::uint32_t times, Seconds host) {
  const auto& m = board_.model();
  std::vector<Work> works;
  for (const auto& timed : graph) {
    auto& work = works.emplace_back();
    work.bytes = timed.each.value() * m.bandwidth;
    work.time_scale = timed.each / (timed.each + m.launch_overhead);
    work.energy_scale = timed.drawn.value() / (m.bandwidth * m.joules_per_byte);
  }
  if (host > Seconds(0)) clock().sleep_for(to_nanos(host));
  if (works.size() == 1) {
    board_.enqueue(works.front(), times);
  } else {
    for (std::uint32_t i = 0; i < times; ++i)
      for (const auto& work : works) board_.enqueue(work, 1);
  }
  await_room();
}

// A driver's queue is bounded by its entries and not by what they take: a full one makes the host
// wait, with the GPU busy. A graph is one entry, however many launches were captured into it.
void SimDevice::await_room() {
  constexpr std::size_t kRoom = 1024;
  queued_.push_back(board_.idle_from());
  if (queued_.size() > kRoom) clock().sleep_until(queued_.front());
  while (!queued_.empty() && queued_.front() <= clock().now()) queued_.pop_front();
}

Status enqueue_timed_work(void* stream, std::span<const TimedWork> graph, std::uint32_t times,
                          Seconds host) {
  constexpr double kLongest = 60, kMost = 1e4; // s, W
  const auto within = [](double x, double least, double most) {
    return std::isfinite(x) && x >= least && x <= most;
  };
  if (called_for == nullptr || stream != called_for)
    return refuse(RefusalCode::bad_argument,
                  "simulated work was called where nothing is measured on the simulated GPU",
                  "measure it: hebe.measure(work, device=\"sim\")", "stream");
  const auto wrong = std::ranges::find_if_not(graph, [&](const TimedWork& work) {
    return within(work.each.value(), 1e-9, kLongest) && within(work.drawn.value(), 0, kMost);
  });
  if (wrong != graph.end() || graph.empty() || !within(host.value(), 0, kLongest) || times == 0) {
    const auto shown = wrong != graph.end() ? *wrong : TimedWork{};
    return refuse(RefusalCode::bad_argument,
                  fmt::format("simulated work of {} s, {} W, {} s of the host, {} times",
                              shown.each.value(), shown.drawn.value(), host.value(), times),
                  fmt::format("give 1e-9 to {} s, 0 to {} W, at least once", kLongest, kMost),
                  "simulated work");
  }
  called_for->enqueue_timed(graph, times, host);
  return {};
}

Status SimDevice::record(Event& event) {
  static_cast<SimEvent&>(event).at = board_.idle_from();
  return {};
}

Status SimDevice::wait(Event& event) {
  clock().sleep_until(static_cast<SimEvent&>(event).at);
  return {};
}

Result<bool> SimDevice::reached(Event& event) {
  return clock().now() >= static_cast<SimEvent&>(event).at;
}

Result<Seconds> SimDevice::elapsed(Event& from, Event& to) {
  return to_seconds(static_cast<SimEvent&>(to).at - static_cast<SimEvent&>(from).at);
}

} // namespace hebe::gpu
