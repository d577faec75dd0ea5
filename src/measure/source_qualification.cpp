#include "measure/source_qualification.hpp"

#include "meter/discovered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace hebe::measure {
namespace {

constexpr double kAgreement = 0.03;     // beyond what the update periods explain
constexpr double kLongestPeriod = 0.5;  // seconds: a 5 s window must hold several updates
constexpr double kAverageFrom = 0.4;    // seconds to settle: a sensor is far faster
constexpr double kMostOfLimit = 1.5;    // of the power limit: regulation overshoots a little
constexpr double kUnitTolerance = 0.25; // around a factor of 1000
constexpr std::size_t kFewest = 10;     // readings to judge
constexpr std::int64_t kSettle = 1'500'000'000; // ns at a phase's begin that a 1 s average needs

using Power = std::map<Level, MeanPower>;

void reject(SourceFindings& f, Rejection why, std::string reason) {
  if (f.rejection != Rejection::none) return;
  f.verdict = SourceVerdict::rejected;
  f.rejection = why;
  f.reason = std::move(reason);
}

bool is_counter(const SourceRecord& s) {
  return s.description.quantity == meter::Quantity::energy_counter;
}

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
  if (2 * t.zeros > t.readings) {
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
           fmt::format("it opens and reads, and stands at {} {} {}", t.most.value_or(0), unit,
                       t.moves ? "under load" : "from idle to full load"));
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

// A value beyond the limit is another unit's only if a power of 1000 explains it.
std::optional<double> thousand_of(double ratio) {
  for (const double factor : {1e3, 1e6, 1e-3, 1e-6})
    if (std::abs(ratio / factor - 1) < kUnitTolerance) return factor;
  return std::nullopt;
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

// --- against the others
// ----------------------------------------------------------------------------

// The longest phase of each level, without what a slow sensor needs to arrive.
Power power_by_level(const SourceRecord& s, std::span<const Phase> phases) {
  std::map<Level, const Phase*> longest;
  for (const auto& p : phases) {
    if (p.polled != "all" || p.level == Level::idle_without_context) continue;
    auto& best = longest[p.level];
    if (best == nullptr || p.end_ns - p.begin_ns > best->end_ns - best->begin_ns) best = &p;
  }
  Power out;
  for (const auto& [level, p] : longest)
    if (const auto from = p->begin_ns + std::min(kSettle, (p->end_ns - p->begin_ns) / 2);
        auto m = mean_power(s, phases, from, p->end_ns))
      out[level] = *m;
  return out;
}

double tolerance(const MeanPower& a, const MeanPower& b) {
  return kAgreement + 2 * std::hypot(a.error, b.error);
}

// At every level that both know. A level that neither knows is no agreement.
bool agree(const Power& a, const Power& b) {
  bool any = false;
  for (const auto& [level, x] : a)
    if (const auto y = b.find(level); y != b.end()) {
      any = true;
      const double low = std::min(x.watts, y->second.watts),
                   high = std::max(x.watts, y->second.watts);
      if (!(low > 0) || high / low - 1 > tolerance(x, y->second)) return false;
    }
  return any;
}

// One instrument under two names must not vote twice.
bool same_values(const SourceRecord& a, const SourceRecord& b, const Power& p, const Power& q) {
  if (a.description.quantity != b.description.quantity || a.is_buffer != b.is_buffer) return false;
  for (const auto& [level, x] : p)
    if (const auto y = q.find(level); y != q.end()) {
      const double off = std::abs(x.watts / y->second.watts - 1);
      if (off > (is_counter(a) ? 0.005 + x.error + y->second.error : 0.002)) return false;
    }
  return !a.is_buffer;
}

double full_watts(const Power& p) {
  for (const auto level : {Level::full, Level::half, Level::mixed, Level::idle})
    if (const auto hit = p.find(level); hit != p.end()) return hit->second.watts;
  return 0;
}

class Comparison {
public:
  Comparison(const Recording& recording, Qualification& q) : recording_(recording), q_(q) {
    for (const auto& s : recording.sources) powers_.push_back(power_by_level(s, recording.phases));
  }

  void judge() {
    judge_size();
    judge_agreement();
  }

  // Ratios of every readable source to the reference, rejected ones too: they show why.
  void describe(std::size_t reference) {
    for (std::size_t i = 0; i < powers_.size(); ++i)
      for (const auto& [level, p] : powers_[i]) {
        LevelPower l{level, p.watts, p.error, std::nullopt, std::nullopt};
        if (const auto r = powers_[reference].find(level);
            r != powers_[reference].end() && i != reference && r->second.watts > 0) {
          l.ratio = p.watts / r->second.watts;
          l.ratio_error = std::hypot(p.error, r->second.error);
        }
        q_.sources[i].levels.push_back(l);
      }
  }

private:
  [[nodiscard]] bool candidate(std::size_t i) const {
    return (q_.sources[i].rejection == Rejection::none ||
            q_.sources[i].rejection == Rejection::one_second_average) &&
           recording_.sources[i].description.identity.scope == "gpu" && !powers_[i].empty();
  }

  // Units first (a factor of 1000 has a name of its own), then what no board of this limit takes.
  void judge_size() {
    std::vector<double> all;
    for (std::size_t i = 0; i < powers_.size(); ++i)
      if (candidate(i)) all.push_back(full_watts(powers_[i]));
    if (all.empty()) return;
    std::sort(all.begin(), all.end());
    // What fits the board comes first: of two sources the one beyond the limit is the odd one.
    const double most = kMostOfLimit * recording_.power_limit_w.value_or(1e9);
    const auto fitting =
        std::partition_point(all.begin(), all.end(), [&](double w) { return w <= most; });
    const double middle = fitting == all.begin()
                              ? all[all.size() / 2]
                              : all[static_cast<std::size_t>(fitting - all.begin()) / 2];
    for (std::size_t i = 0; i < powers_.size(); ++i) {
      if (!candidate(i)) continue;
      const double watts = full_watts(powers_[i]), limit = recording_.power_limit_w.value_or(0);
      const auto& unit = recording_.sources[i].description.identity.unit;
      if (const auto factor = middle > 0 ? thousand_of(watts / middle) : std::nullopt; factor)
        reject(
            q_.sources[i], Rejection::wrong_unit,
            fmt::format("{:.4g} W where the others say {:.4g} W: a factor of {:g}, so its unit is "
                        "not {}",
                        watts, middle, *factor, unit));
      else if (watts < 0 || (limit > 0 && watts > kMostOfLimit * limit))
        reject(q_.sources[i], Rejection::implausible,
               fmt::format("{:.4g} W cannot be true of a board with a limit of {:.4g} W", watts,
                           limit));
    }
  }

  // The largest group of independent sources that agree with each other; who is outside lies, if
  // the group has two voices more or it stands alone against two.
  void judge_agreement() {
    std::vector<std::size_t> in;
    for (std::size_t i = 0; i < powers_.size(); ++i)
      if (candidate(i)) in.push_back(i);
    std::vector<std::size_t> best;
    std::size_t best_votes = 0, second_votes = 0;
    for (const auto i : in) {
      std::vector<std::size_t> group;
      for (const auto j : in)
        if (i == j || agree(powers_[i], powers_[j])) group.push_back(j);
      const auto n = votes(group);
      if (n > best_votes) best_votes = n, best = group;
    }
    std::vector<std::size_t> outside;
    for (const auto i : in)
      if (std::find(best.begin(), best.end(), i) == best.end()) outside.push_back(i);
    second_votes = votes(outside);
    if (outside.empty()) return;
    const bool clear = best_votes >= 2 && best_votes > second_votes;
    for (const auto i : outside) complain(i, best.front(), clear);
    if (!clear)
      for (const auto i : best) complain(i, outside.front(), false);
  }

  [[nodiscard]] std::size_t votes(const std::vector<std::size_t>& group) const {
    std::size_t n = 0;
    for (std::size_t k = 0; k < group.size(); ++k) {
      bool repeated = false;
      for (std::size_t l = 0; l < k; ++l)
        repeated =
            repeated || same_values(recording_.sources[group[k]], recording_.sources[group[l]],
                                    powers_[group[k]], powers_[group[l]]);
      n += repeated ? 0 : 1;
    }
    return n;
  }

  void complain(std::size_t i, std::size_t other, bool lies) {
    std::string worst;
    double most = 0;
    for (const auto& [level, p] : powers_[i])
      if (const auto o = powers_[other].find(level); o != powers_[other].end()) {
        const double off = o->second.watts > 0 ? p.watts / o->second.watts - 1 : 0;
        if (worst.empty() || std::abs(off) > std::abs(most)) {
          most = off;
          worst = fmt::format("{:.1f} W at {} where {} says {:.1f} W ({:+.1f} %, allowed {:.1f} %)",
                              p.watts, name_of(level),
                              recording_.sources[other].description.identity.name, o->second.watts,
                              100 * off, 100 * tolerance(p, o->second));
        }
      }
    if (q_.sources[i].rejection == Rejection::one_second_average) return;
    reject(q_.sources[i], lies ? Rejection::lies : Rejection::disagrees, worst);
  }

  const Recording& recording_;
  Qualification& q_;
  std::vector<Power> powers_;
};

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
  Comparison comparison(r, q);
  for (std::size_t i = 0; i < q.sources.size(); ++i) judge_timing(q.sources[i], r.sources[i]);
  comparison.judge();
  choose(r, q);
  explain(r, q);
  observe(r, q);
  const auto reference = std::find_if(q.sources.begin(), q.sources.end(),
                                      [&](auto& f) { return f.name == q.primary; });
  if (reference != q.sources.end()) {
    q.reference = q.primary;
    comparison.describe(static_cast<std::size_t>(reference - q.sources.begin()));
  }
  return q;
}

} // namespace hebe::measure
