#include "measure/source_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace hebe::measure {
namespace {

constexpr double kNs = 1e-9;

bool reads(const Phase& p, const SourceRecord& s) {
  return s.is_buffer || p.polled == "all" || p.polled == s.description.identity.name;
}

std::int64_t middle(const Reading& r) { return r.before_ns + (r.after_ns - r.before_ns) / 2; }

// Calls `visit(previous, next, phase)` for neighbouring good readings of one phase.
template <class Visit>
void each_neighbours(const SourceRecord& s, std::span<const Phase> phases, Visit visit) {
  for (const auto& phase : phases) {
    if (!reads(phase, s)) continue;
    const Reading* previous = nullptr;
    auto r = std::partition_point(s.readings.begin(), s.readings.end(),
                                  [&](auto& x) { return x.before_ns < phase.begin_ns; });
    for (; r != s.readings.end() && r->before_ns <= phase.end_ns; ++r) {
      if (!r->raw) continue;
      if (previous != nullptr) visit(*previous, *r, phase);
      previous = &*r;
    }
  }
}

// One fall of a counter: a wrap, a reset, or neither.
void classify_fall(CounterBehaviour& b, const SourceRecord& s, std::int64_t from, std::int64_t to) {
  ++b.falls;
  const auto near = [&](double full) {
    return static_cast<double>(from) > 0.9 * full && static_cast<double>(from) <= full &&
           static_cast<double>(to) < 0.1 * full;
  };
  std::string kind = "it lost a part of its value";
  if (const auto full = s.description.wraps_at; full && near(static_cast<double>(*full))) {
    ++b.declared_wraps;
    kind = fmt::format("it wraps at {}, as declared", *full);
  } else {
    int bits = 0;
    for (const int wide : {31, 32, 48})
      if (bits == 0 && near(std::ldexp(1.0, wide))) bits = wide;
    if (bits != 0) {
      ++b.undeclared_wraps;
      kind = fmt::format("it wraps at 2^{}, which nobody declared", bits);
    } else if (to < from / 10) {
      ++b.resets;
      kind = "it was reset";
    }
  }
  if (b.what.empty() || b.falls == 1)
    b.what = fmt::format("{} -> {} {}: {}", from, to, s.description.identity.unit, kind);
}

void count_status(SourceStatistics& out, const SourceRecord& s) {
  std::map<std::string, std::size_t> failures;
  std::vector<double> costs;
  std::int64_t last_before = -1;
  for (const auto& r : s.readings) {
    if (r.raw) {
      ++out.readings;
      out.zeros += *r.raw == 0 ? 1 : 0;
      out.least = std::min(out.least.value_or(*r.raw), *r.raw);
      out.most = std::max(out.most.value_or(*r.raw), *r.raw);
    } else {
      ++out.failed;
      ++failures[r.status];
    }
    if (r.before_ns != last_before) // the samples of one drain share its call
      costs.push_back(static_cast<double>(r.after_ns - r.before_ns) * kNs);
    last_before = r.before_ns;
  }
  std::size_t most = 0;
  for (const auto& [code, count] : failures)
    if (count > most) most = count, out.failure = code;
  out.call_s = spread_of(std::move(costs));
}

// The distinct samples by stamp, with the raw values.
std::map<std::int64_t, const Reading*> by_stamp(const SourceRecord& s) {
  std::map<std::int64_t, const Reading*> out;
  for (const auto& r : s.readings)
    if (r.raw && r.source_us) out.emplace(*r.source_us, &r);
  return out;
}

void describe_buffer(SourceStatistics& out, const SourceRecord& s) {
  const auto distinct = by_stamp(s);
  std::vector<double> periods;
  std::optional<std::int64_t> last_us, last_raw;
  for (const auto& [us, r] : distinct) {
    if (last_us) periods.push_back(static_cast<double>(us - *last_us) * 1e-6);
    if (last_raw && *r->raw != *last_raw) {
      const auto step = std::abs(*r->raw - *last_raw);
      out.smallest_step = std::min(out.smallest_step.value_or(step), step);
    }
    last_us = us, last_raw = *r->raw;
  }
  out.period_s = spread_of(std::move(periods));
  out.period_from = "own time stamps";
  std::size_t length = 0;
  for (auto r = s.readings.begin(); r != s.readings.end();) {
    const auto end =
        std::find_if(r, s.readings.end(), [&](auto& x) { return x.before_ns != r->before_ns; });
    const auto count = static_cast<std::size_t>(end - r);
    if (r->raw && count > length) {
      length = count;
      const auto [low, high] = std::minmax_element(r, end, [](auto& a, auto& b) {
        return a.source_us.value_or(0) < b.source_us.value_or(0);
      });
      out.buffer_length = count;
      out.buffer_span_s =
          static_cast<double>(high->source_us.value_or(0) - low->source_us.value_or(0)) * 1e-6;
    }
    r = end;
  }
}

// The newest stamp of each drain against the host's two clocks.
void describe_stamps(SourceStatistics& out, const SourceRecord& s) {
  std::vector<double> to_wall, to_mono;
  for (auto r = s.readings.begin(); r != s.readings.end();) {
    const auto end =
        std::find_if(r, s.readings.end(), [&](auto& x) { return x.before_ns != r->before_ns; });
    std::optional<std::int64_t> newest;
    for (auto x = r; x != end; ++x)
      if (x->source_us) newest = std::max(newest.value_or(*x->source_us), *x->source_us);
    if (newest && r->host_wall_us) {
      to_wall.push_back(static_cast<double>(*newest - *r->host_wall_us) * 1e-6);
      to_mono.push_back(static_cast<double>(*newest - r->after_ns / 1000) * 1e-6);
    }
    r = end;
  }
  if (to_wall.empty()) return;
  constexpr double kSame = 60; // seconds: no buffer is that long, no two clocks that close
  StampBehaviour b;
  b.drift = to_wall.back() - to_wall.front();
  b.newest_age_s = -*std::max_element(to_wall.begin(), to_wall.end());
  b.offset_s = spread_of(to_wall)->median;
  if (std::abs(b.offset_s) < kSame) {
    b.domain = "host wall clock";
  } else if (std::abs(spread_of(to_mono)->median) < kSame) {
    b.domain = "host monotonic clock";
    b.newest_age_s = -*std::max_element(to_mono.begin(), to_mono.end());
  } else {
    b.domain = "another clock";
  }
  out.stamps = b;
}

// An update that gives the same value again is not seen, and leaves an interval of two periods or
// more: at idle a field of 1 mW does that often. The shortest tenth tells what one period is.
std::vector<double> without_unseen(std::vector<double> intervals, double& unseen) {
  if (intervals.empty()) return intervals;
  auto tenth = intervals;
  const auto at = tenth.begin() + static_cast<std::ptrdiff_t>(tenth.size() / 10);
  std::nth_element(tenth.begin(), at, tenth.end());
  const double most = 1.5 * *at;
  const auto all = static_cast<double>(intervals.size());
  std::erase_if(intervals, [&](double x) { return x > most; });
  unseen = 1 - static_cast<double>(intervals.size()) / all;
  return intervals;
}

struct Polling {
  std::vector<double> gaps, periods;
  std::size_t equal = 0, differences = 0;
  std::optional<std::int64_t> standing_since;
};

// Changes and gaps, alone or among others. Where it was read alone the period is sharpest.
void describe_polling(SourceStatistics& out, const SourceRecord& s, std::span<const Phase> phases) {
  Polling alone, among;
  std::map<const Phase*, std::int64_t> last_change, begin;
  each_neighbours(s, phases, [&](const Reading& a, const Reading& b, const Phase& phase) {
    auto& p = phase.polled == "all" ? among : alone;
    p.gaps.push_back(static_cast<double>(middle(b) - middle(a)) * kNs);
    ++p.differences;
    const auto& since = last_change.contains(&phase) ? last_change[&phase] : begin[&phase];
    if (since == 0) begin[&phase] = middle(a);
    const auto from = since == 0 ? middle(a) : since;
    out.longest_age_s =
        std::max(out.longest_age_s.value_or(0), static_cast<double>(middle(b) - from) * kNs);
    if (*a.raw == *b.raw) {
      ++p.equal;
      return;
    }
    const auto step = std::abs(*b.raw - *a.raw);
    out.smallest_step = std::min(out.smallest_step.value_or(step), step);
    const auto t = middle(a) + (middle(b) - middle(a)) / 2;
    if (last_change.contains(&phase))
      p.periods.push_back(static_cast<double>(t - last_change[&phase]) * kNs);
    last_change[&phase] = t;
  });
  const bool sharp = alone.periods.size() >= 8;
  auto& best = sharp ? alone : among;
  out.period_s = spread_of(without_unseen(best.periods, out.unseen));
  out.poll_s = spread_of(best.gaps);
  out.period_from = sharp ? "readings of it alone" : "readings among others";
  if (best.differences > 0) {
    const double share = static_cast<double>(best.equal) / static_cast<double>(best.differences);
    out.repeats = share;
    if (s.description.quantity == meter::Quantity::energy_counter) out.zero_differences = share;
  }
}

void describe_movement(SourceStatistics& out, const SourceRecord& s,
                       std::span<const Phase> phases) {
  std::optional<std::int64_t> first;
  for (const auto& r : s.readings) {
    if (!r.raw) continue;
    if (first && *first != *r.raw) out.moves = true;
    if (!first) first = r.raw;
  }
  each_neighbours(s, phases, [&](const Reading& a, const Reading& b, const Phase& p) {
    if (*a.raw == *b.raw) return;
    (p.level == Level::idle || p.level == Level::idle_without_context ? out.moves_at_idle
                                                                      : out.moves_under_load) =
        true;
  });
  if (s.description.quantity != meter::Quantity::energy_counter) return;
  CounterBehaviour counter;
  const Reading* previous = nullptr;
  for (const auto& r : s.readings) {
    if (!r.raw) continue;
    if (previous != nullptr && *r.raw < *previous->raw)
      classify_fall(counter, s, *previous->raw, *r.raw);
    previous = &r;
  }
  out.counter = counter;
}

// From the last step from idle into full load.
void describe_settling(SourceStatistics& out, const SourceRecord& s,
                       std::span<const Phase> phases) {
  if (s.description.quantity != meter::Quantity::power) return;
  const auto points = points_of(s, phases);
  for (std::size_t i = 1; i < phases.size(); ++i) {
    const auto& step = phases[i];
    if (step.level != Level::full || phases[i - 1].level == Level::full || !reads(step, s))
      continue;
    const auto length = step.end_ns - step.begin_ns;
    double before = 0, n = 0, after = 0, m = 0;
    for (const auto& p : points) {
      if (p.t_ns >= step.begin_ns - 500'000'000 && p.t_ns < step.begin_ns) before = p.watts, n = 1;
      if (p.t_ns >= step.begin_ns + length / 2 && p.t_ns <= step.end_ns) after += p.watts, m += 1;
    }
    if (n == 0 || m == 0) continue;
    after /= m;
    for (const auto& p : points)
      if (p.t_ns >= step.begin_ns && p.t_ns <= step.end_ns &&
          std::abs(p.watts - before) >= 0.9 * std::abs(after - before)) {
        out.settles_s = static_cast<double>(p.t_ns - step.begin_ns) * kNs;
        break;
      }
  }
}

} // namespace

std::optional<Spread> spread_of(std::vector<double> v) {
  if (v.empty()) return std::nullopt;
  std::sort(v.begin(), v.end());
  const auto at = [&](double q) {
    const double x = q * static_cast<double>(v.size() - 1);
    const auto i = static_cast<std::size_t>(x);
    return i + 1 < v.size() ? v[i] + (x - static_cast<double>(i)) * (v[i + 1] - v[i]) : v[i];
  };
  double sum = 0;
  for (const double x : v) sum += x;
  return Spread{at(0.5), sum / static_cast<double>(v.size()), at(0.01), at(0.99), v.size()};
}

std::vector<Point> buffer_points(const SourceRecord& s) {
  // Stamps are wall time; each drain says what the wall clock was then.
  std::vector<Point> out;
  for (const auto& [us, r] : by_stamp(s))
    if (r->host_wall_us)
      out.push_back({us * 1000 - (*r->host_wall_us * 1000 - r->after_ns),
                     static_cast<double>(*r->raw) * s.description.si_per_unit});
  return out;
}

std::vector<Change> changes_of(const SourceRecord& s, std::span<const Phase> phases) {
  std::vector<Change> out;
  each_neighbours(s, phases, [&](const Reading& a, const Reading& b, const Phase&) {
    if (*a.raw != *b.raw)
      out.push_back(
          {middle(a) + (middle(b) - middle(a)) / 2, (middle(b) - middle(a)) / 2, *a.raw, *b.raw});
  });
  return out;
}

std::vector<Point> points_of(const SourceRecord& s, std::span<const Phase> phases) {
  if (s.is_buffer) return buffer_points(s);
  std::vector<Point> out;
  const auto changes = changes_of(s, phases);
  const double si = s.description.si_per_unit;
  if (s.description.quantity == meter::Quantity::power) {
    for (const auto& c : changes) out.push_back({c.t_ns, static_cast<double>(c.to) * si});
    return out;
  }
  for (std::size_t i = 1; i < changes.size(); ++i) {
    if (changes[i].from != changes[i - 1].to || changes[i].to < changes[i].from) continue;
    const auto dt = static_cast<double>(changes[i].t_ns - changes[i - 1].t_ns) * kNs;
    if (dt > 0)
      out.push_back(
          {changes[i].t_ns, static_cast<double>(changes[i].to - changes[i].from) * si / dt});
  }
  return out;
}

std::optional<MeanPower> mean_power(const SourceRecord& s, std::span<const Phase> phases,
                                    std::int64_t from, std::int64_t to) {
  if (to <= from) return std::nullopt;
  const double length = static_cast<double>(to - from) * kNs;
  if (!s.is_buffer && s.description.quantity == meter::Quantity::energy_counter) {
    const auto changes = changes_of(s, phases);
    const Change *first = nullptr, *last = nullptr;
    for (const auto& c : changes) {
      if (c.t_ns < from || c.t_ns > to) continue;
      if (first == nullptr) first = &c;
      last = &c;
    }
    if (first == nullptr || last->t_ns <= first->t_ns) return std::nullopt;
    const double span = static_cast<double>(last->t_ns - first->t_ns) * kNs;
    const double joules = static_cast<double>(last->to - first->to) * s.description.si_per_unit;
    const double jitter = static_cast<double>(first->uncertainty_ns + last->uncertainty_ns) * kNs;
    return MeanPower{joules / span, jitter / span};
  }
  // A power source: the mean of its values, each as long as it stood; its error is what so few of
  // them can tell.
  std::vector<Point> inside;
  for (const auto& p : points_of(s, phases))
    if (p.t_ns >= from && p.t_ns <= to) inside.push_back(p);
  if (inside.size() < 3) {
    // A value that stands still is its own mean, if it was read at all.
    double sum = 0, n = 0;
    for (const auto& r : s.readings)
      if (r.raw && middle(r) >= from && middle(r) <= to)
        sum += static_cast<double>(*r.raw) * s.description.si_per_unit, n += 1;
    if (n == 0) return std::nullopt;
    return MeanPower{sum / n, inside.empty() ? 0.02 : 0.05};
  }
  double sum = 0, weight = 0, squares = 0, mean = 0;
  for (std::size_t i = 0; i + 1 < inside.size(); ++i) {
    const double dt = static_cast<double>(inside[i + 1].t_ns - inside[i].t_ns) * kNs;
    const double value =
        s.is_buffer ? (inside[i].watts + inside[i + 1].watts) / 2 : inside[i].watts;
    sum += value * dt, weight += dt, mean += inside[i].watts;
  }
  const double n = static_cast<double>(inside.size() - 1);
  mean /= n;
  for (std::size_t i = 0; i + 1 < inside.size(); ++i)
    squares += (inside[i].watts - mean) * (inside[i].watts - mean);
  const double watts = sum / weight;
  if (!(watts > 0)) return MeanPower{watts, 0};
  const double period = length / (n + 1);
  return MeanPower{watts, std::sqrt(squares / n / n) / watts + 0.5 * period / length};
}

SourceStatistics statistics_of(const SourceRecord& s, std::span<const Phase> phases) {
  SourceStatistics out;
  count_status(out, s);
  if (s.is_buffer)
    describe_buffer(out, s);
  else
    describe_polling(out, s, phases);
  describe_stamps(out, s);
  describe_movement(out, s, phases);
  describe_settling(out, s, phases);
  return out;
}

} // namespace hebe::measure
