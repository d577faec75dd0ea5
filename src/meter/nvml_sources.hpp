// NVML's single values as sources: energy counters and power fields, each under its own name. In:
// an open board; out: one source a field or call. Invariant: a field's own status and value type
// are looked at before its value, and the value must be possible.
#pragma once

#include "meter/discovered.hpp"
#include "meter/nvml_library.hpp"

namespace hebe::meter {

/// `library`, `clock` must outlive what is returned.
[[nodiscard]] std::vector<Discovered> nvml_sources(const NvmlLibrary& library, nvmlDevice_t device,
                                                   const BoardIdentity& board, Clock& clock);

/// The value of a field that answered, after its status and type. Energy is 64 bits wide, power an
/// unsigned int: another type means another field in this driver (meter_implausible).
[[nodiscard]] Result<std::int64_t> field_reading(const NvmlLibrary& library,
                                                 const nvmlFieldValue_t& field, Quantity quantity);

} // namespace hebe::meter
