#include "measure/source_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::measure {
namespace {

using Power = std::map<Level, MeanPower>;
constexpr double kAgreement = 0.03;     // beyond what the update periods explain
constexpr double kMostOfLimit = 1.5;    // of the power limit: regulation overshoots a little
constexpr double kUnitTolerance = 0.25; // around a factor of 1000
constexpr std::int64_t kSettle = 1'500'000'000; // ns at a phase's begin that a 1 s average needs

// A value beyond the limit is another unit's only if a power of 1000 explains it.
std::optional<double> thousand_of(double ratio) {
  for (const double factor : {1e3, 1e6, 1e-3, 1e-6})
    if (std::abs(ratio / factor - 1) < kUnitTolerance) return factor;
  return std::nullopt;
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

} // namespace

void reject(SourceFindings& f, Rejection why, std::string reason) {
  if (f.rejection != Rejection::none) return;
  f.verdict = SourceVerdict::rejected;
  f.rejection = why;
  f.reason = std::move(reason);
}

bool is_counter(const SourceRecord& s) {
  return s.description.quantity == meter::Quantity::energy_counter;
}

Agreement::Agreement(const Recording& recording, Qualification& q) : recording_(recording), q_(q) {
  for (const auto& s : recording.sources) powers_.push_back(power_by_level(s, recording.phases));
}

void Agreement::judge() {
  judge_size();
  judge_agreement();
}

// Ratios of every readable source to the reference, rejected ones too: they show why.
void Agreement::describe(std::size_t reference) {
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

bool Agreement::candidate(std::size_t i) const {
  return (q_.sources[i].rejection == Rejection::none ||
          q_.sources[i].rejection == Rejection::one_second_average) &&
         recording_.sources[i].description.identity.scope == "gpu" && !powers_[i].empty();
}

// Units first (a factor of 1000 has a name of its own), then what no board of this limit takes.
void Agreement::judge_size() {
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
      reject(q_.sources[i], Rejection::wrong_unit,
             fmt::format("{:.4g} W where the others say {:.4g} W: a factor of {:g}, so its unit is "
                         "not {}",
                         watts, middle, *factor, unit));
    else if (watts < 0 || (limit > 0 && watts > kMostOfLimit * limit))
      reject(
          q_.sources[i], Rejection::implausible,
          fmt::format("{:.4g} W cannot be true of a board with a limit of {:.4g} W", watts, limit));
  }
}

// The largest group of independent sources that agree with each other; who is outside lies, if
// the group has two voices more or it stands alone against two.
void Agreement::judge_agreement() {
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

std::size_t Agreement::votes(const std::vector<std::size_t>& group) const {
  std::size_t n = 0;
  for (std::size_t k = 0; k < group.size(); ++k) {
    bool repeated = false;
    for (std::size_t l = 0; l < k; ++l)
      repeated = repeated || same_values(recording_.sources[group[k]], recording_.sources[group[l]],
                                         powers_[group[k]], powers_[group[l]]);
    n += repeated ? 0 : 1;
  }
  return n;
}

void Agreement::complain(std::size_t i, std::size_t other, bool lies) {
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

} // namespace hebe::measure
