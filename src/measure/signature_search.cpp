#include "measure/signature_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace hebe::measure {

IntervalPower::IntervalPower(const PowerSeries& series)
    : series_(series), joules_(series.time_s.size()) {
  for (std::size_t i = 1; i < joules_.size(); ++i)
    joules_[i] = joules_[i - 1] + (series.time_s[i] - series.time_s[i - 1]) * 0.5 *
                                      (series.power_w[i] + series.power_w[i - 1]);
}

double IntervalPower::until(double t) const {
  const auto& time = series_.time_s;
  const auto& power = series_.power_w;
  if (t <= time.front()) return (t - time.front()) * power.front();
  if (t >= time.back()) return joules_.back() + (t - time.back()) * power.back();
  const auto next = static_cast<std::size_t>(std::ranges::upper_bound(time, t) - time.begin());
  const auto i = next - 1;
  const double into = t - time[i], slope = (power[next] - power[i]) / (time[next] - time[i]);
  return joules_[i] + into * (power[i] + 0.5 * slope * into);
}

double IntervalPower::over(double from, double to) const {
  return (until(to) - until(from)) / (to - from);
}

double median_step(std::span<const double> time) {
  std::vector<double> steps(time.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = time[i + 1] - time[i];
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

double correlation_of(std::span<const double> x, std::span<const double> y) {
  double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
  const auto n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) mx += x[i], my += y[i];
  mx /= n, my /= n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = x[i] - mx, b = y[i] - my;
    xx += a * a, yy += b * b, xy += a * b;
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

namespace {

/// Means of equal stretches, with their mean taken away: what is left is the switching.
std::vector<double> on_grid(const IntervalPower& power, double step) {
  std::vector<double> grid(static_cast<std::size_t>((power.end_s() - power.begin_s()) / step));
  double sum = 0;
  for (std::size_t k = 0; k < grid.size(); ++k) {
    const double at = power.begin_s() + static_cast<double>(k) * step;
    sum += grid[k] = power.over(at, at + step);
  }
  for (auto& value : grid) value -= sum / static_cast<double>(grid.size());
  return grid;
}

double dot(const double* x, const double* y, std::size_t n) {
  double a = 0, b = 0, c = 0, d = 0; // four sums: the processor adds them side by side
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    a += x[i] * y[i], b += x[i + 1] * y[i + 1], c += x[i + 2] * y[i + 2], d += x[i + 3] * y[i + 3];
  for (; i < n; ++i) a += x[i] * y[i];
  return (a + b) + (c + d);
}

/// Sums up to each index, of the values and of their squares.
struct Sums {
  std::vector<double> first, second;
  explicit Sums(std::span<const double> x) : first(x.size() + 1), second(x.size() + 1) {
    for (std::size_t i = 0; i < x.size(); ++i)
      first[i + 1] = first[i] + x[i], second[i + 1] = second[i] + x[i] * x[i];
  }
  [[nodiscard]] double squares_about_mean(std::size_t at, std::size_t n) const {
    const double sum = first[at + n] - first[at];
    return second[at + n] - second[at] - sum * sum / static_cast<double>(n);
  }
};

} // namespace

Result<CoarseMatch> search_offset(const IntervalPower& internal, const IntervalPower& external,
                                  double step, const AlignmentLimits& limits) {
  const auto x = on_grid(internal, step), y = on_grid(external, step);
  const auto nx = static_cast<std::ptrdiff_t>(x.size()), ny = static_cast<std::ptrdiff_t>(y.size());
  const auto least = std::max<std::ptrdiff_t>(
      16, static_cast<std::ptrdiff_t>(
              std::ceil(limits.min_overlap * static_cast<double>(std::min(nx, ny)))));
  const double base = external.begin_s() - internal.begin_s();
  std::ptrdiff_t from = least - nx, to = ny - least; // x[i] stands beside y[i + lag]
  if (limits.offset_range_s) {
    const double low = std::ceil((limits.offset_range_s->first - base) / step),
                 high = std::floor((limits.offset_range_s->second - base) / step);
    from = static_cast<std::ptrdiff_t>(std::clamp(low, static_cast<double>(from), 1e15));
    to = static_cast<std::ptrdiff_t>(std::clamp(high, -1e15, static_cast<double>(to)));
  }
  if (from > to || std::min(nx, ny) < least)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("the series do not overlap: internal {:.4g} s, external {:.4g} s, at "
                              "least {:.4g} s must be seen by both",
                              internal.end_s() - internal.begin_s(),
                              external.end_s() - external.begin_s(),
                              static_cast<double>(least) * step),
                  "record both for the whole signature, and check the range of offsets");
  constexpr double kMostProducts = 4e9; // seconds of work
  if (static_cast<double>(to - from + 1) * static_cast<double>(std::min(nx, ny)) > kMostProducts)
    return refuse(RefusalCode::bad_argument, "the series are too long to search every offset",
                  "cut the external log to the time of the signature, or give a range of offsets");

  const Sums sx(x), sy(y);
  std::vector<double> r(static_cast<std::size_t>(to - from + 1));
  for (auto lag = from; lag <= to; ++lag) {
    const auto i = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, -lag)),
               j = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(i) + lag);
    const auto n = std::min(x.size() - i, y.size() - j);
    const double sxy = dot(&x[i], &y[j], n) - (sx.first[i + n] - sx.first[i]) *
                                                  (sy.first[j + n] - sy.first[j]) /
                                                  static_cast<double>(n),
                 ss = sx.squares_about_mean(i, n) * sy.squares_about_mean(j, n);
    r[static_cast<std::size_t>(lag - from)] = ss > 0 ? sxy / std::sqrt(ss) : 0;
  }
  const auto offset_of = [&](std::size_t k) {
    return base + static_cast<double>(from + static_cast<std::ptrdiff_t>(k)) * step;
  };
  const auto best = static_cast<std::size_t>(std::ranges::max_element(r) - r.begin());
  // The best offset's own hill: all that is nearly as good, and from there down to the valley.
  const double nearly = 0.7 * r[best];
  auto left = best, right = best;
  while (left > 0 && (r[left - 1] >= nearly || r[left - 1] < r[left])) --left;
  while (right + 1 < r.size() && (r[right + 1] >= nearly || r[right + 1] < r[right])) ++right;
  CoarseMatch match{offset_of(best), r[best], 0, 0};
  for (std::size_t k = 0; k < r.size(); ++k)
    if ((k < left || k > right) && r[k] > match.runner_up)
      match.runner_up = r[k], match.runner_up_offset_s = offset_of(k);
  return match;
}

PairedPoints::PairedPoints(const PowerSeries& internal, const PowerSeries& external,
                           const ClockMap& best, double from, double to)
    : internal_(internal), external_(external) {
  const double internal_step = median_step(internal.time_s),
               external_step = median_step(external.time_s);
  at_internal_ = internal_step >= external_step;
  width_s_ = std::max(internal_step, external_step);
  const auto& coarse = at_internal_ ? internal : external;
  for (std::size_t i = 0; i < coarse.time_s.size(); ++i) {
    const double t = at_internal_ ? coarse.time_s[i] : best.internal(coarse.time_s[i]);
    if (t < from || t > to) continue;
    time_s.push_back(t);
    point_s_.push_back(coarse.time_s[i]);
    point_w_.push_back(coarse.power_w[i]);
  }
  (at_internal_ ? internal_w : external_w) = point_w_;
  (at_internal_ ? external_w : internal_w).resize(point_w_.size());
}

void PairedPoints::read(const ClockMap& map) {
  const auto& fine = at_internal_ ? external_ : internal_;
  auto& out = at_internal_ ? external_w : internal_w;
  for (std::size_t i = 0; i < point_s_.size(); ++i) {
    const double t = at_internal_ ? map.external(point_s_[i]) : map.internal(point_s_[i]);
    out[i] = fine.over(t - 0.5 * width_s_, t + 0.5 * width_s_);
  }
}

namespace {

/// The place of the largest value between `low` and `high`, for one hill (golden section).
double top_of(const std::function<double(double)>& f, double low, double high) {
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double fa = f(a), fb = f(b);
  for (int i = 0; i < 24; ++i) {
    if (fa > fb)
      high = b, b = a, fb = fa, a = high - ratio * (high - low), fa = f(a);
    else
      low = a, a = b, fa = fb, b = low + ratio * (high - low), fb = f(b);
  }
  return 0.5 * (low + high);
}

} // namespace

ClockMap refine(PairedPoints& points, const ClockMap& start, double step, double span,
                double max_skew) {
  // A skew moves the ends by skew * span / 2: steps of half a grid step there miss no hill.
  const double skew_step = step / span;
  const int skews = static_cast<int>(std::ceil(max_skew / skew_step));
  ClockMap best = start;
  double best_score = -2;
  for (int s = -skews; s <= skews; ++s)
    for (int o = -2; o <= 2; ++o) {
      const ClockMap map{start.offset_s + 0.5 * o * step, s * skew_step, start.centre_s};
      if (const double score = points.score(map); score > best_score)
        best = map, best_score = score;
    }
  double reach = 1;
  for (int round = 0; round < 4; ++round, reach *= 0.4) {
    auto map = best;
    map.offset_s = top_of(
        [&](double offset) {
          return points.score({offset, map.skew, map.centre_s});
        },
        map.offset_s - reach * step, map.offset_s + reach * step);
    map.skew = top_of(
        [&](double skew) {
          return points.score({map.offset_s, skew, map.centre_s});
        },
        map.skew - reach * skew_step, map.skew + reach * skew_step);
    best = map;
  }
  points.read(best);
  return best;
}

} // namespace hebe::measure
