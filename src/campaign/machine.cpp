#include "campaign/machine.hpp"

#include "gpu/cuda_device.hpp"
#include "meter/nvml_meter.hpp"
#include "meter/sim_meter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace hebe::campaign {
namespace {

Result<gpu::DeviceInfo> choose(std::vector<gpu::DeviceInfo> devices, const std::string& selector) {
  std::sort(devices.begin(), devices.end(),
            [](auto& a, auto& b) { return a.pci_bus_id < b.pci_bus_id; });
  std::size_t index = devices.size();
  const auto [end, ec] = std::from_chars(selector.data(), selector.data() + selector.size(), index);
  const bool is_index = ec == std::errc{} && end == selector.data() + selector.size();
  std::string all;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& d = devices[i];
    if (selector == "auto" || (is_index && i == index) || d.uuid == selector ||
        d.pci_bus_id == meter::normal_pci_id(selector))
      return d;
    all += fmt::format("{}{} ({}, {})", all.empty() ? "" : ", ", i, d.uuid, d.pci_bus_id);
  }
  return refuse(RefusalCode::no_device, fmt::format("no GPU is \"{}\"", selector),
                all.empty() ? "there is none here: use --device sim" : "present: " + all,
                "--device");
}

} // namespace

void Machine::make_sim(const MachineRequest& request) {
  auto clock = std::make_unique<VirtualClock>();
  board_ = std::make_unique<gpu::SimBoard>(*clock, request.model, request.seed, request.faults);
  info_ = gpu::sim_device_info();
  meter_ = std::make_unique<meter::SimMeter>(*board_, info_);
  clock_ = std::move(clock);
}

Result<std::unique_ptr<Machine>> Machine::open(const MachineRequest& request) {
  auto machine = std::unique_ptr<Machine>(new Machine);
  if (request.selector == "sim") {
    machine->make_sim(request);
    return machine;
  }
  auto devices = gpu::list_cuda_devices();
  const bool none = devices ? devices->empty()
                            : devices.error().code == RefusalCode::driver_unavailable ||
                                  devices.error().code == RefusalCode::no_device;
  if (request.selector == "auto" && none) {
    machine->why_ = devices ? "the CUDA driver sees no device" : devices.error().what;
    machine->make_sim(request);
    return machine;
  }
  if (!devices) return std::unexpected(devices.error());
  if (!request.faults.empty())
    return refuse(RefusalCode::bad_argument, "faults can be injected into the simulated GPU only",
                  "use --device sim", "--sim-fault");
  HEBE_TRY(machine->info_, choose(std::move(*devices), request.selector));
  machine->clock_ = std::make_unique<RealClock>();
  HEBE_TRY(machine->meter_, meter::open_nvml_meter(machine->info_.uuid, machine->info_.pci_bus_id,
                                                   *machine->clock_));
  return machine;
}

Result<gpu::Device*> Machine::device() {
  if (device_) return device_.get();
  if (board_) {
    board_->open_context();
    device_ = std::make_unique<gpu::SimDevice>(*board_, info_);
  } else {
    HEBE_TRY(device_, gpu::open_cuda_device(info_.uuid, *clock_));
  }
  return device_.get();
}

} // namespace hebe::campaign
