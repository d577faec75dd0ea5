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

Seconds hold_length(std::span<const WarmUpBlock> blocks, std::int64_t begin_ns) {
  return blocks.empty() ? Seconds(0) : to_seconds(Nanos(blocks.back().end_ns - begin_ns));
}

bool hold_ends(std::span<const WarmUpBlock> blocks, int next_arm, Seconds held,
               std::int64_t begin_ns, const Reference& reference, const Tier& tier) {
  if (blocks.empty() || blocks.back().arm == next_arm) return false;
  return has_come_back(blocks, reference, tier) ||
         held + hold_length(blocks, begin_ns) >= tier.max_hold.value_or(Seconds(0));
}

namespace {

constexpr Seconds kMostBetween{10}; // a block takes one, a window's pre-roll less

// Of one hold, between the windows before and after it.
std::string fault_of(const std::vector<WarmUpBlock>& blocks, const WindowReading& before,
                     const WindowReading& after, Seconds held, const Reference& reference,
                     const Tier& tier) {
  const auto ends = [&](std::size_t count) {
    return hold_ends(std::span(blocks).first(count), after.arm, held, before.end_ns, reference,
                     tier);
  };
  std::int64_t last = before.end_ns;
  const auto follows = [&](std::int64_t at) {
    const bool in_time = at > last && to_seconds(Nanos(at - last)) <= kMostBetween;
    last = at;
    return in_time;
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!follows(blocks[i].end_ns)) return "has blocks that do not follow each other";
    if (blocks[i].arm != (i % 2 == 0 ? after.arm : 1 - after.arm))
      return "has blocks that do not alternate, the next window's arm first";
    if (i + 1 < blocks.size() && ends(i + 1)) return "went on when it had to end";
  }
  if (!ends(blocks.size())) return "ended before it had to";
  return follows(after.begin_ns) ? "" : "does not end where the window begins";
}

} // namespace

std::string hold_fault(std::span<const Hold> holds, std::span<const Window> windows,
                       const Reference& reference, const Tier& tier) {
  auto next = holds.begin();
  Seconds held(0);
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2) {
    const bool held_here =
        next != holds.end() && next->after_window == static_cast<std::int64_t>(i);
    const bool due = i >= 2 && held < tier.max_hold.value_or(Seconds(0)) &&
                     must_hold(windows[i - 2].reading, windows[i - 1].reading, reference, tier);
    if (held_here != due)
      return fmt::format(
          "before window {} the run {}", i,
          due ? "did not wait, though the board had left where it settled"
              : "waited, though the board was where it had settled, or it had waited "
                "as long as it may");
    if (!due) continue;
    const auto &before = windows[i - 1].reading, &after = windows[i].reading;
    if (const auto what = fault_of(next->blocks, before, after, held, reference, tier);
        !what.empty())
      return fmt::format("the wait before window {} {}", i, what);
    held += hold_length(next->blocks, before.end_ns);
    ++next;
  }
  return next == holds.end() ? "" : "a wait stands where no window follows";
}

} // namespace hebe::measure
