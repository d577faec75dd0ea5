#include "measure/window_series.hpp"

#include "core/philox.hpp"
#include "measure/intervals.hpp"
#include "measure/meter_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace hebe::measure {
namespace {

constexpr Seconds kIdleBefore{0.6};    // a clean step, from which the meter's lag is read
constexpr Seconds kTrial{3};           // of the warm-up, for the meter's own check
constexpr Seconds kBlock{1};           // of the warm-up, between two looks at the board
constexpr Seconds kLongestWait{3};     // for the samples behind a window
constexpr Seconds kSamplesArrive{0.3}; // by then a window's last samples are in the buffer
constexpr Seconds kClocksFollow{0.3};  // a load's power, by the board's own control
// A power limit takes hold late and then swings: after idleness an H200 ran for 0.8 s at 784 W,
// then went 507, 778, 567, 760, 614 W, once a second (evidence/h200-tunes-widths, 224958Z).
constexpr Seconds kRested{0.1};      // without load, after which it takes hold anew
constexpr Seconds kSwing{1.2};       // a whole one
constexpr Seconds kLongestSwing{10}; // by then those had died away
constexpr Seconds kLook{0.1};        // between two looks at the clock meanwhile
constexpr Seconds kTimed{0.3};       // of replays, for the time that one takes
constexpr double kReserve = 1.02;    // a board that speeds up must not make windows too short

constexpr std::size_t kFewestBatches = 4;

// Samples in a batch whose mean hardly depends on its neighbour's.
std::size_t batch_length(double memory) {
  return static_cast<std::size_t>(std::max(2.0, std::ceil(2 * memory)));
}

std::int64_t ns(Instant t) { return t.time_since_epoch().count(); }

EdgeCounts counts_of(const meter::Boundary& begin, const meter::Boundary& end) {
  // A value belongs to the moment it was read.
  const auto at = [](const meter::Boundary& b) { return b.before + (b.after - b.before) / 2; };
  return {begin.energy_mj ? std::optional(*begin.energy_mj) : std::nullopt,
          end.energy_mj ? std::optional(*end.energy_mj) : std::nullopt,
          to_seconds(at(end) - at(begin))};
}

} // namespace

std::optional<double> batch_error(std::span<const double> values, double memory) {
  constexpr std::size_t kMostBatches = 20;
  const auto shortest = batch_length(memory);
  const auto count = std::min(kMostBatches, values.size() / shortest);
  if (count < kFewestBatches) return std::nullopt;
  const auto length = values.size() / count; // what is left over at the end is in no batch
  std::vector<double> means;
  for (std::size_t b = 0; b < count; ++b) {
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += values[b * length + i];
    means.push_back(sum / static_cast<double>(length));
  }
  double mean = 0, squares = 0;
  for (const double m : means) mean += m / static_cast<double>(count);
  for (const double m : means) squares += (m - mean) * (m - mean);
  const auto df = static_cast<double>(count - 1);
  const double error = std::sqrt(squares / df / static_cast<double>(count));
  constexpr double kNormal95 = 1.959963984540054;
  return error * t_exceeded_with(0.025, df) / kNormal95;
}

WindowSeries::WindowSeries(gpu::Device& device, meter::BoardMeter& meter, const Tier& tier,
                           const Supervision& supervision, std::uint64_t seed)
    : device_(device), meter_(meter), tier_(tier), supervision_(supervision), seed_(seed),
      sampler_(meter, device.clock()), watch_(meter) {
  watch_.remember(supervision.own_pids);
  reference_.power_limit = watch_.power_limit();
  sampler_.start();
}

Status WindowSeries::still_fit() {
  HEBE_CHECK(supervision_.may_continue());
  HEBE_CHECK(watch_.still_fit(supervision_.own_pids));
  if (auto failure = sampler_.failure()) return std::unexpected(*failure);
  return {};
}

Status WindowSeries::warm_up(const SteadyLoad& load, Seconds at_least) {
  device_.clock().sleep_for(to_nanos(kIdleBefore));
  HEBE_TRY(auto stream, ReplayStream::make(device_, {load.graph, load.graph}));
  const auto begin = device_.clock().now();
  std::optional<meter::Boundary> first;
  bool checked = false;
  while (!checked || to_seconds(device_.clock().now() - begin) < at_least) {
    HEBE_CHECK(still_fit());
    HEBE_TRY(const auto stretch, stream.replay_for(0, kBlock, load.replay_time, tier_.max_idle));
    HEBE_TRY(const auto boundary, meter_.read_boundary());
    sampler_.drain_now();
    reference_.latency[0] = (stretch.device + stretch.idle) / static_cast<double>(stretch.replays) /
                            load.launches_per_replay;
    if (boundary.temperature_c) reference_.temperature_c = *boundary.temperature_c;
    if (boundary.sm_clock_mhz) clock_mhz_ = *boundary.sm_clock_mhz;
    if (!first) first = boundary;
    if (checked || to_seconds(device_.clock().now() - begin) <= kTrial) continue;
    if (auto failure = sampler_.failure()) return std::unexpected(*failure);
    const auto record = sampler_.record();
    HEBE_TRY(behaviour_,
             check_meter({record.samples, ns(begin), *first, boundary, reference_.power_limit}));
    auto& b = behaviour_;
    b.response = supervision_.response;
    if (b.response.record && b.step_lag &&
        !agrees_with_step(*b.response.record, *b.step_lag, b.sample_period))
      return refuse(RefusalCode::meter_not_qualified,
                    disagreement(*b.response.record, *b.step_lag, b.sample_period),
                    "the meter is not what it was: probe it again with `hebe probe-response`",
                    meter_.board().uuid);
    checked = true;
  }
  HEBE_CHECK(stream.drain());
  loaded_until_ = device_.clock().now();
  return {};
}

// With the board as it is meanwhile: loaded, where a stream is given, else idle.
Status WindowSeries::await_samples(ReplayStream* stream, const SteadyLoad* load,
                                   std::int64_t until_ns) {
  for (Seconds waited{0}; waited < kLongestWait; waited += kSamplesArrive) {
    if (stream != nullptr) {
      HEBE_CHECK(stream->replay_for(0, kSamplesArrive, load->replay_time, tier_.max_idle));
    } else {
      device_.clock().sleep_for(to_nanos(kSamplesArrive));
    }
    sampler_.drain_now();
    if (!sampler_.between(until_ns, std::numeric_limits<std::int64_t>::max()).empty()) break;
  }
  if (auto failure = sampler_.failure()) return std::unexpected(*failure);
  return {};
}

// The record's lag where there is one: a step is seen late by up to a sample and a launch.
double WindowSeries::memory() const {
  const auto& response = behaviour_.response.record;
  const auto lag = response ? response->lag : behaviour_.lag;
  return std::max(1.0, lag / behaviour_.sample_period);
}

// So long that its samples say how sure their mean is, a batch of them to spare.
Seconds WindowSeries::long_enough(Seconds asked) const {
  return std::max(asked, behaviour_.sample_period *
                             static_cast<double>(batch_length(memory()) * (kFewestBatches + 1)));
}

Result<std::pair<Watts, Watts>> WindowSeries::mean_power(std::int64_t begin_ns, std::int64_t end_ns,
                                                         Watts mean) const {
  std::vector<double> watts;
  for (const auto& s : sampler_.between(begin_ns, end_ns))
    watts.push_back(static_cast<double>(s.raw_mw) * 1e-3);
  const auto error = batch_error(watts, memory());
  if (!error)
    return refuse(RefusalCode::meter_gap,
                  fmt::format("{} power samples in {:.3f} s are too few to say how sure their mean "
                              "is",
                              watts.size(), to_seconds(Nanos(end_ns - begin_ns)).value()),
                  "use longer windows", meter_.samples_source().name);
  // A quiet meter still counts in whole milliwatts.
  constexpr double kRounding = 1e-3 / 3.4641016151377544; // 1 mW / sqrt(12)
  return std::pair(mean, Watts(std::hypot(*error, kRounding)));
}

Result<IdleStretch> WindowSeries::idle(Seconds asked) {
  const auto length = long_enough(asked);
  HEBE_CHECK(still_fit());
  device_.clock().sleep_for(to_nanos(std::max(pre_roll_for(behaviour_), kSamplesArrive)));
  HEBE_TRY(const auto begin, meter_.read_boundary());
  device_.clock().sleep_for(to_nanos(length));
  HEBE_TRY(const auto end, meter_.read_boundary());
  const auto begin_ns = ns(begin.before), end_ns = ns(end.before);
  HEBE_CHECK(await_samples(nullptr, nullptr, end_ns));
  HEBE_CHECK(still_fit());
  WindowReading reading;
  reading.begin_ns = begin_ns;
  reading.end_ns = end_ns;
  reading.launches_per_replay = 1;
  reading.replays = 1;
  reading.begin = begin;
  reading.end = end;
  const auto margin = to_nanos(Seconds(1)).count();
  const auto samples = sampler_.between(begin_ns - margin, end_ns + margin);
  const auto estimate = estimate_window(reading, samples, behaviour_);
  if (!estimate.mean_power || estimate.coverage < tier_.min_coverage ||
      estimate.max_gap > tier_.max_sample_gap)
    return refuse(estimate.samples == 0 ? RefusalCode::meter_empty : RefusalCode::meter_gap,
                  fmt::format("the idle board was seen by {} samples, with a gap of {:.3f} s",
                              estimate.samples, estimate.max_gap.value()),
                  "see `hebe doctor` for the board's state", meter_.samples_source().name);
  // As of a window: a live sensor's last digits move, also at idle.
  if (estimate.longest_repeat > std::min(tier_.max_repeat, length / 2))
    return refuse(RefusalCode::meter_frozen,
                  fmt::format("the idle board's samples show one value for {:.3f} s",
                              estimate.longest_repeat.value()),
                  "qualify the board's meters again: `hebe probe-meter`",
                  meter_.samples_source().name);
  const auto counted = begin.energy_mj && end.energy_mj
                           ? std::optional(*end.energy_mj - *begin.energy_mj)
                           : std::nullopt;
  if (counted && *counted <= 0)
    return refuse(*counted == 0 ? RefusalCode::meter_frozen : RefusalCode::meter_backwards,
                  fmt::format("the energy counter moved by {} mJ in {:.3f} s of idle: a chip draws "
                              "power doing nothing",
                              *counted, to_seconds(Nanos(end_ns - begin_ns)).value()),
                  "qualify the board's meters again: `hebe probe-meter`",
                  meter_.counter_source().name);
  HEBE_TRY(const auto power, mean_power(begin_ns, end_ns, *estimate.mean_power));
  IdleStretch out{power.first, power.second, to_seconds(Nanos(end_ns - begin_ns)), {}};
  if (end.sm_clock_mhz) out.sm_clock_mhz = *end.sm_clock_mhz;
  out.counts = counts_of(begin, end);
  return out;
}

// Replays until the clock holds as still as a window's gate asks for, where the power limit moves
// it; a clock that never does is left to that gate. Gives whether the limit moves it.
Result<bool> WindowSeries::until_the_clock_holds(ReplayStream& stream) {
  constexpr Seconds kAny(std::numeric_limits<double>::infinity());
  const auto begin = device_.clock().now();
  const bool rested = !loaded_until_ || to_seconds(begin - *loaded_until_) > kRested;
  const auto watched = rested ? kSwing : kClocksFollow;
  struct Look {
    Instant at;
    std::int64_t mhz;
    bool limited;
  };
  std::deque<Look> looks;
  for (;;) {
    HEBE_CHECK(supervision_.may_continue());
    HEBE_CHECK(stream.replay_for(0, kLook, kAny, kAny));
    sampler_.drain_now();
    HEBE_TRY(const auto seen, meter_.read_boundary());
    const auto now = device_.clock().now();
    if (seen.sm_clock_mhz) looks.push_back({now, *seen.sm_clock_mhz, at_power_limit(seen)});
    const bool whole = to_seconds(now - begin) >= kSwing;
    while (!looks.empty() && to_seconds(now - looks.front().at) > kSwing) looks.pop_front();
    const bool limited = std::ranges::any_of(looks, &Look::limited);
    if (to_seconds(now - begin) < watched || (limited && !whole)) continue;
    if (!limited || !tier_.max_capped_clock_change) return limited;
    const auto [least, most] = std::ranges::minmax(looks, {}, &Look::mhz);
    const auto range = static_cast<double>(most.mhz - least.mhz) / static_cast<double>(most.mhz);
    if (range <= *tier_.max_capped_clock_change || to_seconds(now - begin) > kLongestSwing)
      return true;
  }
}

// The load as it runs now. It was sized on a board that had not run it for long; where its clocks
// fall under the load (at the power limit), each replay takes longer, which is no idleness. An H200
// refused a 256 x 4096 x 4096 product for 47 ms of it. The median: a pause of the host is no part.
Result<SteadyLoad> WindowSeries::as_it_runs(ReplayStream& stream, SteadyLoad load) {
  constexpr Seconds kAny(std::numeric_limits<double>::infinity()), kOne(1e-9);
  HEBE_TRY(const bool limited, until_the_clock_holds(stream));
  if (limited) load.shortest = kSwing;
  std::vector<double> times;
  for (Seconds total{0}; total < kTimed; total += Seconds(times.back())) {
    HEBE_TRY(const auto one, stream.replay_for(0, kOne, kAny, kAny));
    times.push_back(one.device.value());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  load.replay_time = Seconds(*middle);
  return load;
}

Result<Window> WindowSeries::attempt(const SteadyLoad& sized, Seconds asked) {
  HEBE_CHECK(still_fit());
  HEBE_TRY(auto stream, ReplayStream::make(device_, {sized.graph, sized.graph}));
  HEBE_TRY(const auto load, as_it_runs(stream, sized));
  Window w;
  auto& r = w.reading;
  r.index = windows_++;
  r.launches_per_replay = load.launches_per_replay;
  const auto length = std::max(asked, load.shortest);
  r.replays =
      std::max<std::int64_t>(static_cast<std::int64_t>(ReplayStream::kDepth) + 1,
                             std::llround(std::ceil(kReserve * (length / load.replay_time))));
  // A random phase, so that no window starts in step with the meter.
  const double phase = Philox(seed_, static_cast<std::uint64_t>(r.index)).uniform();
  const auto pre_roll = std::max(pre_roll_for(behaviour_), kSamplesArrive);
  HEBE_TRY(auto before, stream.replay_for(0, pre_roll + behaviour_.counter_period * phase,
                                          load.replay_time, tier_.max_idle));
  r.begin_ns = ns(before.last.at);
  HEBE_TRY(r.begin, meter_.read_boundary());
  // By the instant alone: before the pre-roll the same load ran (as_it_runs).
  count_idle(before, load.replay_time, slower_by_clock(tier_, r.begin, r.begin, Nanos(0), false));
  r.pre_roll = before.device;
  r.idle_before = before.idle;
  r.pre_roll_replays = before.times;
  HEBE_TRY(const auto timed, stream.time_replays(0, 0, r.replays));
  r.end_ns = ns(timed.last.at);
  HEBE_TRY(r.end, meter_.read_boundary());
  r.elapsed = timed.elapsed;
  r.replay_cv = timed.cv;
  HEBE_CHECK(await_samples(&stream, &load, r.end_ns)); // loaded: the next pre-roll begins warm
  HEBE_CHECK(stream.drain());
  loaded_until_ = device_.clock().now();
  const auto margin = to_nanos(Seconds(1)).count();
  const auto samples = sampler_.between(r.begin_ns - margin, r.end_ns + margin);
  w.estimate = estimate_window(r, samples, behaviour_);
  auto own = reference_;
  own.latency[0] = load.replay_time / load.launches_per_replay;
  w.gates = judge_window(r, w.estimate, tier_, behaviour_, own,
                         sampler_.jumped_in(r.begin_ns, r.end_ns + margin / 2));
  return w;
}

Result<SeriesWindow> WindowSeries::window(const SteadyLoad& load, Seconds asked) {
  const auto length = long_enough(asked);
  const auto from = device_.clock().now();
  for (int tried = 1;; ++tried) {
    HEBE_TRY(const auto w, attempt(load, length));
    const auto failed = std::ranges::find_if(w.gates, [](auto& g) { return !g.passed; });
    if (failed != w.gates.end()) {
      if (tried < tier_.max_attempts) continue;
      return refuse(failed->code, told(*failed, w.reading) + "; no attempt passed",
                    "see `hebe doctor` for the board's state", meter_.board().uuid);
    }
    const auto& r = w.reading;
    HEBE_TRY(const auto power, mean_power(r.begin_ns, r.end_ns, *w.estimate.mean_power));
    SeriesWindow out;
    out.power = power.first;
    out.power_error = power.second;
    out.latency = r.latency();
    // Events count in half microseconds: equal replays are not known without error.
    constexpr double kLeast = 1e-6;
    out.latency_error =
        r.latency() * std::max(r.replay_cv / std::sqrt(static_cast<double>(r.replays)), kLeast);
    out.duration = to_seconds(Nanos(r.end_ns - r.begin_ns));
    out.launches = r.launches();
    out.attempts = tried;
    out.counts = counts_of(r.begin, r.end);
    out.spent = to_seconds(device_.clock().now() - from);
    return out;
  }
}

} // namespace hebe::measure
