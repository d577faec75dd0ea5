#include "measure/source_probe.hpp"

#include "core/philox.hpp"
#include "measure/external_alignment.hpp"

#include <algorithm>

namespace hebe::measure {
namespace {

using std::chrono::milliseconds;
constexpr Nanos kDrain = milliseconds(400); // an H200 holds 2.4 s
constexpr Nanos kPause = milliseconds(1);   // between rounds: a poller that takes a core heats it
constexpr std::size_t kGiveUp = 25;         // failures in a row: its status will not change

std::int64_t ns(Instant t) { return t.time_since_epoch().count(); }

class Probe {
public:
  Probe(meter::BoardMeter& board, std::vector<meter::Discovered> sources, Clock& clock,
        const ProbeSchedule& schedule, const ProbeCallbacks& callbacks)
      : board_(board), clock_(clock), schedule_(schedule), callbacks_(callbacks),
        count_(sources.size()), reader_(board, std::move(sources), clock) {}

  Result<Recording> run() {
    started_ = clock_.now();
    HEBE_CHECK(phase("idle without context", Level::idle_without_context, schedule_.idle, "all"));
    HEBE_TRY(const auto opened, callbacks_.open());
    started_ += clock_.now() - ended_; // compiling and loading are not ours
    HEBE_TRY(load_, ProbeLoad::make(*opened.first, *opened.second));
    HEBE_CHECK(rest());
    HEBE_CHECK(phase("idle", Level::idle, schedule_.idle, "all"));
    HEBE_CHECK(alone());
    HEBE_CHECK(phase("half load", Level::half, schedule_.half, "all", [this] { return half(); }));
    HEBE_CHECK(load_->drain());
    HEBE_CHECK(phase("idle before full load", Level::idle, schedule_.before, "all"));
    HEBE_CHECK(phase("full load", Level::full, schedule_.full, "all", [this] { return full(); }));
    HEBE_CHECK(load_->drain());
    if (schedule_.signature_slot.value() > 0) {
      HEBE_CHECK(rest());
      signature_begin_ = clock_.now();
      HEBE_CHECK(phase("signature", Level::mixed, schedule_.signature_slot * 127, "nothing",
                       [this] { return signature(); }));
      HEBE_CHECK(load_->drain());
    }
    HEBE_CHECK(phase("idle after load", Level::idle, schedule_.after, "all"));
    recording_.sources = reader_.take();
    recording_.preferred_counter = board_.counter_source().name;
    if (const auto limit = board_.power_limit()) recording_.power_limit_w = limit->value();
    return std::move(recording_);
  }

private:
  Status phase(
      const std::string& name, Level level, Seconds length, const std::string& polled,
      const std::function<Status()>& meanwhile = [] { return Status{}; }) {
    HEBE_CHECK(callbacks_.may_continue());
    if (callbacks_.progress) {
      const auto total = schedule_.total(count_);
      const auto done = to_seconds(clock_.now() - started_);
      callbacks_.progress({name, std::min(1.0, done / total), total - done, {}});
    }
    Phase p{name, level, ns(clock_.now()), 0, polled};
    HEBE_CHECK(reader_.read_until(clock_.now() + to_nanos(length), polled, meanwhile));
    p.end_ns = ns(clock_.now());
    reader_.drain(false);
    recording_.phases.push_back(std::move(p));
    ended_ = clock_.now();
    // Whatever the sources answer, a board that is gone ends it.
    if (const auto lost = board_.mig_enabled();
        !lost && lost.error().code == RefusalCode::device_error)
      return std::unexpected(lost.error());
    return {};
  }

  Status rest() { // heat and clocks of what came before
    return reader_.read_until(clock_.now() + milliseconds(500), "nothing", [] { return Status{}; });
  }

  // One source after the other, with quiet stretches between: what does reading it cost the board?
  Status alone() {
    HEBE_CHECK(phase("quiet", Level::idle, schedule_.quiet, "nothing"));
    for (const auto& name : reader_.pollable()) {
      HEBE_CHECK(phase("alone", Level::idle, schedule_.alone, name));
      HEBE_CHECK(phase("quiet", Level::idle, schedule_.quiet, "nothing"));
    }
    return {};
  }

  // Pulses of 10 ms every 20 ms, each beginning at a random phase, so that no cached field can lock
  // to them. What the host comes too late for is made up for.
  Status half() {
    constexpr double kPeriod = 0.02;
    const auto now = clock_.now();
    if (next_pulse_ + milliseconds(200) < now) next_pulse_ = now;
    while (next_pulse_ <= now) {
      HEBE_CHECK(load_->pulse(Seconds(kPeriod / 2)));
      next_pulse_ += to_nanos(Seconds(kPeriod * (0.75 + 0.5 * random_.uniform())));
    }
    return {};
  }

  Status full() {
    for (;;) {
      HEBE_TRY(const auto queued, load_->in_flight());
      if (queued >= 3) return {};
      HEBE_CHECK(load_->pulse(Seconds(0.1)));
    }
  }

  // One pulse a slot that is on, for what is left of it.
  Status signature() {
    static const auto kBits = on_off_signature();
    const auto slot = to_nanos(schedule_.signature_slot);
    const auto since = clock_.now() - signature_begin_;
    const auto index = static_cast<std::size_t>(since / slot);
    if (index < next_slot_ || index >= kBits.size()) return {};
    next_slot_ = index + 1;
    if (!kBits[index]) return {};
    HEBE_CHECK(load_->pulse(to_seconds(slot - since % slot)));
    return {};
  }

  meter::BoardMeter& board_;
  Clock& clock_;
  ProbeSchedule schedule_;
  const ProbeCallbacks& callbacks_;
  std::size_t count_;
  SourceReader reader_;
  Recording recording_;
  std::optional<ProbeLoad> load_;
  Instant started_, ended_, next_pulse_, signature_begin_;
  std::size_t next_slot_ = 0;
  Philox random_{0x9a11};
};

} // namespace

SourceReader::SourceReader(meter::BoardMeter& board, std::vector<meter::Discovered> sources,
                           Clock& clock)
    : board_(board), sources_(std::move(sources)), clock_(clock), next_drain_(clock.now()) {
  SourceRecord buffer;
  auto& d = buffer.description;
  d.identity = board.samples_source();
  d.quantity = meter::Quantity::power;
  d.si_per_unit = 1e-3;
  d.vendor = board.board().vendor, d.driver = board.board().driver, d.device = board.board().uuid;
  buffer.is_buffer = true;
  records_.push_back(std::move(buffer));
  for (const auto& s : sources_) {
    SourceRecord r;
    if (s.source) r.description = s.source->description();
    r.description.identity.name = s.name;
    if (s.unusable) {
      r.first_failure = s.unusable->what;
      const auto now = ns(clock.now());
      r.readings.push_back({now, now, {}, {}, {}, std::string(hebe::name_of(s.unusable->code))});
    }
    records_.push_back(std::move(r));
  }
  failures_.resize(sources_.size());
}

void SourceReader::read(std::size_t i) {
  auto& source = sources_[i];
  if (!source.source || failures_[i] >= kGiveUp) return;
  auto& record = records_[i + 1];
  const auto before = clock_.now();
  const auto value = source.source->read();
  auto row = reading_of(value, before, clock_.now());
  if (row.source_us) row.host_wall_us = clock_.wall_us();
  if (!value && record.first_failure.empty()) record.first_failure = value.error().what;
  failures_[i] = value ? 0 : failures_[i] + 1;
  record.readings.push_back(std::move(row));
}

void SourceReader::drain(bool whole) {
  auto& record = records_.front();
  const auto before = clock_.now();
  const auto samples = board_.read_power_samples(whole ? 0 : newest_us_);
  const auto after = clock_.now();
  const auto wall = clock_.wall_us();
  next_drain_ = after + kDrain;
  if (!samples || samples->empty()) {
    const auto status =
        samples ? hebe::name_of(RefusalCode::meter_empty) : hebe::name_of(samples.error().code);
    if (!samples && record.first_failure.empty()) record.first_failure = samples.error().what;
    record.readings.push_back({ns(before), ns(after), {}, {}, wall, std::string(status)});
    return;
  }
  for (const auto& s : *samples)
    record.readings.push_back({ns(before), ns(after), s.raw_mw, s.wall_us, wall, {}});
  newest_us_ = samples->back().wall_us;
}

Status SourceReader::read_until(Instant end, const std::string& polled,
                                const std::function<Status()>& meanwhile) {
  while (clock_.now() < end) {
    HEBE_CHECK(meanwhile());
    // The first drains take everything, for the buffer's length; later ones only what is new.
    if (clock_.now() >= next_drain_) drain(records_.front().readings.size() < 1000);
    bool read_any = false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (polled != "all" && polled != sources_[i].name) continue;
      read(i);
      read_any = true;
      HEBE_CHECK(meanwhile());
    }
    clock_.sleep_until(std::min(end, clock_.now() + (read_any ? kPause : 5 * kPause)));
  }
  return {};
}

std::vector<std::string> SourceReader::pollable() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].source && failures_[i] < kGiveUp) out.push_back(sources_[i].name);
  return out;
}

Result<Recording> record_sources(meter::BoardMeter& board, std::vector<meter::Discovered> sources,
                                 Clock& clock, const ProbeSchedule& schedule,
                                 const ProbeCallbacks& callbacks) {
  return Probe(board, std::move(sources), clock, schedule, callbacks).run();
}

} // namespace hebe::measure
