// Power and energy of boards through hwmon. In: a root folder; out: one source for each reading of
// each AMD (amdgpu) and Intel (i915, xe) board and each rail of a Jetson (ina3221). Invariant: a
// board is known by its PCI id; hwmon numbers change between boots and are never an identity.
#pragma once

#include "meter/file_sources.hpp"

namespace hebe::meter {

[[nodiscard]] std::vector<Discovered> discover_hwmon(const std::filesystem::path& root);

} // namespace hebe::meter
