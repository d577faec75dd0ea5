#include "measure/counter_updates.hpp"

#include <algorithm>
#include <cmath>

namespace hebe::measure {
namespace {

constexpr std::size_t kFewest = 8; // windows: fewer could be explained by chance
constexpr std::size_t kFirst = 64; // windows of the first, wide search
constexpr double kRange = 200e-6;  // of the period: two clocks of good crystals
constexpr double kStepNs = 1e6;    // how far a step moves the updates, at the run's far end
constexpr double kAsGood = 0.25;   // of what one window costs that is given another update
constexpr double kMostLooks = 3e8; // at a window: some seconds
constexpr double kLooks = 2e6;     // ns: how differently late two calls look
constexpr double kExplained = 0.1; // of an update's share of a window

std::int64_t ns(Instant t) { return t.time_since_epoch().count(); }

// Of a call that takes milliseconds only its beginning is known of each read alike; what it takes
// until it looks is part of the phase.
std::int64_t read_at(const meter::Boundary& b) { return ns(b.before); }

struct Read {
  double begin, end;    // ns since the first
  double joules, watts; // by the counter; by the samples
};

bool usable(const Window& w) {
  const auto &b = w.reading.begin, &e = w.reading.end;
  return b.energy_mj && e.energy_mj && *e.energy_mj > *b.energy_mj && w.estimate.mean_power &&
         w.estimate.mean_power->value() > 0;
}

std::int64_t first_read(std::span<const Window> windows) {
  const auto first = std::find_if(windows.begin(), windows.end(), usable);
  return first == windows.end() ? 0 : read_at(first->reading.begin);
}

std::vector<Read> reads_of(std::span<const Window> windows) {
  std::vector<Read> out;
  const auto zero = first_read(windows);
  for (const auto& w : windows)
    if (const auto& b = w.reading.begin, &e = w.reading.end; usable(w))
      out.push_back({static_cast<double>(read_at(b) - zero), static_cast<double>(read_at(e) - zero),
                     from_millijoules(*e.energy_mj - *b.energy_mj).value(),
                     w.estimate.mean_power->value()});
  return out;
}

double ticks(double t, double period, double phase) { return std::floor((t - phase) / period); }

// Periods and phases that explain the reads about as well as the best: none of them gives even one
// window another update. First over few windows, where a coarse period will do; then over more and
// more of them within what is left.
class Search {
public:
  Search(std::vector<Read> reads, double nominal) : reads_(std::move(reads)), nominal_(nominal) {
    for (const auto& r : reads_) share_ = std::min(share_, nominal / (r.end - r.begin));
  }

  /// False: too much is left to look through, or the best explains too little.
  bool run() {
    auto n = std::min(reads_.size(), kFirst);
    Range periods{nominal_ * (1 - kRange), nominal_ * (1 + kRange)};
    Range phases{-nominal_ / 2, nominal_ / 2};
    for (double fine = 1;;) {
      const double step = fine * step_of(n), step_phase = fine * kStepNs;
      if (!look(n, periods, step, phases, step_phase)) return false;
      if (fine < 1) return spread_ <= kExplained * share_;
      if (n == reads_.size()) fine = 0.25; // the longer the run, the finer the period must be known
      n = std::min(2 * n, reads_.size());
      periods = {periods_.low - 2 * step, periods_.high + 2 * step};
      phases = {phases_.low - 2 * step_phase, phases_.high + 2 * step_phase};
    }
  }

  [[nodiscard]] double period() const { return period_; }
  [[nodiscard]] double phase() const { return phase_; }
  [[nodiscard]] double spread() const { return spread_; }
  /// How far an update may lie from where it is taken to be, at either end of the run.
  [[nodiscard]] double uncertain() const { return uncertain_; }

private:
  struct Range {
    double low, high;
  };
  struct Tried {
    double period, phase, cost;
  };

  // What moves the updates by kStepNs at the far end of the windows that are looked at.
  [[nodiscard]] double step_of(std::size_t n) const {
    return std::min(nominal_ * kRange, nominal_ * kStepNs / reads_[n - 1].end);
  }

  double cost(std::size_t n, double period, double phase) {
    ratios_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const auto& r = reads_[i];
      const double updates = ticks(r.end, period, phase) - ticks(r.begin, period, phase);
      ratios_.push_back(updates > 0 ? r.joules / (updates * period * 1e-9 * r.watts) : 10);
    }
    const auto middle = ratios_.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::nth_element(ratios_.begin(), middle, ratios_.end());
    const double median = *middle;
    double sum = 0;
    for (const double r : ratios_) sum += std::abs(r - median);
    return sum / static_cast<double>(n);
  }

  bool look(std::size_t n, Range periods, double step, Range phases, double step_phase) {
    const double across = std::floor((periods.high - periods.low) / step) + 1;
    const double down = std::floor(std::min(phases.high - phases.low, nominal_) / step_phase) + 1;
    if (across * down * static_cast<double>(n) > kMostLooks) return false;
    std::vector<Tried> tried;
    for (int i = 0; i < static_cast<int>(across); ++i)
      for (int k = 0; k < static_cast<int>(down); ++k) {
        const double period = periods.low + i * step, phase = phases.low + k * step_phase;
        tried.push_back({period, phase, cost(n, period, phase)});
      }
    keep(n, tried);
    return true;
  }

  void keep(std::size_t n, std::vector<Tried>& tried) {
    const auto best = *std::min_element(tried.begin(), tried.end(),
                                        [](auto& a, auto& b) { return a.cost < b.cost; });
    const double as_good = best.cost + kAsGood * share_ / static_cast<double>(n);
    std::erase_if(tried, [&](auto& t) { return t.cost > as_good; });
    double period = 0, phase = 0;
    for (auto& t : tried) { // a phase and the same one a period on are one
      t.phase -= std::round((t.phase - best.phase) / nominal_) * nominal_;
      period += t.period, phase += t.phase;
    }
    const auto count = static_cast<double>(tried.size());
    period_ = period / count, phase_ = phase / count;
    spread_ = cost(n, period_, phase_);
    if (spread_ > as_good) period_ = best.period, phase_ = best.phase, spread_ = best.cost;
    periods_ = {period_, period_}, phases_ = {phase_, phase_}, uncertain_ = 0;
    for (const auto& t : tried) {
      periods_ = {std::min(periods_.low, t.period), std::max(periods_.high, t.period)};
      phases_ = {std::min(phases_.low, t.phase), std::max(phases_.high, t.phase)};
      const double begin = t.phase - phase_;
      const double end = begin + (t.period - period_) * reads_[n - 1].end / period_;
      uncertain_ = std::max({uncertain_, std::abs(begin), std::abs(end)});
    }
  }

  std::vector<Read> reads_;
  std::vector<double> ratios_;
  double nominal_, share_ = 1; // of a window, that one update is: the least of all
  double period_ = 0, phase_ = 0, spread_ = 0, uncertain_ = 0;
  Range periods_{0, 0}, phases_{0, 0};
};

} // namespace

std::int64_t CounterUpdates::between(std::int64_t begin_ns, std::int64_t end_ns) const {
  return static_cast<std::int64_t>(ticks(static_cast<double>(end_ns), period_ns, phase_ns) -
                                   ticks(static_cast<double>(begin_ns), period_ns, phase_ns));
}

bool CounterUpdates::doubtful(std::int64_t read_ns) const {
  const double since = static_cast<double>(read_ns) - phase_ns;
  const double in = since - std::floor(since / period_ns) * period_ns;
  return std::min(in, period_ns - in) < doubtful_ns;
}

std::optional<CounterUpdates> find_counter_updates(std::span<const Window> windows,
                                                   Seconds nominal_period) {
  auto reads = reads_of(windows);
  if (reads.size() < kFewest) return std::nullopt;
  const auto count = reads.size();
  Search search(std::move(reads), nominal_period.value() * 1e9);
  if (!search.run()) return std::nullopt;
  return CounterUpdates{
      search.period(), static_cast<double>(first_read(windows)) + search.phase(), search.spread(),
      count,
      std::max({kLooks, search.uncertain(), search.period() / (2 * static_cast<double>(count))})};
}

void time_counter(Window& w, const CounterUpdates& u) {
  const auto &b = w.reading.begin, &e = w.reading.end;
  if (!b.energy_mj || !e.energy_mj) return;
  const auto updates = u.between(read_at(b), read_at(e));
  if (updates <= 0) return;
  w.estimate.counter_updates = updates;
  w.estimate.doubtful_edges = (u.doubtful(read_at(b)) ? 1 : 0) + (u.doubtful(read_at(e)) ? 1 : 0);
  w.estimate.counter_power = from_millijoules(*e.energy_mj - *b.energy_mj) /
                             Seconds(static_cast<double>(updates) * u.period_ns * 1e-9);
}

} // namespace hebe::measure
