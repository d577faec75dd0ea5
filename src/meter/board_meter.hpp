// What one board can tell about itself. Sources: NVML, simulated, replay of a stored trace. In:
// calls; out: raw readings in the device's own integer units, each with its own status. Invariant:
// a reading that failed is a refusal with a reason, never a number.
#pragma once

#include "core/clock.hpp"
#include "core/fact.hpp"
#include "core/provenance.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hebe::meter {

/// Which instrument a number came from; the driver is part of it, because fields change meaning
/// with it.
struct SourceIdentity {
  std::string name;  ///< "nvml.samples.total_power", "nvml.counter.total_energy"
  std::string field; ///< the call or field id
  std::string scope; ///< "gpu"
  std::string unit;  ///< of the raw value: "mW", "mJ"
};

struct BoardIdentity {
  std::string vendor, name, uuid, pci_bus_id, driver;
  Provenance provenance = Provenance::simulated;
};

/// One sample of the driver's own buffer.
struct PowerSample {
  std::int64_t wall_us = 0; ///< host wall time, as the driver stamps it
  std::int64_t raw_mw = 0;
};

/// A field that nobody has read yet: forgetting one must not look like a reading of 0.
[[nodiscard]] inline Result<std::int64_t> not_read() {
  return refuse(RefusalCode::meter_unsupported, "this meter does not read it");
}

/// Cumulative times, in nanoseconds since some past instant, for which clocks were held down.
struct ThrottleTimes {
  Result<std::int64_t> power_cap_ns = not_read(), thermal_ns = not_read(),
                       hw_thermal_ns = not_read(), power_brake_ns = not_read(),
                       sync_ns = not_read();
};

/// Everything that is read once at each edge of a window.
struct Boundary {
  Instant before, after; ///< host monotonic time around the calls
  Result<std::int64_t> energy_mj = not_read();
  Result<std::int64_t> temperature_c = not_read();
  Result<std::int64_t> sm_clock_mhz = not_read(), memory_clock_mhz = not_read();
  Result<std::int64_t> power_average_mw =
      not_read();                                  ///< the board's own 1 s average, for the record
  Result<std::int64_t> event_reasons = not_read(); ///< NVML's bit mask at this instant
  ThrottleTimes throttle;
};

struct GpuProcess {
  std::int64_t pid = 0;
  std::string name; ///< empty when the driver or the host does not tell
};

struct Discovered; // meter/discovered.hpp

class BoardMeter {
public:
  virtual ~BoardMeter() = default;
  [[nodiscard]] virtual const BoardIdentity& board() const = 0;
  [[nodiscard]] virtual SourceIdentity samples_source() const = 0;
  [[nodiscard]] virtual SourceIdentity counter_source() const = 0;
  /// Samples of the buffer with wall_us > since (0: all), oldest first. May be empty.
  [[nodiscard]] virtual Result<std::vector<PowerSample>>
  read_power_samples(std::int64_t since_wall_us) = 0;
  /// Refuses only when the board itself is gone; each field has its own status.
  [[nodiscard]] virtual Result<Boundary> read_boundary() = 0;
  /// Compute and graphics processes on the board, ours among them.
  [[nodiscard]] virtual Result<std::vector<GpuProcess>> processes() = 0;
  [[nodiscard]] virtual Result<Watts> power_limit() = 0;
  [[nodiscard]] virtual Result<bool> mig_enabled() = 0;
  /// Uncorrected ECC errors since the driver was loaded, and Xid events since the meter was opened.
  [[nodiscard]] virtual Result<std::int64_t> uncorrected_errors() = 0;
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> new_xid_events() = 0;
  /// Every single value that this board tells of its power or energy, beside the buffer; the meter
  /// must outlive them. None, unless a kind of board says otherwise.
  [[nodiscard]] virtual std::vector<Discovered> sources();
  /// Limits, modes, clocks and counters for the environment record, under "board.".
  [[nodiscard]] virtual std::vector<Fact> facts() = 0;
};

} // namespace hebe::meter
