// One instrument that can be read. In: a call; out: its value in its own integer unit, with the
// host time around the call. Invariant: nothing is converted here and a failed reading is never a
// number; what the value is worth is decided by qualification (measure/source_qualification.hpp),
// not by whoever offers it.
#pragma once

#include "core/clock.hpp"
#include "core/result.hpp"
#include "meter/board_meter.hpp"

#include <memory>
#include <optional>
#include <string>

namespace hebe::meter {

enum class Quantity { energy_counter, power };

struct SourceDescription {
  SourceIdentity identity; ///< name, field or file, scope, unit of the raw value
  Quantity quantity = Quantity::power;
  double si_per_unit = 0;               ///< joules or watts of one raw unit
  std::string vendor, driver;           ///< of the device; driver or kernel version
  std::string device;                   ///< UUID, PCI id, or the file's path below its root
  std::optional<std::int64_t> wraps_at; ///< the counter restarts at 0 after this raw value
};

struct SourceReading {
  std::int64_t raw = 0;
  Instant before, after;                      ///< host monotonic time around the call
  std::optional<std::int64_t> source_wall_us; ///< the source's own time stamp, if it has one
};

class Source {
public:
  virtual ~Source() = default;
  [[nodiscard]] virtual const SourceDescription& description() const = 0;
  /// Refuses with the status of this one reading: meter_unsupported, meter_failed, no_permission
  /// (naming file and fix), meter_implausible (a value that cannot be of this type).
  [[nodiscard]] virtual Result<SourceReading> read() = 0;
};

} // namespace hebe::meter
