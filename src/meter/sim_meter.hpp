// The simulated board's meters, with the measured behaviour of a real one. In: the board's true
// power; out: what an H200's NVML would say of it. Invariant: everything is a function of seed,
// index and time, so a run is reproducible whatever the order of calls.
#pragma once

#include "gpu/device.hpp"
#include "gpu/sim_board.hpp"
#include "meter/board_meter.hpp"

namespace hebe::meter {

/// Behaviour as found on an H200 (driver 580.159.04): 119 samples 20 ms apart, a 30 ms averaging
/// window seen 12 ms late, a counter cached for 100 ms, 5 ms a call.
struct MeterModel {
  Nanos sample_period = std::chrono::milliseconds(20);
  Nanos sample_jitter = std::chrono::milliseconds(5); ///< uniform, either way
  std::size_t buffer_length = 119;
  Nanos averaging = std::chrono::milliseconds(30), delay = std::chrono::milliseconds(12);
  Watts sample_noise{0.35};
  Nanos counter_period = std::chrono::milliseconds(100);
  Nanos call_cost = std::chrono::milliseconds(5);
  // Single power fields: cached for 100 ms each at its own phase, 1 ms a call.
  Nanos field_period = std::chrono::milliseconds(100), field_cost = std::chrono::milliseconds(1);
  Nanos instant_averaging = std::chrono::milliseconds(25);
  Nanos instant_phase = std::chrono::milliseconds(37),
        average_phase = std::chrono::milliseconds(71);
};

class SimMeter final : public BoardMeter {
public:
  SimMeter(gpu::SimBoard& board, const gpu::DeviceInfo& info, MeterModel model = {});

  [[nodiscard]] const BoardIdentity& board() const override { return identity_; }
  [[nodiscard]] SourceIdentity samples_source() const override;
  [[nodiscard]] SourceIdentity counter_source() const override;
  [[nodiscard]] Result<std::vector<PowerSample>>
  read_power_samples(std::int64_t since_wall_us) override;
  [[nodiscard]] Result<Boundary> read_boundary() override;
  [[nodiscard]] Result<std::vector<GpuProcess>> processes() override;
  [[nodiscard]] Result<Watts> power_limit() override { return board_.model().power_limit; }
  [[nodiscard]] Result<bool> mig_enabled() override;
  [[nodiscard]] Result<std::int64_t> uncorrected_errors() override;
  [[nodiscard]] Result<std::vector<std::int64_t>> new_xid_events() override {
    return std::vector<std::int64_t>{};
  }
  [[nodiscard]] std::vector<Discovered> sources() override;
  [[nodiscard]] std::vector<Fact> facts() override;

private:
  [[nodiscard]] Instant sample_instant(std::int64_t index) const;
  [[nodiscard]] std::int64_t sample_mw(std::int64_t index, Instant at) const;
  [[nodiscard]] Result<std::int64_t> counter_mj(Instant now) const;
  [[nodiscard]] Instant field_tick(Instant now, Nanos period, Nanos phase) const;
  [[nodiscard]] Result<std::int64_t> instant_mw(Instant now) const;
  [[nodiscard]] Result<std::int64_t> average_mw(Instant now) const;
  [[nodiscard]] Status alive() const;
  gpu::SimBoard& board_;
  BoardIdentity identity_;
  MeterModel model_;
  bool jumped_ = false; // the injected clock step has happened
};

} // namespace hebe::meter
