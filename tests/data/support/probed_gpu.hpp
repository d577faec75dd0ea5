// A simulated GPU whose sources have been recorded. In: a seed, faults; out: the recording that a
// probe of it makes. Invariant: no Python, no files, no real time.
#pragma once

#include "measure/response_probe.hpp"

#include "sim_gpu.hpp"

namespace hebe::test {

/// Calls `record` with callbacks that open the device and load one kernel.
template <class Record>
Result<measure::Recording> with_kernel(gpu::SimBoard& board, gpu::SimDevice& device,
                                       Record&& record) {
  std::vector<gpu::DevicePointer> buffers;
  std::unique_ptr<gpu::Kernel> kernel;
  const auto launch = kernel::LaunchSpec::from_json(vector_launch(1024, 1e8), "test").value();
  const measure::ProbeCallbacks callbacks{
      [] { return Status{}; },
      {},
      [&]() -> Result<std::pair<gpu::Device*, gpu::Kernel*>> {
        board.open_context();
        for (int i = 0; i < 3; ++i) buffers.push_back(device.allocate({4 * 1024}).value());
        HEBE_TRY(kernel, device.load({&launch, {}, {}, {}}, buffers));
        return std::pair<gpu::Device*, gpu::Kernel*>{&device, kernel.get()};
      }};
  return record(callbacks);
}

inline Result<measure::Recording> probe(gpu::SimBoard& board, gpu::SimDevice& device,
                                        meter::SimMeter& meter,
                                        const measure::ProbeSchedule& schedule = {}) {
  return with_kernel(board, device, [&](const measure::ProbeCallbacks& callbacks) {
    return measure::record_sources(meter, meter.sources(), board.clock(), schedule, callbacks);
  });
}

inline Result<measure::Recording> probe_response(gpu::SimBoard& board, gpu::SimDevice& device,
                                                 meter::SimMeter& meter,
                                                 const measure::ResponseSchedule& schedule = {}) {
  return with_kernel(board, device, [&](const measure::ProbeCallbacks& callbacks) {
    return measure::record_response(meter, meter.sources(), board.clock(), schedule, callbacks);
  });
}

inline measure::Recording probed(std::uint64_t seed = 1,
                                 std::initializer_list<const char*> faults = {}) {
  VirtualClock clock;
  gpu::SimBoard board(clock, {}, seed, faults_from(faults));
  gpu::SimDevice device(board, gpu::sim_device_info());
  meter::SimMeter meter(board, device.info());
  return probe(board, device, meter).value();
}

} // namespace hebe::test
