#include "measure/response.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hebe::measure {
namespace {

constexpr double kNs = 1e-9;
constexpr std::size_t kFewest = 40; // points to fit four numbers and have some left

/// Loaded time before any instant.
class LoadedTime {
public:
  explicit LoadedTime(std::span<const Pulse> pulses) : pulses_(pulses) {
    double sum = 0;
    for (const auto& p : pulses) {
      before_.push_back(sum);
      sum += static_cast<double>(p.end_ns - p.begin_ns);
    }
  }
  [[nodiscard]] double until(double t) const {
    const auto it = std::partition_point(pulses_.begin(), pulses_.end(), [&](auto& p) {
      return static_cast<double>(p.begin_ns) <= t;
    });
    if (it == pulses_.begin()) return 0;
    const auto i = static_cast<std::size_t>(it - pulses_.begin()) - 1;
    const auto& p = pulses_[i];
    return before_[i] + std::min(t, static_cast<double>(p.end_ns)) -
           static_cast<double>(p.begin_ns);
  }
  /// Share of [from, to] that was loaded.
  [[nodiscard]] double share(double from, double to) const {
    return (until(to) - until(from)) / (to - from);
  }

private:
  std::span<const Pulse> pulses_;
  std::vector<double> before_;
};

// Off and on by least squares for one delay and window; the mean square that is left.
double try_box(std::span<const Point> points, const LoadedTime& load, double delay, double window,
               BoxFit& out) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (const auto& p : points) {
    const double end = static_cast<double>(p.t_ns) - delay * 1e9;
    const double x = load.share(end - window * 1e9, end);
    n += 1, sx += x, sy += p.watts, sxx += x * x, sxy += x * p.watts, syy += p.watts * p.watts;
  }
  const double vx = sxx - sx * sx / n, cxy = sxy - sx * sy / n, vy = syy - sy * sy / n;
  if (!(vx > 1e-9 * n)) return vy / n;
  const double slope = cxy / vx, off = (sy - slope * sx) / n;
  const double rest = std::max(0.0, vy - slope * cxy) / n;
  out = {delay, window, off, off + slope, std::sqrt(rest), points.size()};
  return rest;
}

std::vector<Point> inside(std::span<const Point> points, const Phase& p) {
  std::vector<Point> out;
  for (const auto& x : points)
    if (x.t_ns >= p.begin_ns && x.t_ns <= p.end_ns) out.push_back(x);
  return out;
}

// Isotonic regression (pool adjacent violators): a step only rises, noise or not.
std::vector<double> rising(const std::vector<StepPoint>& points) {
  struct Block {
    double sum, count;
  };
  std::vector<Block> blocks;
  for (const auto& p : points) {
    blocks.push_back({p.level, 1});
    while (blocks.size() > 1) {
      const auto& a = blocks[blocks.size() - 2];
      const auto& b = blocks.back();
      if (a.sum / a.count <= b.sum / b.count) break;
      const Block both{a.sum + b.sum, a.count + b.count};
      blocks.pop_back();
      blocks.back() = both;
    }
  }
  std::vector<double> out;
  for (const auto& b : blocks)
    out.insert(out.end(), static_cast<std::size_t>(b.count), b.sum / b.count);
  return out;
}

std::optional<double> crossing(const std::vector<StepPoint>& points,
                               const std::vector<double>& level, double at) {
  for (std::size_t i = 1; i < points.size(); ++i)
    if (level[i - 1] < at && level[i] >= at)
      return points[i - 1].t_s +
             (points[i].t_s - points[i - 1].t_s) * (at - level[i - 1]) / (level[i] - level[i - 1]);
  return std::nullopt;
}

// Amplitude of one frequency in scattered points, by least squares with a constant.
double amplitude_at(std::span<const Point> points, double frequency) {
  if (points.size() < 4) return 0;
  double a[3][4] = {};
  const double t0 = static_cast<double>(points.front().t_ns);
  for (const auto& p : points) {
    const double phase =
        2 * std::numbers::pi * frequency * (static_cast<double>(p.t_ns) - t0) * kNs;
    const double row[3] = {1, std::cos(phase), std::sin(phase)};
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) a[i][j] += row[i] * row[j];
      a[i][3] += row[i] * p.watts;
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (std::abs(a[i][i]) < 1e-9) return 0;
    for (int k = i + 1; k < 3; ++k) {
      const double f = a[k][i] / a[i][i];
      for (int j = i; j < 4; ++j) a[k][j] -= f * a[i][j];
    }
  }
  if (std::abs(a[2][2]) < 1e-6) return 0;
  const double s = a[2][3] / a[2][2], c = (a[1][3] - a[1][2] * s) / a[1][1];
  return std::hypot(s, c);
}

// The load's own first harmonic, and its share, over a phase.
struct LoadWave {
  double amplitude, share;
};
LoadWave load_wave(std::span<const Pulse> pulses, const Phase& p, double frequency) {
  const double span = static_cast<double>(p.end_ns - p.begin_ns) * kNs;
  const double w = 2 * std::numbers::pi * frequency;
  double re = 0, im = 0, on = 0;
  for (const auto& x : pulses) {
    const double a = static_cast<double>(std::max(x.begin_ns, p.begin_ns) - p.begin_ns) * kNs;
    const double b = static_cast<double>(std::min(x.end_ns, p.end_ns) - p.begin_ns) * kNs;
    if (b <= a) continue;
    on += b - a;
    re += (std::sin(w * b) - std::sin(w * a)) / w, im += (std::cos(w * b) - std::cos(w * a)) / w;
  }
  return {2 * std::hypot(re, im) / span, on / span};
}

// How still the phases of a wave's harmonic stand in the samples: the length of their mean.
double stillness(std::span<const Point> points, double frequency) {
  double re = 0, im = 0;
  const auto t0 = points.front().t_ns;
  for (const auto& p : points) {
    const double phase = 2 * std::numbers::pi * frequency * static_cast<double>(p.t_ns - t0) * kNs;
    re += std::cos(phase), im += std::sin(phase);
  }
  return std::hypot(re, im) / static_cast<double>(points.size());
}

// A harmonic whose phases stand still is seen as a constant: part of the mean. Whether it is still
// for ever or for longer than this recording, a measurement as long as it cannot tell.
void find_standing(AliasingPoint& a, std::span<const Point> points, std::span<const Pulse> pulses,
                   const Phase& phase, const BoxFit& fit, double mean_w) {
  constexpr int kHarmonics = 20;
  constexpr double kStill = 0.5, kByChance = 3; // times what as many random phases would give
  constexpr double kWrongMean = 0.03;
  const double still = std::max(kStill, kByChance / std::sqrt(static_cast<double>(points.size())));
  const double f = 1 / a.period_s;
  for (int h = 1; h <= kHarmonics; ++h) {
    const double ratio = stillness(points, h * f);
    if (ratio < still) continue;
    const double x = std::numbers::pi * fit.window_s * h * f;
    const double error = load_wave(pulses, phase, h * f).amplitude * std::abs(std::sin(x) / x) *
                         (fit.on_w - fit.off_w) * ratio / mean_w;
    if (a.standing != 0 && error <= a.standing_error_ratio) continue;
    a.standing = h, a.standing_ratio = ratio, a.standing_error_ratio = error;
  }
  // Standing at the second, sine and cosine of the wave itself are one: two samples a wave, and the
  // amplitude that they show is whatever their phase makes it. That matters if there is one to see.
  constexpr double kSeen = 0.1;
  const bool two_a_wave = stillness(points, 2 * f) >= still && a.predicted_ratio > kSeen;
  if (two_a_wave || a.standing_error_ratio > kWrongMean) a.locked = a.aliases = true;
}

std::optional<AliasingPoint> aliasing_in(const Phase& phase, std::span<const Point> all,
                                         std::span<const Pulse> pulses, const BoxFit& fit,
                                         double sample_period, int rule) {
  // The first two windows still show what came before.
  Phase settled = phase;
  settled.begin_ns += static_cast<std::int64_t>((fit.delay_s + 2 * fit.window_s) * 1e9);
  const auto points = inside(all, settled);
  const double span = static_cast<double>(settled.end_ns - settled.begin_ns) * kNs;
  if (points.size() < 8 || !(span > 0)) return std::nullopt;
  AliasingPoint a;
  const auto space = phase.name.find(' ');
  a.period_s = std::stod(phase.name.substr(space + 1));
  a.duty = std::stod(phase.name.substr(phase.name.rfind(' ') + 1));
  const double f = 1 / a.period_s, swing = fit.on_w - fit.off_w;
  const auto wave = load_wave(pulses, settled, f);
  if (!(wave.amplitude > 0) || !(swing > 0)) return std::nullopt;
  const double own = wave.amplitude * swing;
  a.seen_ratio = amplitude_at(points, f) / own;
  const double x = std::numbers::pi * fit.window_s * f;
  a.predicted_ratio = x > 0 ? std::abs(std::sin(x) / x) : 1;
  const double nyquist = 0.5 / sample_period;
  constexpr int kLines = 300;
  for (int i = 0; i < kLines; ++i) {
    const double g = 1.5 / span + (std::min(nyquist, 0.8 * f) - 1.5 / span) * i / (kLines - 1);
    if (g <= 0) continue;
    const double ratio = amplitude_at(points, g) / own;
    if (ratio > a.apparent_ratio) a.apparent_ratio = ratio, a.apparent_period_s = 1 / g;
  }
  double mean = 0;
  for (const auto& p : points) mean += p.watts / static_cast<double>(points.size());
  a.mean_error_ratio = mean / (fit.off_w + swing * wave.share) - 1;
  constexpr double kSeen = 0.1, kWrongMean = 0.03;
  a.locked = f > nyquist && a.apparent_ratio <= kSeen && std::abs(a.mean_error_ratio) > kWrongMean;
  a.aliases = a.locked || (f > nyquist && a.apparent_ratio > kSeen);
  if (rule >= 2) find_standing(a, points, pulses, settled, fit, fit.off_w + swing * wave.share);
  return a;
}

void settle(Response& r, const SourceResponse& s) {
  r.primary = s.name;
  const double modelled = s.fit->delay_s + 0.95 * s.fit->window_s;
  r.lag_s = std::max(s.on.t95_s.value_or(modelled), s.off.t95_s.value_or(modelled));
  r.pre_roll_s = 5 * r.lag_s;
  // A window that begins and ends with a full step and is not pre-rolled misses the step's lag.
  const double late = s.fit->delay_s + s.fit->window_s / 2;
  r.minimum_window_s = late * (s.fit->on_w - s.fit->off_w) / s.fit->on_w / kEdgeError;
}

} // namespace

SourceRecord load_record(std::span<const Pulse> pulses) {
  SourceRecord s;
  s.description.identity = {kLoadSource, "replays", "load", ""};
  s.description.quantity = meter::Quantity::power;
  for (const auto& p : pulses) s.readings.push_back({p.begin_ns, p.end_ns, 1, {}, {}, {}});
  return s;
}

std::vector<Pulse> pulses_of(const Recording& r) {
  std::vector<Pulse> out;
  for (const auto& s : r.sources)
    if (s.description.identity.name == kLoadSource)
      for (const auto& x : s.readings) out.push_back({x.before_ns, x.after_ns});
  return out;
}

std::optional<BoxFit> fit_box(std::span<const Point> points, std::span<const Pulse> pulses) {
  if (points.size() < kFewest || pulses.empty()) return std::nullopt;
  const LoadedTime load(pulses);
  BoxFit best, trial;
  double least = -1;
  const auto consider = [&](double delay, double window) {
    if (delay < -0.05 || window < 5e-4) return false;
    const double rest = try_box(points, load, delay, window, trial);
    if (trial.points == 0 || (least >= 0 && rest >= least)) return false;
    least = rest, best = trial;
    return true;
  };
  for (double window = 0.001; window < 2; window *= 1.25)
    for (double delay = 0; delay <= 0.2; delay += 0.004) (void)consider(delay, window);
  if (least < 0) return std::nullopt;
  // Pattern search from the best of the grid, down to a twentieth of a millisecond.
  for (double step = std::max(0.004, best.window_s * 0.1); step > 5e-5;) {
    const double d = best.delay_s, w = best.window_s;
    bool moved = false;
    for (const auto& [a, b] : {std::pair(1., 0.),
                               {-1., 0.},
                               {0., 1.},
                               {0., -1.},
                               {1., -1.},
                               {-1., 1.},
                               {0.5, -1.},
                               {-0.5, 1.}})
      moved = consider(d + a * step, w + b * step) || moved;
    if (!moved) step /= 2;
  }
  if (!(best.on_w > best.off_w)) return std::nullopt;
  return best;
}

Step step_of(std::span<const Point> points, std::span<const Pulse> pulses, const BoxFit& fit,
             bool rise) {
  Step step;
  const double reach = std::clamp(3 * (fit.delay_s + fit.window_s), 0.15, 0.5);
  for (std::size_t i = 0; i < pulses.size(); ++i) {
    const auto edge = rise ? pulses[i].begin_ns : pulses[i].end_ns;
    // Only as far as the next edge, and only if the one before has died out.
    for (const auto& p : points) {
      const double t = static_cast<double>(p.t_ns - edge) * kNs;
      if (t < -0.05 || t > reach) continue;
      const double level = (p.watts - fit.off_w) / (fit.on_w - fit.off_w);
      step.points.push_back({t, rise ? level : 1 - level});
    }
  }
  std::sort(step.points.begin(), step.points.end(), [](auto& a, auto& b) { return a.t_s < b.t_s; });
  const auto level = rising(step.points);
  step.t10_s = crossing(step.points, level, 0.10);
  step.t50_s = crossing(step.points, level, 0.50);
  step.t90_s = crossing(step.points, level, 0.90);
  step.t95_s = crossing(step.points, level, 0.95);
  return step;
}

std::optional<Tail> tail_of(std::span<const Point> points, std::span<const Pulse> pulses,
                            const BoxFit& fit) {
  const double from = fit.delay_s + fit.window_s + 0.03;
  std::vector<StepPoint> late;
  for (std::size_t i = 0; i < pulses.size(); ++i)
    for (const auto& p : points) {
      const double t = static_cast<double>(p.t_ns - pulses[i].end_ns) * kNs;
      const bool next = i + 1 < pulses.size() && p.t_ns >= pulses[i + 1].begin_ns;
      if (t >= from && t <= 0.8 && !next) late.push_back({t - from, p.watts});
    }
  if (late.size() < kFewest) return std::nullopt;
  std::optional<Tail> best;
  double least = -1;
  for (double tau = 0.03; tau <= 1; tau *= 1.2) {
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
    for (const auto& p : late) {
      const double x = std::exp(-p.t_s / tau);
      n += 1, sx += x, sy += p.level, sxx += x * x, sxy += x * p.level, syy += p.level * p.level;
    }
    const double vx = sxx - sx * sx / n, cxy = sxy - sx * sy / n, vy = syy - sy * sy / n;
    if (!(vx > 0)) continue;
    const double rest = std::max(0.0, vy - cxy * cxy / vx);
    if (least >= 0 && rest >= least) continue;
    least = rest;
    best = Tail{cxy / vx, std::sqrt(rest / (n - 2) / vx), tau};
  }
  // A tail is one only if it stands out of its own error: twenty time constants were tried.
  if (best && std::abs(best->watts) < 5 * best->standard_error_w) return std::nullopt;
  return best;
}

int aliasing_rule_of(const Json& findings) { return findings.value("aliasing_rule", 1); }

Response respond(const Recording& recording, int aliasing_rule) {
  Response r;
  r.aliasing_rule = aliasing_rule;
  const auto pulses = pulses_of(recording);
  const auto steps = std::find_if(recording.phases.begin(), recording.phases.end(),
                                  [](auto& p) { return p.name == "steps"; });
  for (const auto& s : recording.sources) {
    if (s.description.identity.name == kLoadSource) continue;
    SourceResponse found;
    found.name = s.description.identity.name;
    const auto points = points_of(s, recording.phases);
    if (const auto t = statistics_of(s, recording.phases).period_s)
      found.sample_period_s = t->median;
    std::vector<Pulse> stepped;
    if (steps != recording.phases.end()) {
      for (const auto& p : pulses)
        if (p.begin_ns >= steps->begin_ns && p.end_ns <= steps->end_ns) stepped.push_back(p);
      const auto in_steps = inside(points, *steps);
      found.fit = fit_box(in_steps, stepped);
      if (found.fit) {
        found.on = step_of(in_steps, stepped, *found.fit, true);
        found.off = step_of(in_steps, stepped, *found.fit, false);
        found.tail = tail_of(in_steps, stepped, *found.fit);
      }
    }
    if (!found.fit)
      found.why_not = s.first_failure.empty()
                          ? fmt::format("{} values over {} steps do not follow the load",
                                        points.size(), stepped.size())
                          : s.first_failure;
    if (found.fit && found.sample_period_s)
      for (const auto& p : recording.phases)
        if (p.name.starts_with("square "))
          if (const auto a =
                  aliasing_in(p, points, pulses, *found.fit, *found.sample_period_s, aliasing_rule))
            found.aliasing.push_back(*a);
    if (r.primary.empty() && s.is_buffer && found.fit) settle(r, found);
    r.sources.push_back(std::move(found));
  }
  if (r.primary.empty())
    r.refusal = "the sample buffer does not follow the load: " +
                (r.sources.empty() ? std::string("nothing was read") : r.sources.front().why_not);
  return r;
}

} // namespace hebe::measure
