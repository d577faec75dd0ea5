#include "gpu/sim_board.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

namespace hebe::gpu {
namespace {
constexpr std::array<std::pair<std::string_view, FaultKind>, 36> kFaultNames = {{
    {"counter_frozen", FaultKind::counter_frozen},
    {"counter_backwards", FaultKind::counter_backwards},
    {"counter_reset", FaultKind::counter_reset},
    {"counter_unsupported", FaultKind::counter_unsupported},
    {"samples_frozen", FaultKind::samples_frozen},
    {"samples_empty", FaultKind::samples_empty},
    {"samples_gap", FaultKind::samples_gap},
    {"samples_implausible", FaultKind::samples_implausible},
    {"samples_unsupported", FaultKind::samples_unsupported},
    {"counter_wraps", FaultKind::counter_wraps},
    {"samples_zero", FaultKind::samples_zero},
    {"samples_foreign_clock", FaultKind::samples_foreign_clock},
    {"field_frozen", FaultKind::field_frozen},
    {"field_stale", FaultKind::field_stale},
    {"field_lies", FaultKind::field_lies},
    {"field_wrong_unit", FaultKind::field_wrong_unit},
    {"field_implausible", FaultKind::field_implausible},
    {"field_denied", FaultKind::field_denied},
    {"temperature_unsupported", FaultKind::temperature_unsupported},
    {"meter_lies", FaultKind::meter_lies},
    {"nvml_lost", FaultKind::nvml_lost},
    {"foreign_process", FaultKind::foreign_process},
    {"context_stays", FaultKind::context_stays},
    {"thermal_throttle", FaultKind::thermal_throttle},
    {"power_brake", FaultKind::power_brake},
    {"power_drift", FaultKind::power_drift},
    {"ambient_rise", FaultKind::ambient_rise},
    {"latency_jitter", FaultKind::latency_jitter},
    {"clock_jump", FaultKind::clock_jump},
    {"ecc_error", FaultKind::ecc_error},
    {"mig", FaultKind::mig},
    {"wrong_output", FaultKind::wrong_output},
    {"lease_removed", FaultKind::lease_removed},
    {"reboot", FaultKind::reboot},
    {"driver_update", FaultKind::driver_update},
    {"board_swap", FaultKind::board_swap},
}};
constexpr Celsius kLeakageReference{45};
} // namespace

Result<Fault> fault_from(std::string_view text) {
  const auto at = text.find('@');
  const auto name = text.substr(0, at);
  Fault fault{};
  if (at != std::string_view::npos) {
    const auto number = text.substr(at + 1);
    double seconds = 0;
    const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), seconds);
    if (ec != std::errc{} || end != number.data() + number.size() || !(seconds >= 0) ||
        seconds > 1e6)
      return refuse(RefusalCode::bad_argument,
                    "\"" + std::string(number) + "\" is no time in seconds for a fault",
                    "write NAME@SECONDS, e.g. samples_gap@60");
    fault.after = Seconds(seconds);
  }
  std::string all;
  for (const auto& [known, kind] : kFaultNames) {
    if (known == name) {
      fault.kind = kind;
      return fault;
    }
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return refuse(RefusalCode::bad_argument, "unknown fault \"" + std::string(name) + "\"",
                "use one of " + all);
}

std::string to_string(const Fault& fault) {
  std::string text;
  for (const auto& [name, kind] : kFaultNames)
    if (kind == fault.kind) text = name;
  std::array<char, 32> number{};
  const auto end =
      std::to_chars(number.data(), number.data() + number.size(), fault.after.value()).ptr;
  return text + "@" + std::string(number.data(), end);
}

SimBoard::SimBoard(VirtualClock& clock, BoardModel model, std::uint64_t seed,
                   std::vector<Fault> faults)
    : clock_(clock), model_(model), seed_(seed), faults_(std::move(faults)), noise_(seed, 0x5b0a),
      start_(clock.now()) {
  // Meters look a little into the past: the board was idle and cool before the run began.
  const double celsius = model_.ambient.value() + model_.kelvin_per_watt * model_.idle.value();
  const auto before = start_ - std::chrono::seconds(5);
  segments_.push_back({before, start_, model_.idle.value(), celsius, 0, 0, 1, 0});
}

std::optional<Fault> SimBoard::active(FaultKind kind, Instant at) const {
  std::optional<Fault> latest; // of several of a kind, the one that began last
  for (const auto& fault : faults_)
    if (fault.kind == kind && at >= start_ + to_nanos(fault.after) &&
        (!latest || fault.after > latest->after))
      latest = fault;
  return latest;
}

double SimBoard::static_watts(double celsius) const {
  const double base = has_context_ ? model_.context_idle.value() : model_.idle.value();
  return base * (1 + model_.leakage_per_kelvin * (celsius - kLeakageReference.value()));
}

void SimBoard::open_context() {
  idle_until(clock_.now()); // the past was without one
  has_context_ = true;
}

void SimBoard::append(Instant end, double watts, double stretch) const {
  const auto& last = segments_.back();
  if (end <= last.end) return;
  const double seconds = to_seconds(end - last.end).value();
  const double last_seconds = to_seconds(last.end - last.begin).value();
  const double turns = to_seconds(last.end - start_).value() / model_.ambient_swing_period.value();
  const double ambient = model_.ambient.value() +
                         model_.ambient_swing.value() * std::sin(2 * std::numbers::pi * turns) +
                         (active(FaultKind::ambient_rise, last.end) ? 8.0 : 0.0);
  const double settled = ambient + model_.kelvin_per_watt * watts;
  const double decay = std::exp(-seconds / model_.thermal_time_constant.value());
  segments_.push_back({last.end, end, watts, settled + (last.celsius_end - settled) * decay,
                       last.joules_before + last.watts * last_seconds,
                       last.capped_before + (last.capped() ? last_seconds : 0), stretch,
                       behind(last, last.end)});
}

void SimBoard::idle_until(Instant t) const {
  // Idle is cut into pieces so that leakage follows the cooling.
  while (segments_.back().end < t)
    append(std::min(t, segments_.back().end + std::chrono::milliseconds(50)),
           static_watts(segments_.back().celsius_end), 1);
}

Instant SimBoard::enqueue(const Work& work, std::uint32_t launches) {
  idle_until(clock_.now());
  const auto begin = segments_.back().end;
  const double memory = work.bytes / model_.bandwidth, compute = work.operations / model_.flops;
  double seconds = (std::max(memory, compute) + model_.launch_overhead.value()) * work.time_scale;
  double noise = model_.latency_noise;
  if (active(FaultKind::latency_jitter, begin)) noise *= 50;
  seconds *= 1 + noise * noise_.normal();
  if (active(FaultKind::thermal_throttle, begin)) seconds *= 1.25;
  double dynamic =
      (work.bytes * model_.joules_per_byte + work.operations * model_.joules_per_operation) *
      work.energy_scale;
  const double length = seconds * launches;
  const double keep = std::exp(-length / model_.wander_time.value());
  wander_ = wander_ * keep + model_.power_wander * std::sqrt(1 - keep * keep) * noise_.normal();
  dynamic *= 1 + wander_;
  if (auto drift = active(FaultKind::power_drift, begin))
    dynamic *= 1 + 0.0001 * (to_seconds(begin - start_) - drift->after).value();
  constexpr std::chrono::milliseconds kRest{100}; // of the control: it begins anew after one
  if (!busy_until_ || begin > *busy_until_ + kRest) busy_since_ = begin;
  const double still = static_watts(segments_.back().celsius_end);
  const double limit = model_.power_limit.value();
  double stretch = 1, watts = 0;
  if (still + dynamic / seconds > limit && limit > still) {
    // The clocks fall until the limit holds, where the control has come to rest.
    const double allowed = (limit - still) * (1 + limit_swing(begin));
    const double slowed = std::max(dynamic / allowed, seconds);
    stretch = slowed / seconds;
    seconds = slowed;
    watts = still + dynamic / seconds;
    if (stretch > 1 && compute > memory)
      seconds *= 1 + capped_wander(begin); // memory has a clock of its own
  }
  if (stretch == 1 && compute > memory) {
    const double recovery = model_.capped_clock_recovery.value(), whole = seconds * launches;
    seconds *=
        1 + behind(segments_.back(), begin) * recovery / whole * (1 - std::exp(-whole / recovery));
  }
  // The control holds the power, whatever the clock does meanwhile.
  if (stretch == 1) watts = still + dynamic / seconds;
  append(begin + to_nanos(Seconds(seconds * launches)), watts, stretch);
  busy_until_ = segments_.back().end;
  return segments_.back().end;
}

double SimBoard::limit_swing(Instant at) const {
  const double late = to_seconds(at - *busy_since_).value() - model_.limit_delay.value();
  if (model_.limit_swing == 0) return 0;
  if (late < 0) return std::numeric_limits<double>::infinity(); // the control has seen nothing yet
  const double phase = 2 * std::numbers::pi * late / model_.limit_swing_period.value();
  return -model_.limit_swing * std::sin(phase) *
         std::exp(-(late + model_.limit_delay.value()) / model_.limit_swing_time.value());
}

Instant SimBoard::idle_from() const { return std::max(clock_.now(), segments_.back().end); }

const SimBoard::Segment* SimBoard::segment_at(Instant t) const {
  // The first segment that ends after t. Look-ups move little, so it is sought from the last one.
  auto i = std::min(last_segment_, segments_.size());
  for (int steps = 0; steps < 16 && i < segments_.size() && segments_[i].end <= t; ++steps) ++i;
  for (int steps = 0; steps < 16 && i > 0 && segments_[i - 1].end > t; ++steps) --i;
  const bool found =
      (i == segments_.size() || segments_[i].end > t) && (i == 0 || segments_[i - 1].end <= t);
  if (!found)
    i = static_cast<std::size_t>(
        std::upper_bound(segments_.begin(), segments_.end(), t,
                         [](Instant at, const Segment& s) { return at < s.end; }) -
        segments_.begin());
  last_segment_ = i;
  return i == segments_.size() ? nullptr : &segments_[i];
}

double SimBoard::joules_until(Instant t) const {
  t = std::max(t, segments_.front().begin);
  if (const auto* s = segment_at(t))
    return s->joules_before + s->watts * to_seconds(t - s->begin).value();
  const auto& last = segments_.back(); // idle since
  return last.joules_before + last.watts * to_seconds(last.end - last.begin).value() +
         static_watts(last.celsius_end) * to_seconds(t - last.end).value();
}

Joules SimBoard::energy(Instant from, Instant to) const {
  idle_until(clock_.now());
  return Joules(joules_until(to) - joules_until(from));
}

Watts SimBoard::mean_power(Instant from, Instant to) const {
  return energy(from, to) / to_seconds(to - from);
}

Celsius SimBoard::temperature(Instant at) const {
  idle_until(clock_.now());
  const auto* s = segment_at(at);
  return Celsius(s != nullptr ? s->celsius_end : segments_.back().celsius_end);
}

double SimBoard::capped_wander(Instant at) const {
  constexpr Nanos kMoves{20'000'000}; // how long the clock stands between two of its moves
  const auto move = static_cast<std::uint64_t>(at.time_since_epoch() / kMoves);
  return model_.capped_clock_wander * (2 * Philox(seed_, move).uniform() - 1);
}

// How much longer than at the full clock a cycle takes at `at`, of a segment or at its end.
double SimBoard::behind(const Segment& segment, Instant at) const {
  if (segment.capped()) return segment.stretch * (1 + capped_wander(at)) - 1;
  const double passed = to_seconds(at - segment.begin).value();
  return segment.behind * std::exp(-passed / model_.capped_clock_recovery.value());
}

Hertz SimBoard::clock_rate(Instant at) const {
  idle_until(clock_.now());
  const auto* s = segment_at(at);
  constexpr double kStep = 15e6; // clocks of NVIDIA boards are multiples of it
  const double hertz = model_.clock.value() / (1 + behind(s ? *s : segments_.back(), at));
  return Hertz(std::round(hertz / kStep) * kStep);
}

Seconds SimBoard::capped(Instant at) const {
  const auto* s = segment_at(at);
  if (s == nullptr) s = &segments_.back();
  const double inside = s->capped() ? to_seconds(std::min(at, s->end) - s->begin).value() : 0;
  return Seconds(s->capped_before + inside);
}

} // namespace hebe::gpu
