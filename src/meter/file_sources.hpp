// Every source that the kernel offers as files: RAPL (powercap, perf events), hwmon boards. In: a
// root folder ("/" or a made tree); out: each source found, or why it cannot be used. Invariant:
// nothing found is passed over in silence, and one source that fails costs no other.
#pragma once

#include "meter/discovered.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hebe::meter {

/// perf_event_open for one event on one CPU: a descriptor, or -errno.
using PerfOpen = std::function<int(std::uint32_t type, std::uint64_t config, int cpu)>;

/// Reads each source once: what is returned as usable gave a number just now. Without `perf_open`
/// perf events are opened from the kernel, and only where `root` is "/": a made tree says nothing
/// about the kernel that runs.
[[nodiscard]] std::vector<Discovered> discover_file_sources(const std::filesystem::path& root = "/",
                                                            const PerfOpen& perf_open = {});

} // namespace hebe::meter
