#include "measure/gates.hpp"

#include "measure/holding.hpp"
#include "measure/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace hebe::measure {
namespace {

std::optional<double> difference(const Result<std::int64_t>& from, const Result<std::int64_t>& to) {
  if (!from || !to) return std::nullopt;
  return static_cast<double>(*to - *from);
}

// A limit that is wider where the power limit held the clock down, by how long it did.
double widened(double limit, const std::optional<double>& capped, double share) {
  return limit + share * (capped.value_or(limit) - limit);
}

struct Gates {
  std::vector<GateResult> list;

  // value <= limit; a value that could not be read fails only where `required`.
  void at_most(const char* name, RefusalCode code, std::optional<double> value,
               std::optional<double> limit, bool required = false) {
    const bool passed = !limit || (value ? *value <= *limit : !required);
    list.push_back({name, code, passed, value, limit});
  }
};

constexpr const char* kIdleBefore = "idle_before_s";
constexpr double kNsToS = 1e-9;
// Of a counter whose updates are known. An H200's agrees with its samples within 0.05 % in windows
// of 1 s and longer (docs/meters.md).
constexpr double kTimedAgreement = 0.01;

} // namespace

bool at_power_limit(const meter::Boundary& b) {
  constexpr std::int64_t kPowerCap = 0x04; // of the instant's reasons, which old drivers have alone
  return b.event_reasons && (*b.event_reasons & kPowerCap) != 0;
}

// Hardware slowdown, sync boost, software and hardware thermal slowdown, power brake.
std::int64_t voiding_reasons(const meter::Boundary& b) {
  constexpr std::int64_t kVoiding = 0x08 | 0x10 | 0x20 | 0x40 | 0x80;
  return b.event_reasons ? *b.event_reasons & kVoiding : 0;
}

double capped_share(const meter::Boundary& from, const meter::Boundary& to, Nanos between) {
  const auto held = difference(from.throttle.power_cap_ns, to.throttle.power_cap_ns);
  if (held && between > Nanos(0))
    return std::clamp(*held / static_cast<double>(between.count()), 0.0, 1.0);
  return at_power_limit(from) && at_power_limit(to) ? 1 : 0;
}

Seconds pre_roll_for(const MeterBehaviour& behaviour) {
  if (behaviour.response.record) return behaviour.response.record->pre_roll;
  constexpr double kLags = 5;        // PROTOCOL: at least five times the meter's lag
  constexpr double kShortest = 0.25; // s
  return Seconds(std::max(kLags * behaviour.lag.value(), kShortest));
}

Seconds shortest_window(const Tier& tier, const KnownResponse& response) {
  if (!tier.is_evidence || !response.record) return tier.min_window;
  return std::max(tier.min_window, response.record->minimum_window);
}

std::vector<GateResult> judge_window(const WindowReading& w, const WindowEstimate& e,
                                     const Tier& tier, const MeterBehaviour& behaviour,
                                     const Reference& reference, bool clock_jumped) {
  using enum RefusalCode;
  Gates g;
  const double length_s = to_seconds(Nanos(w.end_ns - w.begin_ns)).value();

  g.at_most("clock_jump", clock_jump, clock_jumped ? 1 : 0, 0);
  g.at_most("samples_missing_ratio", e.samples == 0 ? meter_empty : meter_gap, 1 - e.coverage,
            1 - tier.min_coverage);
  g.at_most("sample_gap_s", meter_gap, e.max_gap.value(), tier.max_sample_gap.value());
  g.at_most("power_known", meter_gap, e.mean_power ? 0 : 1, 0);
  // Brief overshoot is real, a mean far over the limit is not.
  g.at_most("power_plausible_ratio", meter_implausible,
            e.mean_power && reference.power_limit
                ? std::optional(*e.mean_power / *reference.power_limit)
                : std::nullopt,
            1.3, tier.is_evidence);

  // A live sensor's last digits move: under a steady load an H200 shows one value for 0.10 s at
  // most (evidence/h200-aa). Judged after plausibility: a value that cannot be true often repeats
  // as well.
  g.at_most("samples_frozen_s", meter_frozen, e.longest_repeat.value(),
            std::min(tier.max_repeat.value(), length_s / 2));

  const auto counted = difference(w.begin.energy_mj, w.end.energy_mj);
  g.at_most("counter_backwards_mj", meter_backwards,
            counted ? std::optional(-*counted) : std::nullopt, 0, true);
  g.at_most("counter_frozen", meter_frozen, counted && *counted == 0 ? 1 : 0, 0);
  if (e.mean_power && e.counter_power && counted && *counted > 0) {
    // The counter is cached: each read may be one update old, whichever way. Where its updates are
    // known that is no excuse, but for a read that came as it moved.
    const double limit =
        e.counter_updates
            ? std::min(tier.meter_agreement, kTimedAgreement) +
                  static_cast<double>(e.doubtful_edges) / static_cast<double>(*e.counter_updates)
            : tier.meter_agreement + behaviour.counter_period.value() / length_s;
    g.at_most("meter_disagreement_ratio", meter_disagreement,
              std::abs(*e.counter_power / *e.mean_power - 1), limit);
  }

  const auto held_down = [&](const Result<std::int64_t>& a, const Result<std::int64_t>& b) {
    const auto ns = difference(a, b);
    return ns ? std::optional(*ns * kNsToS) : std::nullopt;
  };
  g.at_most("thermal_throttle_s", throttled,
            held_down(w.begin.throttle.thermal_ns, w.end.throttle.thermal_ns), 0);
  g.at_most("hw_thermal_throttle_s", throttled,
            held_down(w.begin.throttle.hw_thermal_ns, w.end.throttle.hw_thermal_ns), 0);
  g.at_most("power_brake_s", throttled,
            held_down(w.begin.throttle.power_brake_ns, w.end.throttle.power_brake_ns), 0);
  g.at_most("sync_boost_s", throttled, held_down(w.begin.throttle.sync_ns, w.end.throttle.sync_ns),
            0);
  // A kernel on the power cap is a fact about the kernel, not a fault of the window.
  g.at_most("power_cap_s", throttled,
            held_down(w.begin.throttle.power_cap_ns, w.end.throttle.power_cap_ns), std::nullopt);

  // The instant's reasons back up the cumulative times, which old drivers lack.
  std::optional<double> reasons;
  if (w.begin.event_reasons && w.end.event_reasons)
    reasons = static_cast<double>(voiding_reasons(w.begin) | voiding_reasons(w.end));
  g.at_most("voiding_event_reasons", throttled, reasons, 0, tier.is_evidence);

  std::optional<double> clock_change;
  if (w.begin.sm_clock_mhz && w.end.sm_clock_mhz && *w.begin.sm_clock_mhz > 0)
    clock_change = std::abs(
        static_cast<double>(*w.end.sm_clock_mhz) / static_cast<double>(*w.begin.sm_clock_mhz) - 1);
  const double share = capped_share(w.begin, w.end, Nanos(w.end_ns - w.begin_ns));
  g.at_most("sm_clock_change_ratio", throttled, clock_change,
            widened(tier.max_clock_change, tier.max_capped_clock_change, share), tier.is_evidence);
  std::optional<double> drift;
  if (w.end.temperature_c && reference.temperature_c)
    drift = std::abs(static_cast<double>(*w.end.temperature_c) - *reference.temperature_c);
  // Of one arm alone it is reported: the pair is judged, in which both have their share.
  g.at_most("job_temperature_drift_c", not_stable, drift,
            tier.max_job_drift && !tier.drift_beyond_arms
                ? std::optional(tier.max_job_drift->value())
                : std::nullopt,
            true);
  g.at_most("replay_cv_ratio", gate_failed, w.replay_cv,
            widened(tier.max_replay_cv, tier.max_capped_replay_cv, share));
  const auto expected = reference.latency[static_cast<std::size_t>(w.arm)];
  // Latency is an outcome: a window is not redrawn for it, only reported.
  if (expected.value() > 0)
    g.at_most("latency_shift_ratio", gate_failed, std::abs(w.latency() / expected - 1),
              std::nullopt);
  g.at_most(kIdleBefore, gate_failed, w.idle_before.value(), tier.max_idle.value());
  g.at_most("window_too_short_s", gate_failed,
            (shortest_window(tier, behaviour.response) - w.elapsed).value(), 0);
  g.at_most("pre_roll_too_short_s", gate_failed, (pre_roll_for(behaviour) - w.pre_roll).value(), 0);
  // Host and device must agree on how long the window was, or samples are laid over the wrong
  // stretch.
  g.at_most("host_device_time_s", clock_jump, std::abs(length_s - w.elapsed.value()), 0.005);
  return g.list;
}

std::string told(const GateResult& gate, const WindowReading& reading) {
  const auto number = [](const std::optional<double>& v, const char* absent) {
    return v ? fmt::format("{:.6g}", *v) : absent;
  };
  auto out = fmt::format("{} = {}, limit {}", gate.name, number(gate.value, "unknown"),
                         number(gate.limit, "none"));
  const auto& times = reading.pre_roll_replays;
  if (gate.name != kIdleBefore || times.empty()) return out;
  const auto [shortest, longest] = std::ranges::minmax_element(times);
  return out +
         fmt::format(": of the {} replays before it the shortest took {:.1f} ms, the longest, "
                     "number {}, {:.1f}",
                     times.size(), 1e3 * *shortest, longest - times.begin() + 1, 1e3 * *longest);
}

namespace {

constexpr const char *kWithinPair = "pair_temperature_drift_c",
                     *kOfPair = "pair_mean_temperature_drift_c";

// At the ends of a pair's windows, C; none where one was not read.
std::optional<double> b_less_a(const WindowReading& first, const WindowReading& second) {
  if (!first.end.temperature_c || !second.end.temperature_c) return std::nullopt;
  const auto later = static_cast<double>(*second.end.temperature_c - *first.end.temperature_c);
  return first.arm == 0 ? later : -later;
}

double own_difference(std::span<const Window> windows) {
  std::vector<double> all;
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2)
    if (const auto d = b_less_a(windows[i].reading, windows[i + 1].reading)) all.push_back(*d);
  return all.empty() ? 0 : median_of(all);
}

std::vector<GateResult> judged_pair(const WindowReading& first, const WindowReading& second,
                                    const Tier& tier, const Reference& reference, double own) {
  const auto limit_of = [](const std::optional<Celsius>& c) {
    return c ? std::optional(c->value()) : std::nullopt;
  };
  const auto difference = b_less_a(first, second);
  Gates g;
  g.at_most(kWithinPair, RefusalCode::not_stable,
            difference ? std::optional(std::abs(*difference - own)) : std::nullopt,
            limit_of(tier.max_pair_drift), true);
  if (!tier.drift_beyond_arms) return g.list;
  auto from_warm_up = above_reference(first, second, reference);
  if (from_warm_up) from_warm_up = std::abs(*from_warm_up);
  g.at_most(kOfPair, RefusalCode::not_stable, from_warm_up, limit_of(tier.max_job_drift), true);
  return g.list;
}

} // namespace

void judge_temperatures(std::span<Window> windows, const Tier& tier, const Reference& reference,
                        bool is_aa) {
  const double own = tier.drift_beyond_arms && !is_aa ? own_difference(windows) : 0;
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2) {
    auto &first = windows[i], &second = windows[i + 1];
    std::erase_if(second.gates,
                  [](const auto& g) { return g.name == kWithinPair || g.name == kOfPair; });
    std::ranges::move(judged_pair(first.reading, second.reading, tier, reference, own),
                      std::back_inserter(second.gates));
  }
}

} // namespace hebe::measure
