#include "measure/holding.hpp"

#include "measure/gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace hebe::measure {

std::optional<double> above_reference(const WindowReading& first, const WindowReading& second,
                                      const Reference& reference) {
  if (!first.end.temperature_c || !second.end.temperature_c || !reference.temperature_c)
    return std::nullopt;
  const auto both = *first.end.temperature_c + *second.end.temperature_c;
  return static_cast<double>(both) / 2 - *reference.temperature_c;
}

bool must_hold(const WindowReading& first, const WindowReading& second, const Reference& reference,
               const Tier& tier) {
  if (!tier.max_hold || !tier.max_job_drift) return false;
  constexpr double kResolution = 0.5; // of the mean of two whole degrees
  const auto above = above_reference(first, second, reference);
  return above && std::abs(*above) > tier.max_job_drift->value() - kResolution;
}

bool has_come_back(std::span<const WarmUpBlock> blocks, const Reference& reference,
                   const Tier& tier) {
  constexpr Seconds kLong{10}; // whole degrees flicker
  if (blocks.empty() || !reference.temperature_c || !tier.max_job_drift) return false;
  const auto from = blocks.back().end_ns - to_nanos(kLong).count();
  if (blocks.front().end_ns > from) return false;
  std::array<double, 2> sum{}, known{};
  for (const auto& b : blocks) {
    if (b.end_ns < from || !b.temperature_c) continue;
    sum[static_cast<std::size_t>(b.arm)] += static_cast<double>(*b.temperature_c);
    known[static_cast<std::size_t>(b.arm)] += 1;
  }
  if (known[0] == 0 || known[1] == 0) return false;
  const double mean = (sum[0] / known[0] + sum[1] / known[1]) / 2;
  return std::abs(mean - *reference.temperature_c) <= tier.max_job_drift->value() / 2;
}

std::string hold_fault(std::span<const Hold> holds, std::span<const Window> windows,
                       const Reference& reference, const Tier& tier) {
  auto next = holds.begin();
  const auto expected = [&](std::size_t before) {
    return before >= 2 &&
           must_hold(windows[before - 2].reading, windows[before - 1].reading, reference, tier);
  };
  for (std::size_t before = 0; before < windows.size(); before += 2) {
    const bool held =
        next != holds.end() && next->after_window == static_cast<std::int64_t>(before);
    if (held != expected(before))
      return fmt::format("before window {} the run {}", before,
                         held ? "waited, though the board was where it had settled"
                              : "did not wait, though the board had left where it settled");
    if (!held) continue;
    const auto& blocks = next->blocks;
    if (!has_come_back(blocks, reference, tier))
      return fmt::format("the wait before window {} ended before the board was back", before);
    std::int64_t last = windows[before - 1].reading.end_ns;
    for (const auto& b : blocks) {
      if (b.end_ns <= last)
        return fmt::format("the blocks of the wait before window {} are not in order", before);
      last = b.end_ns;
    }
    if (last >= windows[before].reading.begin_ns)
      return fmt::format("the wait before window {} overlaps it", before);
    ++next;
  }
  return next == holds.end() ? "" : "a wait stands where no window follows";
}

} // namespace hebe::measure
