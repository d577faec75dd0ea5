#include "meter/power_sampler.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace hebe::meter {
namespace {
double thread_cpu_seconds() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) * 1e-9;
}
} // namespace

PowerSampler::PowerSampler(BoardMeter& meter, Clock& clock, Nanos period)
    : meter_(meter), clock_(clock), period_(period) {}

void PowerSampler::start() {
  drain_now();
  subscription_ = clock_.every(period_, [this] { drain_now(); });
}

void PowerSampler::stop() {
  subscription_.cancel();
  drain_now();
}

void PowerSampler::drain_now() {
  const double cpu_before = thread_cpu_seconds();
  std::lock_guard lock(mutex_);
  if (record_.failure) return;
  const auto mono_ns = clock_.now().time_since_epoch().count();
  const auto offset_ns = clock_.wall_us() * 1000 - mono_ns;
  const bool jumped = last_offset_ns_ && std::abs(offset_ns - *last_offset_ns_) > kJumpNs;
  last_offset_ns_ = offset_ns;
  auto fresh = meter_.read_power_samples(jumped ? 0 : last_wall_us_);
  if (!fresh) {
    record_.failure = fresh.error();
    return;
  }
  if (jumped) {
    // Which of the two clocks stamped a sample cannot be told: nothing that is in the buffer now is
    // used, neither here nor when its stamp looks right later.
    record_.clock_jumps_ns.push_back(mono_ns);
    distrusted_us_.clear();
    for (const auto& s : *fresh) distrusted_us_.push_back(s.wall_us);
    last_wall_us_ = (mono_ns + offset_ns) / 1000;
    last_mono_ns_ = mono_ns;
  }
  Drain drain{mono_ns, offset_ns, 0, 0};
  for (const auto& s : *fresh) {
    const AlignedSample aligned{s.wall_us * 1000 - offset_ns, s.wall_us, s.raw_mw};
    // Seen before, or stamped by a clock that has since stepped back: it would lie in the future.
    if (aligned.t_mono_ns <= last_mono_ns_ || aligned.t_mono_ns > mono_ns + kJumpNs) continue;
    if (std::find(distrusted_us_.begin(), distrusted_us_.end(), s.wall_us) != distrusted_us_.end())
      continue;
    last_wall_us_ = s.wall_us;
    last_mono_ns_ = aligned.t_mono_ns;
    record_.samples.push_back(aligned);
    ++drain.samples;
  }
  drain.newest_age_ns = mono_ns - last_mono_ns_;
  record_.drains.push_back(drain);
  record_.cpu += Seconds(thread_cpu_seconds() - cpu_before);
}

SamplerRecord PowerSampler::record() const {
  std::lock_guard lock(mutex_);
  return record_;
}

std::vector<AlignedSample> PowerSampler::between(std::int64_t from, std::int64_t to) const {
  std::lock_guard lock(mutex_);
  const auto& all = record_.samples;
  const auto first =
      std::partition_point(all.begin(), all.end(), [&](auto& s) { return s.t_mono_ns < from; });
  const auto last =
      std::partition_point(first, all.end(), [&](auto& s) { return s.t_mono_ns <= to; });
  return {first, last};
}

std::optional<Refusal> PowerSampler::failure() const {
  std::lock_guard lock(mutex_);
  return record_.failure;
}

bool PowerSampler::jumped_in(std::int64_t from, std::int64_t to) const {
  std::lock_guard lock(mutex_);
  return std::any_of(record_.clock_jumps_ns.begin(), record_.clock_jumps_ns.end(),
                     [&](auto t) { return t >= from && t <= to; });
}

} // namespace hebe::meter
