#include "measure/meter_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::measure {
namespace {

constexpr std::size_t kFewest = 20; // samples to say anything
constexpr double kSettleSeconds =
    1.0; // by then every sensor met so far has settled, but a 1 s average

Seconds median_period(std::span<const meter::AlignedSample> s) {
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < s.size(); ++i) steps.push_back(s[i].t_mono_ns - s[i - 1].t_mono_ns);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return to_seconds(Nanos(*middle));
}

double mean_mw(std::span<const meter::AlignedSample> s, std::int64_t from_ns) {
  double sum = 0, n = 0;
  for (const auto& x : s)
    if (x.t_mono_ns >= from_ns) sum += static_cast<double>(x.raw_mw), n += 1;
  return n > 0 ? sum / n : 0;
}

// The lowest mean of a quarter of a second from `from_ns` on: what the weaker arm draws. (With the
// mean of both, an arm that draws less than 95 % of it never arrives, and the lag is that of the
// other arm's first block.)
double weaker_arm_mw(std::span<const meter::AlignedSample> s, std::int64_t from_ns) {
  constexpr std::int64_t kPiece = 250'000'000;
  double lowest = mean_mw(s, from_ns), sum = 0, n = 0;
  auto piece = from_ns;
  for (const auto& x : s) {
    if (x.t_mono_ns < from_ns) continue;
    if (x.t_mono_ns >= piece + kPiece) { // only whole pieces count
      if (n > 0) lowest = std::min(lowest, sum / n);
      piece += (x.t_mono_ns - piece) / kPiece * kPiece;
      sum = n = 0;
    }
    sum += static_cast<double>(x.raw_mw), n += 1;
  }
  return lowest;
}

} // namespace

Result<MeterBehaviour> check_meter(const MeterTrial& t) {
  using enum RefusalCode;
  const char* kNext = "run `hebe doctor`; another driver may meter this board";
  const auto loaded = t.samples.subspan(static_cast<std::size_t>(
      std::partition_point(t.samples.begin(), t.samples.end(),
                           [&](auto& s) { return s.t_mono_ns < t.load_begin_ns; }) -
      t.samples.begin()));
  if (loaded.size() < kFewest)
    return refuse(meter_empty,
                  fmt::format("the sample buffer gave {} power samples under load, required {}",
                              loaded.size(), kFewest),
                  kNext, "power samples");
  const auto [low, high] = std::minmax_element(
      t.samples.begin(), t.samples.end(), [](auto& a, auto& b) { return a.raw_mw < b.raw_mw; });
  const double limit_mw = t.power_limit ? t.power_limit->value() * 1e3 * 2 : 5e6;
  if (low->raw_mw <= 0 || static_cast<double>(high->raw_mw) > limit_mw)
    return refuse(
        meter_implausible,
        fmt::format("power samples between {} and {} mW cannot be true of this board (limit {})",
                    low->raw_mw, high->raw_mw,
                    t.power_limit ? fmt::format("{} W", t.power_limit->value()) : "unknown"),
        kNext, "power samples");
  if (std::all_of(loaded.begin(), loaded.end(),
                  [&](auto& s) { return s.raw_mw == loaded.front().raw_mw; }))
    return refuse(meter_frozen,
                  fmt::format("all {} power samples are {} mW, from idle to full load",
                              loaded.size(), loaded.front().raw_mw),
                  kNext, "power samples");

  if (!t.begin.energy_mj || !t.end.energy_mj) {
    auto refusal = (t.begin.energy_mj ? t.end : t.begin).energy_mj.error();
    refusal.what = "the cross-check is missing: " + refusal.what;
    return std::unexpected(refusal);
  }
  const auto counted = *t.end.energy_mj - *t.begin.energy_mj;
  const double seconds = to_seconds(t.end.before - t.begin.before).value();
  if (counted == 0)
    return refuse(meter_frozen,
                  fmt::format("the energy counter stood at {} mJ for {:.2f} s under load",
                              *t.end.energy_mj, seconds),
                  kNext, "energy counter");
  if (counted < 0)
    return refuse(meter_backwards,
                  fmt::format("the energy counter went from {} to {} mJ", *t.begin.energy_mj,
                              *t.end.energy_mj),
                  kNext, "energy counter");
  MeterBehaviour b;
  b.sample_period = median_period(t.samples);
  const double settled =
      weaker_arm_mw(t.samples, t.load_begin_ns + static_cast<std::int64_t>(kSettleSeconds * 1e9));
  const auto trial_from = t.begin.before.time_since_epoch().count();
  const double by_samples = mean_mw(t.samples, trial_from) * 1e-3;
  const double by_counter = static_cast<double>(counted) * 1e-3 / seconds;
  const double allowed = t.agreement + b.counter_period.value() / seconds;
  if (std::abs(by_counter / by_samples - 1) > allowed)
    return refuse(
        meter_disagreement,
        fmt::format(
            "over {:.2f} s the counter says {:.1f} W, the samples {:.1f} W; allowed are {:.1f} %",
            seconds, by_counter, by_samples, 100 * allowed),
        kNext, "energy counter, power samples");

  // Lag: from the first launch until the samples have come 95 % of the way from idle to what the
  // weaker arm draws.
  // Idle is the last sample before the launch: the caller leaves the GPU idle long enough for it to
  // be one.
  double idle = static_cast<double>(t.samples.front().raw_mw);
  for (const auto& s : t.samples)
    if (s.t_mono_ns <= t.load_begin_ns) idle = static_cast<double>(s.raw_mw);
  b.lag = b.sample_period;
  for (const auto& s : t.samples) {
    if (s.t_mono_ns < t.load_begin_ns) continue;
    b.lag = to_seconds(Nanos(s.t_mono_ns - t.load_begin_ns));
    if (static_cast<double>(s.raw_mw) >= idle + 0.95 * (settled - idle)) break;
  }
  return b;
}

} // namespace hebe::measure
