// A GPU that runs kernels: modules, memory, graphs, events, occupancy. Two implementations: cuda
// (the driver, by dlopen) and sim. Invariant: work runs in the order it was enqueued, on one
// stream; every wait goes through the device's clock, so the same loop drives real and simulated
// time.
#pragma once

#include "core/clock.hpp"
#include "core/result.hpp"
#include "core/units.hpp"
#include "kernel/launch_spec.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hebe::gpu {

using DevicePointer = std::uint64_t;

struct DeviceInfo {
  std::string name, uuid, pci_bus_id; ///< "GPU-…", "0000:3b:00.0" in lower case
  int arch = 0;                       ///< compute capability x 10
  int multiprocessors = 0;
  Bytes memory, l2, shared_per_block_optin;
  std::string driver; ///< CUDA version the driver offers, "13.0"
  bool simulated = false;
};

/// What sim does where it cannot interpret the kernel: fills the outputs from the oracle's. On a
/// real device it is never called.
using FunctionalModel = std::function<Status()>;

/// Enqueues work that somebody else brings, asynchronously. `stream` is the handle of the device's
/// stream: of cuda the driver's, of sim what enqueue_timed_work() takes.
using ExternalWork = std::function<Status(void* stream)>;

struct KernelImage {
  const kernel::LaunchSpec* launch = nullptr;
  std::string_view cubin;
  std::string_view ttgir;             ///< what sim interprets; empty: there is none
  FunctionalModel functional;         ///< where it cannot be
  kernel::LibraryCall library_call{}; ///< in the place of the cubin
  bool fp_fusion = true;              ///< how the cubin was made: sim contracts products and sums
};

/// A loaded kernel with its parameters bound.
class Kernel {
public:
  virtual ~Kernel() = default;
};
/// n launches of one kernel, or n calls of external work, to be replayed as one unit.
class Graph {
public:
  virtual ~Graph() = default;
};
/// A point in the device's stream.
class Event {
public:
  virtual ~Event() = default;
};

struct Occupancy {
  int registers = 0, local_bytes = 0, static_shared_bytes = 0, max_threads_per_block = 0;
  int blocks_per_multiprocessor = 0;
};

class Device {
public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  [[nodiscard]] virtual Clock& clock() = 0;

  [[nodiscard]] virtual Result<DevicePointer> allocate(Bytes size) = 0;
  virtual void release(DevicePointer pointer) = 0;
  [[nodiscard]] virtual Status write(DevicePointer to, std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual Status read(std::span<std::byte> to, DevicePointer from) = 0;
  [[nodiscard]] virtual Status fill(DevicePointer to, std::byte value, Bytes size) = 0;

  /// Loads with Triton's own settings and checks the parameter list against the cubin
  /// (abi_mismatch) before anything can be launched.
  [[nodiscard]] virtual Result<std::unique_ptr<Kernel>>
  load(const KernelImage& image, const std::vector<DevicePointer>& buffers) = 0;
  [[nodiscard]] virtual Result<Occupancy> occupancy(Kernel& kernel) = 0;
  /// One launch, complete when it returns. For checks, never for timing.
  [[nodiscard]] virtual Status launch_once(Kernel& kernel) = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<Graph>> capture(Kernel& kernel,
                                                               std::uint32_t launches) = 0;
  /// A replay of it calls `work` so often, on the thread that replays; a call that refuses ends the
  /// replay, with what was enqueued before still in flight.
  [[nodiscard]] virtual Result<std::unique_ptr<Graph>> external(ExternalWork work,
                                                                std::uint32_t calls) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Event>> make_event() = 0;
  [[nodiscard]] virtual Status replay(Graph& graph) = 0; ///< asynchronous
  [[nodiscard]] virtual Status record(Event& event) = 0; ///< asynchronous
  [[nodiscard]] virtual Status wait(Event& event) = 0;   ///< sleeps, does not spin
  [[nodiscard]] virtual Result<bool> reached(Event& event) = 0;
  [[nodiscard]] virtual Result<Seconds> elapsed(Event& from, Event& to) = 0; ///< both reached
};

} // namespace hebe::gpu
