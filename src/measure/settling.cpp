#include "measure/settling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace hebe::measure {
namespace {

// Temperatures over the last `span`, oldest first. Empty: nobody read them.
std::vector<double> temperatures(std::span<const WarmUpBlock> blocks, Seconds span) {
  std::vector<double> out;
  if (blocks.empty()) return out;
  const auto from = blocks.back().end_ns - to_nanos(span).count();
  for (const auto& b : blocks)
    if (b.end_ns >= from && b.temperature_c) out.push_back(static_cast<double>(*b.temperature_c));
  return out;
}

bool lasted(std::span<const WarmUpBlock> blocks, Seconds span) {
  return blocks.front().end_ns <= blocks.back().end_ns - to_nanos(span).count();
}

double range(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low;
}

// Mean of the later half less mean of the earlier: what a drift adds and a flicker does not.
double change(const std::vector<double>& values) {
  const auto half = values.size() / 2;
  double before = 0, after = 0;
  for (std::size_t i = 0; i < half; ++i) {
    before += values[i];
    after += values[values.size() - 1 - i];
  }
  return half == 0 ? 0 : (after - before) / static_cast<double>(half);
}

std::vector<WarmUpBlock> of_arm(std::span<const WarmUpBlock> blocks, int arm) {
  std::vector<WarmUpBlock> out;
  std::ranges::copy_if(blocks, std::back_inserter(out), [&](auto& b) { return b.arm == arm; });
  return out;
}

// Of the means of a span's quarters the largest over the smallest, less one: an excursion that has
// come back shows as well as a drift.
double apart_by_quarters(const std::vector<double>& values) {
  std::array<double, 4> mean{};
  for (std::size_t q = 0; q < 4; ++q) {
    const auto from = values.size() * q / 4, until = values.size() * (q + 1) / 4;
    for (auto i = from; i < until; ++i) mean[q] += values[i] / static_cast<double>(until - from);
  }
  return *std::ranges::max_element(mean) / *std::ranges::min_element(mean) - 1;
}

// At the limit the control holds the power, and what drifts is the clock: their product tells.
bool flickers_at_the_limit(std::span<const WarmUpBlock> blocks, int arm, const Tier& tier) {
  constexpr double kMost = 0.9;       // of the blocks are known, and held at their ends
  constexpr double kForQuarters = 16; // blocks
  if (!tier.steady_power || !tier.steady_energy_change || !tier.steady_span) return false;
  if (!lasted(blocks, *tier.steady_span)) return false;
  const auto from = blocks.back().end_ns - to_nanos(*tier.steady_span).count();
  std::vector<double> watts, joules;
  double all = 0, held = 0;
  for (const auto& b : blocks) {
    if (b.arm != arm || b.end_ns < from) continue;
    all += 1;
    if (!b.power || !b.capped) continue;
    watts.push_back(b.power->value());
    joules.push_back(b.power->value() * b.latency.value());
    held += *b.capped ? 1 : 0;
  }
  const auto known = static_cast<double>(watts.size());
  if (known < kForQuarters || known < kMost * all || held < kMost * known) return false;
  const double low = *std::ranges::min_element(watts);
  return range(watts) <= *tier.steady_power * low &&
         apart_by_quarters(joules) <= *tier.steady_energy_change;
}

std::string power_that_moves(std::span<const WarmUpBlock> blocks, int arm, const Tier& tier) {
  std::vector<double> p;
  const auto from = blocks.back().end_ns - to_nanos(tier.settle_span).count();
  for (const auto& b : blocks)
    if (b.arm == arm && b.end_ns >= from && b.power) p.push_back(b.power->value());
  const char name = arm == 0 ? 'A' : 'B';
  if (p.size() < 2) // one block cannot show that it stands still
    return fmt::format("arm {}'s power is known of {} of the blocks of the last {} s, 2 are needed",
                       name, p.size(), tier.settle_span.value());
  const auto [low, high] = std::minmax_element(p.begin(), p.end());
  const auto moved = *high / *low - 1;
  if (!(moved > tier.settle_power) || flickers_at_the_limit(blocks, arm, tier)) return {};
  return fmt::format("arm {}'s power moved between {:.1f} and {:.1f} W, {:.2f} %, in {} s "
                     "(limit {} %)",
                     name, *low, *high, 100 * moved, tier.settle_span.value(),
                     100 * tier.settle_power);
}

std::string moved_within(const std::vector<double>& t, Seconds span, Celsius limit) {
  const auto [low, high] = std::minmax_element(t.begin(), t.end());
  return fmt::format("the temperature moved between {} and {} C in {} s (limit {} C)", *low, *high,
                     span.value(), limit.value());
}

// 20 s do not show a drift over minutes: whole degrees hide a slope of 2 C a minute in them.
std::string temperature_over_minutes(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  if (lasted(blocks, *tier.still_span) && range(temperatures(blocks, *tier.still_span)) == 0)
    return {};
  const auto t = temperatures(blocks, *tier.steady_span);
  if (!lasted(blocks, *tier.steady_span))
    return fmt::format("the temperature did not stand still for {} s, and the warm-up has not "
                       "lasted the {} s over which it may flicker",
                       tier.still_span->value(), tier.steady_span->value());
  if (range(t) <= tier.settle_temperature.value()) return {};
  if (!tier.steady_temperature || !tier.steady_change)
    return moved_within(t, *tier.steady_span, tier.settle_temperature);
  if (range(t) > tier.steady_temperature->value())
    return moved_within(t, *tier.steady_span, *tier.steady_temperature);
  if (std::abs(change(t)) <= tier.steady_change->value()) return {};
  return fmt::format("{}, and its mean by {:+.1f} C from the first half of them to the second "
                     "(limit {} C)",
                     moved_within(t, *tier.steady_span, *tier.steady_temperature), change(t),
                     tier.steady_change->value());
}

// Arms that draw alike warm the board alike: what then moves is the board.
bool draw_unlike(std::span<const WarmUpBlock> blocks, Seconds span) {
  constexpr double kUnlike = 0.05;
  const auto from = blocks.back().end_ns - to_nanos(span).count();
  std::array<double, 2> sum{}, known{};
  for (const auto& b : blocks) {
    if (b.end_ns < from || !b.power) continue;
    sum[static_cast<std::size_t>(b.arm)] += b.power->value();
    known[static_cast<std::size_t>(b.arm)] += 1;
  }
  if (known[0] == 0 || known[1] == 0) return false;
  const double a = sum[0] / known[0], b = sum[1] / known[1];
  return std::abs(a - b) > kUnlike * std::min(a, b);
}

std::string temperature_that_moves(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  const auto t = temperatures(blocks, tier.settle_span);
  // An unknown temperature is stable only where drift is not judged.
  if (t.empty()) return tier.max_job_drift ? "the temperature is not known" : "";
  if (tier.still_span && tier.steady_span) {
    // Plans from before asked for both.
    if (!tier.steady_temperature && range(t) > tier.settle_temperature.value())
      return moved_within(t, tier.settle_span, tier.settle_temperature);
    return temperature_over_minutes(blocks, tier);
  }
  if (range(t) > tier.settle_temperature.value())
    return moved_within(t, tier.settle_span, tier.settle_temperature);
  return {};
}

std::optional<double> median_temperature(std::span<const WarmUpBlock> blocks, Seconds span) {
  auto t = temperatures(blocks, span);
  if (t.empty()) return std::nullopt;
  const auto middle = t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2);
  std::nth_element(t.begin(), middle, t.end());
  return *middle;
}

struct Moved {
  std::string what, text; ///< under what it is counted, and how it is told
};

// Of both arms together, or of each by itself.
std::vector<Moved> temperatures_that_move(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  std::vector<Moved> out;
  const auto both = temperature_that_moves(blocks, tier);
  if (!tier.settle_by_arm || !draw_unlike(blocks, tier.settle_span)) {
    if (!both.empty()) out.push_back({"the temperature", both});
    return out;
  }
  for (const int arm : {0, 1}) {
    const auto own = of_arm(blocks, arm);
    const auto moves = temperature_that_moves(own, tier);
    const bool known = !temperatures(own, tier.settle_span).empty();
    if (moves.empty() || (known && both.empty())) continue;
    const auto under = fmt::format("under arm {} ", arm == 0 ? 'A' : 'B');
    out.push_back({under + "the temperature", under + moves});
  }
  return out;
}

// Everything, each by itself; in the order in which it is told.
std::vector<Moved> all_that_moves(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  std::vector<Moved> out;
  for (const int arm : {0, 1})
    if (auto moves = power_that_moves(blocks, arm, tier); !moves.empty())
      out.push_back({fmt::format("arm {}'s power", arm == 0 ? 'A' : 'B'), std::move(moves)});
  std::ranges::move(temperatures_that_move(blocks, tier), std::back_inserter(out));
  return out;
}

} // namespace

std::string what_moves(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  if (blocks.empty()) return "nothing ran";
  auto all = all_that_moves(blocks, tier);
  return all.empty() ? std::string() : std::move(all.front().text);
}

std::string what_moved(std::span<const WarmUpBlock> blocks, std::size_t from, const Tier& tier) {
  std::map<std::string, int> times;
  int looks = 0;
  for (auto n = from + 1; n <= blocks.size(); ++n, ++looks)
    for (const auto& moved : all_that_moves(blocks.first(n), tier)) ++times[moved.what];
  std::string out;
  for (const auto& [what, count] : times)
    out += fmt::format("{}{}{} at {}", out.empty() ? "" : ", ", what, out.empty() ? " moved" : "",
                       count);
  return fmt::format("of {} looks {}", looks, out.empty() ? "nothing moved" : out);
}

std::optional<double> settled_temperature(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  if (!tier.steady_span || !tier.steady_temperature) {
    if (blocks.empty() || !blocks.back().temperature_c) return std::nullopt;
    return static_cast<double>(*blocks.back().temperature_c);
  }
  if (!tier.settle_by_arm) return median_temperature(blocks, *tier.steady_span);
  const auto a = median_temperature(of_arm(blocks, 0), *tier.steady_span),
             b = median_temperature(of_arm(blocks, 1), *tier.steady_span);
  return a && b ? std::optional((*a + *b) / 2) : std::nullopt;
}

} // namespace hebe::measure
