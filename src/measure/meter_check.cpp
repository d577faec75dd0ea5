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

// Idle is the last sample before the launch: the caller leaves the GPU idle long enough for it to
// be one.
double idle_mw(const MeterTrial& t) {
  double idle = static_cast<double>(t.samples.front().raw_mw);
  for (const auto& s : t.samples)
    if (s.t_mono_ns <= t.load_begin_ns) idle = static_cast<double>(s.raw_mw);
  return idle;
}

// From the first launch to the first sample at or over `level`; to the last one if there is none.
Seconds time_to(const MeterTrial& t, double level_mw) {
  std::int64_t last = t.load_begin_ns;
  for (const auto& s : t.samples) {
    if (s.t_mono_ns < t.load_begin_ns) continue;
    last = s.t_mono_ns;
    if (static_cast<double>(s.raw_mw) >= level_mw) break;
  }
  return to_seconds(Nanos(last - t.load_begin_ns));
}

// The step of the arm that began, by its own level: what a response record can be held against.
std::optional<Seconds> step_lag(const MeterTrial& t) {
  constexpr std::int64_t kFrom = 500'000'000, kTo = 1'000'000'000; // within its first block
  constexpr double kClear = 20; // times the settled samples' own spread
  double n = 0, sum = 0, squares = 0;
  for (const auto& s : t.samples) {
    const auto since = s.t_mono_ns - t.load_begin_ns;
    if (since < kFrom || since >= kTo) continue;
    const auto mw = static_cast<double>(s.raw_mw);
    n += 1, sum += mw, squares += mw * mw;
  }
  if (n < 5) return std::nullopt;
  const double level = sum / n, idle = idle_mw(t);
  const double spread = std::sqrt(std::max(0.0, squares / n - level * level));
  if (level - idle < kClear * spread) return std::nullopt;
  return time_to(t, idle + 0.95 * (level - idle));
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
  const double idle = idle_mw(t);
  b.lag = time_to(t, idle + 0.95 * (settled - idle));
  b.step_lag = step_lag(t);
  return b;
}

} // namespace hebe::measure
