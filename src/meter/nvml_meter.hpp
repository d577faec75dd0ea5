// NVML as a BoardMeter. Invariant: the board is found by UUID and checked by PCI id, never by
// index; each field's own status is read before its value.
#pragma once

#include "meter/board_meter.hpp"

#include <memory>

namespace hebe::meter {

[[nodiscard]] Result<std::vector<BoardIdentity>> list_nvml_boards();

/// `uuid` as CUDA gives it; `pci_bus_id` must agree (no_device otherwise). `clock` must outlive it.
[[nodiscard]] Result<std::unique_ptr<BoardMeter>>
open_nvml_meter(const std::string& uuid, const std::string& pci_bus_id, Clock& clock);

/// "00000000:3B:00.0" and "0000:3b:00.0" are one address.
[[nodiscard]] std::string normal_pci_id(std::string text);

} // namespace hebe::meter
