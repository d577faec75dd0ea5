#include "campaign/machine.hpp"

#include "evidence/environment.hpp"
#include "gpu/cuda_device.hpp"
#include "meter/nvml_meter.hpp"
#include "meter/sim_meter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include <unistd.h>

namespace hebe::campaign {
namespace {

// "GPU-5d3a" where one board alone begins so, as CUDA_VISIBLE_DEVICES takes it; of several, none.
std::vector<gpu::DeviceInfo>::const_iterator
by_short_uuid(const std::vector<gpu::DeviceInfo>& devices, const std::string& selector) {
  constexpr std::size_t kShortest = 6; // "GPU-" and two digits
  if (!selector.starts_with("GPU-") || selector.size() < kShortest) return devices.end();
  const auto begins = [&](const gpu::DeviceInfo& d) { return d.uuid.starts_with(selector); };
  if (std::count_if(devices.begin(), devices.end(), begins) != 1) return devices.end();
  return std::find_if(devices.begin(), devices.end(), begins);
}

} // namespace

Result<gpu::DeviceInfo> choose_device(std::vector<gpu::DeviceInfo> devices,
                                      const std::string& selector) {
  std::sort(devices.begin(), devices.end(),
            [](auto& a, auto& b) { return a.pci_bus_id < b.pci_bus_id; });
  std::size_t index = devices.size();
  const auto [end, ec] = std::from_chars(selector.data(), selector.data() + selector.size(), index);
  const bool is_index = ec == std::errc{} && end == selector.data() + selector.size();
  std::string all;
  if (const auto hit = by_short_uuid(devices, selector); hit != devices.end()) return *hit;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& d = devices[i];
    if (selector == "auto" || (is_index && i == index) || d.uuid == selector ||
        d.pci_bus_id == meter::normal_pci_id(selector))
      return d;
    all += fmt::format("{}{} ({}, {})", all.empty() ? "" : ", ", i, d.uuid, d.pci_bus_id);
  }
  return refuse(RefusalCode::no_device, fmt::format("no GPU is \"{}\"", selector),
                all.empty() ? "there is none here: use --device sim"
                            : "present: " + all + "; CUDA_VISIBLE_DEVICES may hide others",
                "--device");
}

namespace {

bool names_sim(std::string_view selector) {
  return selector == "sim" || selector.starts_with("sim:");
}

// "sim:3" is the fourth of as many simulated boards as anybody wants, with a UUID of its own.
Result<gpu::DeviceInfo> sim_info(const MachineRequest& request) {
  auto info = gpu::sim_device_info();
  const std::string_view number =
      std::string_view(request.selector)
          .substr(request.selector.starts_with("sim:") ? 4 : request.selector.size());
  unsigned n = 0;
  if (!number.empty() || request.selector == "sim:") {
    const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), n);
    if (ec != std::errc{} || end != number.data() + number.size() || n > 9999)
      return refuse(RefusalCode::no_device,
                    fmt::format("no simulated GPU is \"{}\"", request.selector),
                    "use sim, or sim:0 to sim:9999", "--device");
  }
  info.uuid = info.uuid.substr(0, info.uuid.size() - 4) + fmt::format("{:04d}", n + 1);
  info.pci_bus_id = fmt::format("sim:{}", n);
  for (const auto& fault : request.faults) {
    if (fault.kind == gpu::FaultKind::driver_update) info.driver = "simulated, another version";
    if (fault.kind == gpu::FaultKind::board_swap) {
      info.name = "Hebe simulated GPU (another model)";
      info.uuid.replace(4, 8, "ffffffff");
    }
  }
  return info;
}

} // namespace

Status Machine::make_sim(const MachineRequest& request) {
  auto clock = std::make_unique<VirtualClock>();
  board_ = std::make_unique<gpu::SimBoard>(*clock, request.model, request.seed, request.faults);
  HEBE_TRY(info_, sim_info(request));
  meter_ = std::make_unique<meter::SimMeter>(*board_, info_);
  clock_ = std::move(clock);
  return {};
}

Result<std::unique_ptr<Machine>> Machine::open(const MachineRequest& request) {
  auto machine = std::unique_ptr<Machine>(new Machine);
  if (names_sim(request.selector)) {
    HEBE_CHECK(machine->make_sim(request));
    return machine;
  }
  auto devices = gpu::list_cuda_devices();
  const bool none = devices ? devices->empty()
                            : devices.error().code == RefusalCode::driver_unavailable ||
                                  devices.error().code == RefusalCode::no_device;
  if (request.selector == "auto" && none) {
    machine->why_ = devices ? "the CUDA driver sees no device" : devices.error().what;
    HEBE_CHECK(machine->make_sim(request));
    return machine;
  }
  if (!devices) return std::unexpected(devices.error());
  if (!request.faults.empty())
    return refuse(RefusalCode::bad_argument, "faults can be injected into the simulated GPU only",
                  "use --device sim", "--sim-fault");
  auto selector = request.selector;
  if (request.stream && selector == "auto") {
    HEBE_TRY(selector, gpu::current_cuda_device());
  }
  HEBE_TRY(machine->info_, choose_device(std::move(*devices), selector));
  machine->stream_ = request.stream;
  machine->clock_ = std::make_unique<RealClock>();
  HEBE_TRY(machine->meter_, meter::open_nvml_meter(machine->info_.uuid, machine->info_.pci_bus_id,
                                                   *machine->clock_));
  return machine;
}

std::unique_ptr<Machine> Machine::of_parts(std::unique_ptr<Clock> clock, gpu::DeviceInfo info,
                                           std::unique_ptr<meter::BoardMeter> meter,
                                           std::unique_ptr<gpu::Device> device) {
  auto machine = std::unique_ptr<Machine>(new Machine);
  machine->clock_ = std::move(clock);
  machine->info_ = std::move(info);
  machine->meter_ = std::move(meter);
  machine->device_ = std::move(device);
  return machine;
}

Result<std::string> Machine::boot() const {
  HEBE_TRY(auto id, evidence::boot_id());
  if (board_)
    for (const auto& fault : board_->faults())
      if (fault.kind == gpu::FaultKind::reboot) id += ", and once more";
  return id;
}

Bytes Machine::memory() const {
  if (!simulated()) return info_.memory;
  return {static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
          static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2};
}

Result<gpu::Device*> Machine::device() {
  if (device_) return device_.get();
  if (board_) {
    board_->open_context();
    device_ = std::make_unique<gpu::SimDevice>(*board_, info_);
  } else {
    HEBE_TRY(device_, gpu::open_cuda_device(info_.uuid, *clock_, stream_));
  }
  return device_.get();
}

} // namespace hebe::campaign
