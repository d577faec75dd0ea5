#include "measure/source_qualification.hpp"

#include "measure/source_agreement.hpp"
#include "meter/discovered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace hebe::measure {
namespace {

constexpr double kLongestPeriod = 0.5; // seconds: a 5 s window must hold several updates
constexpr double kAverageFrom = 0.4;   // seconds to settle: a sensor is far faster
constexpr std::size_t kFewest = 10;    // readings to judge

// --- by its own readings
// ---------------------------------------------------------------------------

void judge_support(SourceFindings& f, const SourceRecord& s) {
  const auto& t = f.statistics;
  if (t.readings >= kFewest) return;
  const auto all = t.readings + t.failed;
  const auto text = s.first_failure.empty()
                        ? fmt::format("{} readings of {} calls", t.readings, all)
                        : fmt::format("{} of {} calls failed: {}", t.failed, all, s.first_failure);
  const auto code = refusal_named(t.failure);
  if (code == RefusalCode::meter_unsupported)
    reject(f, Rejection::unsupported, text);
  else if (code == RefusalCode::no_permission)
    reject(f, Rejection::no_permission, text);
  else if (code == RefusalCode::meter_implausible)
    reject(f, Rejection::implausible, text);
  else if (code == RefusalCode::meter_empty || t.failed == 0)
    reject(f, Rejection::empty, text);
  else
    reject(f, Rejection::read_failed, text);
}

void judge_counter(SourceFindings& f) {
  const auto& c = f.statistics.counter;
  if (!c || c->falls == c->declared_wraps) return;
  reject(f,
         c->undeclared_wraps > 0 ? Rejection::wraps
         : c->resets > 0         ? Rejection::resets
                                 : Rejection::not_monotonic,
         c->what);
}

void judge_movement(SourceFindings& f, const SourceRecord& s, bool was_loaded) {
  const auto& t = f.statistics;
  const auto& unit = s.description.identity.unit;
  const double si = s.description.si_per_unit;
  const bool dead_counter = is_counter(s) && !t.moves; // a counter that stands at 0 is frozen, too
  if (2 * t.zeros > t.readings && !dead_counter) {
    reject(f, Rejection::implausible,
           fmt::format("{} of {} readings are 0 {}", t.zeros, t.readings, unit));
  } else if (const auto low =
                 meter::can_be_true(s.description.quantity, static_cast<double>(*t.least) * si, ""),
             high =
                 meter::can_be_true(s.description.quantity, static_cast<double>(*t.most) * si, "");
             !low || !high) {
    reject(f, Rejection::implausible,
           fmt::format("{} (raw values from {} to {} {})", (low ? high : low).error().what,
                       *t.least, *t.most, unit));
  } else if (!t.moves || (was_loaded && !t.moves_under_load)) {
    reject(f, Rejection::frozen,
           fmt::format("it opens and reads, and stands at {} (unit {}) {}", t.most.value_or(0),
                       unit, t.moves ? "under load" : "from idle to full load"));
  } else if (is_counter(s) && !t.moves_at_idle && f.statistics.longest_age_s.value_or(0) > 1) {
    reject(f, Rejection::frozen,
           fmt::format("it stands still at idle for {:.2f} s, so it has no baseline",
                       *t.longest_age_s));
  } else if (is_counter(s) && t.longest_age_s.value_or(0) > 2 * kLongestPeriod && t.period_s &&
             *t.longest_age_s > 10 * t.period_s->median) {
    reject(f, Rejection::frozen,
           fmt::format("it stood for {:.2f} s, and else updates every {:.3f} s", *t.longest_age_s,
                       t.period_s->median));
  }
}

void judge_timing(SourceFindings& f, const SourceRecord& s) {
  const auto& t = f.statistics;
  if (s.is_buffer && t.stamps && t.stamps->domain != "host wall clock")
    reject(f, Rejection::foreign_clock,
           fmt::format("its time stamps are {:.0f} s away from the host's wall clock ({}): samples "
                       "cannot be laid over windows",
                       std::abs(t.stamps->offset_s), t.stamps->domain));
  if (t.period_s && t.period_s->median > kLongestPeriod)
    reject(f, Rejection::cached_too_long,
           fmt::format("it updates every {:.2f} s, allowed are {} s", t.period_s->median,
                       kLongestPeriod));
  if (!is_counter(s) && !s.is_buffer && t.settles_s && *t.settles_s > kAverageFrom)
    reject(f, Rejection::one_second_average,
           fmt::format("it needs {:.2f} s for 90 % of a step to full load: an average over about a "
                       "second, updated every {:.0f} ms",
                       *t.settles_s, t.period_s ? 1e3 * t.period_s->median : 0));
}

// --- the choice
// ------------------------------------------------------------------------------------

bool chosen(const SourceFindings& f, const SourceRecord& s) {
  return f.rejection == Rejection::none && s.description.identity.scope == "gpu";
}

std::string rejected_list(const Recording& r, const Qualification& q, bool counters) {
  std::string out;
  for (std::size_t i = 0; i < q.sources.size(); ++i)
    if (is_counter(r.sources[i]) == counters && q.sources[i].rejection != Rejection::none)
      out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", q.sources[i].name,
                         name_of(q.sources[i].rejection));
  return out.empty() ? "none is offered" : out;
}

// Power: the buffer, else the fastest field. Energy: the counter that runs read, else any. The
// check must be of the other quantity: two readings of one sensor check nothing.
void choose(const Recording& r, Qualification& q) {
  std::optional<std::size_t> power, energy;
  const auto better_power = [&](std::size_t i, std::size_t than) {
    const auto period = [&](std::size_t k) {
      const auto& p = q.sources[k].statistics.period_s;
      return p ? p->median : 1e9;
    };
    if (r.sources[i].is_buffer != r.sources[than].is_buffer) return r.sources[i].is_buffer;
    return period(i) < period(than);
  };
  for (std::size_t i = 0; i < q.sources.size(); ++i) {
    if (!chosen(q.sources[i], r.sources[i])) continue;
    if (is_counter(r.sources[i])) {
      if (!energy || q.sources[i].name == r.preferred_counter) energy = i;
    } else if (!power || better_power(i, *power)) {
      power = i;
    }
  }
  if (power) {
    q.sources[*power].verdict = SourceVerdict::primary;
    q.primary = q.sources[*power].name;
  }
  if (energy) {
    q.sources[*energy].verdict = SourceVerdict::cross_check;
    q.cross_check = q.sources[*energy].name;
  }
  if (!power) q.refusal = "no primary: " + rejected_list(r, q, false);
  if (!energy)
    q.refusal += fmt::format("{}no cross-check: {}", q.refusal.empty() ? "" : "; ",
                             rejected_list(r, q, true));
}

void explain(const Recording& r, Qualification& q) {
  for (std::size_t i = 0; i < q.sources.size(); ++i) {
    auto& f = q.sources[i];
    if (f.verdict == SourceVerdict::primary)
      f.reason = r.sources[i].is_buffer
                     ? "samples with their own time stamps, read without gaps"
                     : "the fastest power that agrees with the others; there is no better buffer";
    else if (f.verdict == SourceVerdict::cross_check)
      f.reason = "an energy counter, integrated by the board itself";
    else if (f.verdict == SourceVerdict::usable)
      f.reason = r.sources[i].description.identity.scope != "gpu"
                     ? "it meters another part (" + r.sources[i].description.identity.scope + ")"
                 : is_counter(r.sources[i]) ? "a counter like the chosen one"
                                            : "slower than the chosen one";
  }
}

// Power from the buffer while one source was polled alone, against the quiet stretches around it.
// Samples follow each other, so five of them count as one.
void observe(const Recording& r, Qualification& q) {
  const auto buffer =
      std::find_if(r.sources.begin(), r.sources.end(), [](auto& s) { return s.is_buffer; });
  if (buffer == r.sources.end()) return;
  const auto points = buffer_points(*buffer);
  struct Mean {
    double mean = 0, error = 0;
  };
  const auto mean_in = [&](const Phase& p) -> std::optional<Mean> {
    constexpr std::int64_t kArrive = 200'000'000; // the sensor's own lag
    double sum = 0, squares = 0, n = 0;
    for (const auto& x : points)
      if (x.t_ns >= p.begin_ns + kArrive && x.t_ns <= p.end_ns) sum += x.watts, n += 1;
    if (n < 10) return std::nullopt;
    for (const auto& x : points)
      if (x.t_ns >= p.begin_ns + kArrive && x.t_ns <= p.end_ns)
        squares += (x.watts - sum / n) * (x.watts - sum / n);
    return Mean{sum / n, std::sqrt(squares / (n - 1) / (n / 5))};
  };
  for (std::size_t i = 1; i + 1 < r.phases.size(); ++i) {
    const auto& p = r.phases[i];
    const auto hit = std::find_if(q.sources.begin(), q.sources.end(),
                                  [&](auto& f) { return f.name == p.polled; });
    if (hit == q.sources.end() || r.phases[i - 1].polled != "nothing" ||
        r.phases[i + 1].polled != "nothing")
      continue;
    const auto before = mean_in(r.phases[i - 1]), during = mean_in(p),
               after = mean_in(r.phases[i + 1]);
    if (!before || !during || !after) continue;
    hit->observer =
        ObserverEffect{during->mean - (before->mean + after->mean) / 2,
                       std::hypot(during->error, std::hypot(before->error, after->error) / 2)};
  }
}

} // namespace

std::string_view name_of(SourceVerdict v) {
  constexpr std::array<std::string_view, 4> kNames = {"primary", "cross_check", "usable",
                                                      "rejected"};
  return kNames[static_cast<std::size_t>(v)];
}

std::string_view name_of(Rejection r) {
  switch (r) {
  case Rejection::none:
    return "";
#define X(name, meaning)                                                                           \
  case Rejection::name:                                                                            \
    return #name;
    HEBE_SOURCE_REJECTIONS(X)
#undef X
  }
  return "";
}

Qualification qualify(const Recording& r) {
  Qualification q;
  const bool loaded = std::any_of(r.phases.begin(), r.phases.end(), [](auto& p) {
    return p.level == Level::full || p.level == Level::mixed;
  });
  for (const auto& s : r.sources) {
    SourceFindings f;
    f.name = s.description.identity.name;
    f.statistics = statistics_of(s, r.phases);
    judge_support(f, s);
    if (f.statistics.readings >= kFewest) {
      judge_counter(f);
      judge_movement(f, s, loaded);
    }
    q.sources.push_back(std::move(f));
  }
  Agreement agreement(r, q);
  for (std::size_t i = 0; i < q.sources.size(); ++i) judge_timing(q.sources[i], r.sources[i]);
  agreement.judge();
  choose(r, q);
  explain(r, q);
  observe(r, q);
  const auto reference = std::find_if(q.sources.begin(), q.sources.end(),
                                      [&](auto& f) { return f.name == q.primary; });
  if (reference != q.sources.end()) {
    q.reference = q.primary;
    agreement.describe(static_cast<std::size_t>(reference - q.sources.begin()));
  }
  return q;
}

} // namespace hebe::measure
