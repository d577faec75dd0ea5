#include "measure/window_energy.hpp"

#include <algorithm>

namespace hebe::measure {
namespace {

// Power at t between two neighbours, linear. mW.
double interpolate(const meter::AlignedSample& a, const meter::AlignedSample& b, std::int64_t t) {
  const auto span = static_cast<double>(b.t_mono_ns - a.t_mono_ns);
  const double share = span > 0 ? static_cast<double>(t - a.t_mono_ns) / span : 0;
  return static_cast<double>(a.raw_mw) + share * static_cast<double>(b.raw_mw - a.raw_mw);
}

std::optional<Watts> counter_power(const WindowReading& w) {
  if (!w.begin.energy_mj || !w.end.energy_mj) return std::nullopt;
  // The value belongs to the moment it was read, not to the window's edge.
  const auto begin = w.begin.before + (w.begin.after - w.begin.before) / 2;
  const auto end = w.end.before + (w.end.after - w.end.before) / 2;
  if (end <= begin) return std::nullopt;
  return from_millijoules(*w.end.energy_mj - *w.begin.energy_mj) / to_seconds(end - begin);
}

} // namespace

WindowEstimate estimate_window(const WindowReading& w,
                               std::span<const meter::AlignedSample> samples,
                               const MeterBehaviour& behaviour) {
  WindowEstimate e;
  e.counter_power = counter_power(w);
  const auto by_time = [](const meter::AlignedSample& s, std::int64_t t) {
    return s.t_mono_ns < t;
  };
  const auto first = std::lower_bound(samples.begin(), samples.end(), w.begin_ns, by_time);
  const auto last =
      std::lower_bound(first, samples.end(), w.end_ns, by_time); // one past the inside
  e.samples = last - first;
  const double length_s = to_seconds(Nanos(w.end_ns - w.begin_ns)).value();
  if (behaviour.sample_period.value() > 0)
    e.coverage = static_cast<double>(e.samples) * behaviour.sample_period.value() / length_s;
  if (e.samples == 0 || first == samples.begin() || last == samples.end()) {
    e.max_gap = Seconds(length_s);
    return e;
  }

  for (auto from = first, s = first; s != last; ++s) {
    if (s->raw_mw != from->raw_mw) from = s;
    e.longest_repeat =
        std::max(e.longest_repeat, to_seconds(Nanos(s->t_mono_ns - from->t_mono_ns)));
  }
  double area = 0; // mW ns
  std::int64_t t = w.begin_ns, widest = 0;
  double power = interpolate(*(first - 1), *first, w.begin_ns);
  widest = std::max(widest, first->t_mono_ns - (first - 1)->t_mono_ns);
  for (auto s = first; s != last; ++s) {
    area += 0.5 * (power + static_cast<double>(s->raw_mw)) * static_cast<double>(s->t_mono_ns - t);
    widest = std::max(widest, (s + 1)->t_mono_ns - s->t_mono_ns);
    t = s->t_mono_ns;
    power = static_cast<double>(s->raw_mw);
  }
  const double edge = interpolate(*(last - 1), *last, w.end_ns);
  area += 0.5 * (power + edge) * static_cast<double>(w.end_ns - t);
  e.max_gap = to_seconds(Nanos(widest));
  e.mean_power = Watts(area / static_cast<double>(w.end_ns - w.begin_ns) * 1e-3);
  e.energy_per_launch = *e.mean_power * w.latency();
  return e;
}

} // namespace hebe::measure
