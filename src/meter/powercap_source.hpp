// RAPL energy counters through powercap. In: a root folder; out: one source a zone and sub-zone
// (package, core, dram, psys), in microjoules, with the range at which it wraps. Invariant: a zone
// whose range is unknown is refused, for its wrap would look like a reset.
#pragma once

#include "meter/file_sources.hpp"

namespace hebe::meter {

[[nodiscard]] std::vector<Discovered> discover_powercap(const std::filesystem::path& root);

} // namespace hebe::meter
