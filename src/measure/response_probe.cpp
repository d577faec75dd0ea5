#include "measure/response_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::measure {
namespace {

using std::chrono::milliseconds;
constexpr double kGolden = 0.6180339887498949;

std::int64_t ns(Instant t) { return t.time_since_epoch().count(); }

// Starts of pulses that come one after the other; what the host is late for is dropped, not
// squeezed: the edges are recorded as they were.
class Pulses {
public:
  Pulses(ProbeLoad& load, Clock& clock) : load_(load), clock_(clock) {}
  void begin(Seconds on, std::function<Seconds(int)> gap) {
    on_ = on, gap_ = std::move(gap), count_ = 0, next_ = clock_.now();
  }
  Status turn() {
    const auto now = clock_.now();
    if (now < next_) return {};
    HEBE_CHECK(load_.pulse(on_));
    next_ = std::max(now, next_ + to_nanos(on_ + gap_(count_++)));
    return {};
  }

private:
  ProbeLoad& load_;
  Clock& clock_;
  Seconds on_{0};
  std::function<Seconds(int)> gap_;
  int count_ = 0;
  Instant next_;
};

// Power fields only: a counter's call takes long, and its steps are no steps.
std::vector<meter::Discovered> quick_ones(std::vector<meter::Discovered> sources) {
  std::erase_if(sources, [](auto& s) {
    return !s.source || s.source->description().quantity != meter::Quantity::power;
  });
  return sources;
}

class ResponseProbe {
public:
  ResponseProbe(meter::BoardMeter& board, std::vector<meter::Discovered> sources, Clock& clock,
                const ResponseSchedule& schedule, const ProbeCallbacks& callbacks)
      : board_(board), clock_(clock), schedule_(schedule), callbacks_(callbacks),
        reader_(board, quick_ones(std::move(sources)), clock) {}

  Result<Recording> run() {
    HEBE_TRY(const auto opened, callbacks_.open());
    HEBE_TRY(load_, ProbeLoad::make(*opened.first, *opened.second));
    started_ = clock_.now();
    Pulses pulses(*load_, clock_);
    HEBE_CHECK(phase("idle", Level::idle, Seconds(2), {}));
    // Every step begins at another phase of a 100 ms field, so that together they show all of it.
    pulses.begin(schedule_.on, [&](int i) {
      const double phase = std::fmod(kGolden * (i + 1), 1.0);
      return Seconds(schedule_.off.value() + 0.1 * phase);
    });
    const Seconds cycle(schedule_.on.value() + schedule_.off.value() + 0.05);
    HEBE_CHECK(
        phase("steps", Level::mixed, cycle * schedule_.steps, [&] { return pulses.turn(); }));
    for (const double period : schedule_.periods) HEBE_CHECK(square(pulses, period, 0.5));
    for (const double duty : schedule_.duties) HEBE_CHECK(square(pulses, 0.1, duty));
    HEBE_CHECK(phase("idle", Level::idle, Seconds(0.5), {}));
    Recording r;
    r.phases = std::move(phases_);
    r.sources = reader_.take();
    r.sources.push_back(load_record(load_->pulses()));
    r.preferred_counter = board_.counter_source().name;
    if (const auto limit = board_.power_limit()) r.power_limit_w = limit->value();
    return r;
  }

private:
  Status square(Pulses& pulses, double period, double duty) {
    const Seconds length(std::max(schedule_.square.value(), 6 * period));
    pulses.begin(Seconds(period * duty), [=](int) { return Seconds(period * (1 - duty)); });
    HEBE_CHECK(phase(fmt::format("square {} duty {}", period, duty), Level::mixed, length,
                     [&] { return pulses.turn(); }));
    return phase("rest", Level::idle, Seconds(0.25), {});
  }

  Status phase(const std::string& name, Level level, Seconds length,
               std::function<Status()> meanwhile) {
    HEBE_CHECK(callbacks_.may_continue());
    if (callbacks_.progress) {
      const auto done = to_seconds(clock_.now() - started_), total = schedule_.total();
      callbacks_.progress({name, std::min(1.0, done / total), total - done, {}});
    }
    Phase p{name, level, ns(clock_.now()), 0, "all"};
    HEBE_CHECK(reader_.read_until(
        clock_.now() + to_nanos(length), "all", meanwhile ? meanwhile : [] { return Status{}; }));
    p.end_ns = ns(clock_.now());
    HEBE_CHECK(load_->drain()); // a pulse that was begun ends; the rest after it is idle
    reader_.drain(false);
    phases_.push_back(std::move(p));
    return {};
  }

  meter::BoardMeter& board_;
  Clock& clock_;
  const ResponseSchedule& schedule_;
  const ProbeCallbacks& callbacks_;
  SourceReader reader_;
  std::optional<ProbeLoad> load_;
  std::vector<Phase> phases_;
  Instant started_;
};

} // namespace

Seconds ResponseSchedule::total() const {
  double s = 2.5 + steps * (on.value() + off.value() + 0.05);
  for (const double p : periods) s += std::max(square.value(), 6 * p) + 0.25;
  return Seconds(s + static_cast<double>(duties.size()) * (square.value() + 0.25));
}

Result<Recording> record_response(meter::BoardMeter& board, std::vector<meter::Discovered> sources,
                                  Clock& clock, const ResponseSchedule& schedule,
                                  const ProbeCallbacks& callbacks) {
  return ResponseProbe(board, std::move(sources), clock, schedule, callbacks).run();
}

} // namespace hebe::measure
