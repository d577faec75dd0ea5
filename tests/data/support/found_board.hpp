// A board that is not a simulated one, for tests of what a real board is refused for. In: nothing;
// out: a machine whose meter answers as a real one's would. Invariant: its provenance is measured,
// and it can run nothing.
#pragma once

#include "campaign/machine.hpp"

#include <unistd.h>

namespace hebe::test {

class FoundMeter final : public meter::BoardMeter {
public:
  explicit FoundMeter(const gpu::DeviceInfo& info)
      : identity_{"nvidia",        info.name,    info.uuid,
                  info.pci_bus_id, "580.159.04", Provenance::measured} {}
  [[nodiscard]] const meter::BoardIdentity& board() const override { return identity_; }
  [[nodiscard]] meter::SourceIdentity samples_source() const override {
    return {"nvml.samples.total_power", "test", "gpu", "mW"};
  }
  [[nodiscard]] meter::SourceIdentity counter_source() const override {
    return {"nvml.counter.total_energy", "test", "gpu", "mJ"};
  }
  [[nodiscard]] Result<std::vector<meter::PowerSample>> read_power_samples(std::int64_t) override {
    return std::vector<meter::PowerSample>{};
  }
  [[nodiscard]] Result<meter::Boundary> read_boundary() override { return meter::Boundary{}; }
  [[nodiscard]] Result<std::vector<meter::GpuProcess>> processes() override {
    return std::vector<meter::GpuProcess>{};
  }
  [[nodiscard]] Result<Watts> power_limit() override { return Watts(700); }
  [[nodiscard]] Result<bool> mig_enabled() override { return false; }
  [[nodiscard]] Result<std::int64_t> uncorrected_errors() override { return 0; }
  [[nodiscard]] Result<std::vector<std::int64_t>> new_xid_events() override {
    return std::vector<std::int64_t>{};
  }
  [[nodiscard]] std::vector<Fact> facts() override { return {}; }

private:
  meter::BoardIdentity identity_;
};

/// With a UUID of this process: its lease is taken for the whole machine.
inline std::unique_ptr<campaign::Machine> found_board() {
  gpu::DeviceInfo info;
  info.name = "NVIDIA H200";
  info.uuid = "GPU-hebe-test-" + std::to_string(::getpid());
  info.pci_bus_id = "0000:00:06.0";
  info.driver = "13.0";
  auto meter = std::make_unique<FoundMeter>(info);
  return campaign::Machine::of_parts(std::make_unique<VirtualClock>(), info, std::move(meter));
}

} // namespace hebe::test
