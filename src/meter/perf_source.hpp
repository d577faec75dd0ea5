// RAPL energy counters through perf events. In: a root folder and a way to open an event; out: one
// source for each energy event and CPU of the mask. Invariant: the raw count stays an integer, its
// scale is the kernel's own; an event that opens is not thereby believed (on virtual machines
// energy-psys opens and never advances: qualification finds that).
#pragma once

#include "meter/file_sources.hpp"

namespace hebe::meter {

/// An empty `open` refuses each event by name.
[[nodiscard]] std::vector<Discovered> discover_perf(const std::filesystem::path& root,
                                                    const PerfOpen& open);

/// The system call itself: a counting event on one CPU, for all processes.
[[nodiscard]] int open_perf_event(std::uint32_t type, std::uint64_t config, int cpu);

} // namespace hebe::meter
