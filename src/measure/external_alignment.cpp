#include "measure/external_alignment.hpp"

#include "measure/signature_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::measure {
namespace {

constexpr std::size_t kFewestPoints = 20;

Status check_series(const PowerSeries& s, const char* which) {
  const auto no = [&](std::string what) {
    return refuse(RefusalCode::bad_argument, fmt::format("the {} series {}", which, what),
                  "give times in ascending order and a finite power for each");
  };
  if (s.time_s.size() != s.power_w.size()) return no("has not one power for each time");
  if (s.time_s.size() < kFewestPoints)
    return no(fmt::format("has {} points, at least {} are needed", s.time_s.size(), kFewestPoints));
  for (std::size_t i = 0; i < s.time_s.size(); ++i) {
    if (!std::isfinite(s.time_s[i]) || !std::isfinite(s.power_w[i]))
      return no(fmt::format("is not finite at point {}", i));
    if (i > 0 && s.time_s[i] <= s.time_s[i - 1])
      return no(fmt::format("does not ascend in time at point {}", i));
  }
  return {};
}

std::unexpected<Refusal> not_found(const std::string& what) {
  return refuse(RefusalCode::meter_disagreement, what,
                "record both while the load follows the signature, and check that the external "
                "meter is on this board's supply");
}

/// For each point the number of its plateau, or -1 within `guard` points of a switch.
struct Plateaus {
  std::vector<int> of_point;
  int edges = 0;
};

// On and off by the external meter, with hysteresis: noise in the middle of an edge is one switch.
Plateaus plateaus_of(std::span<const double> power, std::size_t guard) {
  std::vector<double> sorted(power.begin(), power.end());
  std::ranges::sort(sorted);
  const auto part = [&](double p) {
    return sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))];
  };
  const double low = part(0.02), swing = part(0.98) - low;
  Plateaus out{std::vector<int>(power.size(), 0), 0};
  std::vector<std::size_t> unsettled; // a switch, or neither on nor off
  bool on = power[0] > low + 0.5 * swing;
  for (std::size_t i = 0; i < power.size(); ++i) {
    const double level = (power[i] - low) / swing;
    const bool between = level > 1.0 / 3 && level < 2.0 / 3,
               switched = !between && on != (level > 0.5);
    if (switched) on = !on, ++out.edges;
    if (switched || between) unsettled.push_back(i);
    out.of_point[i] = out.edges;
  }
  for (const auto at : unsettled)
    for (auto i = at - std::min(at, guard); i < std::min(at + guard, power.size()); ++i)
      out.of_point[i] = -1;
  return out;
}

struct Plateau {
  double n = 0, x = 0, y = 0; ///< points, mean external and internal watts
};

Result<std::vector<Plateau>> means_of(const PairedPoints& points, const Plateaus& plateaus) {
  std::vector<Plateau> all(static_cast<std::size_t>(plateaus.edges) + 1);
  for (std::size_t i = 0; i < points.time_s.size(); ++i) {
    if (plateaus.of_point[i] < 0) continue;
    auto& p = all[static_cast<std::size_t>(plateaus.of_point[i])];
    p.n += 1, p.x += points.external_w[i], p.y += points.internal_w[i];
  }
  int of_level[2] = {0, 0}; // they take turns
  for (std::size_t g = 0; g < all.size(); ++g)
    if (all[g].n > 0) all[g].x /= all[g].n, all[g].y /= all[g].n, ++of_level[g % 2];
  constexpr int kFewestOfLevel = 3;
  if (const int fewest = std::min(of_level[0], of_level[1]); fewest < kFewestOfLevel)
    return not_found(fmt::format("only {} plateaus of one level are long enough to compare, {} are "
                                 "needed: the signature is too fast for these meters",
                                 fewest, kFewestOfLevel));
  std::erase_if(all, [](const Plateau& p) { return p.n == 0; });
  return all;
}

/// The line through the plateaus' means, with standard errors by plateau.
Status fit_line(const PairedPoints& points, const Plateaus& plateaus, ExternalAlignment& out) {
  HEBE_TRY(const auto means, means_of(points, plateaus));
  double n = 0, mx = 0, my = 0, sxx = 0, sxy = 0;
  for (const auto& p : means) n += p.n, mx += p.n * p.x, my += p.n * p.y;
  mx /= n, my /= n;
  for (const auto& p : means)
    sxx += p.n * (p.x - mx) * (p.x - mx), sxy += p.n * (p.x - mx) * (p.y - my);
  if (sxx <= 0) return not_found("the external power does not switch between its plateaus");
  out.gain = sxy / sxx;
  out.offset_w = my - out.gain * mx;
  double gain_var = 0, offset_var = 0;
  for (const auto& p : means) {
    const double r = p.n * (p.y - out.offset_w - out.gain * p.x), pull = (p.x - mx) / sxx;
    gain_var += r * r * pull * pull;
    offset_var += r * r * (1 / n - mx * pull) * (1 / n - mx * pull);
  }
  const auto g = static_cast<double>(means.size());
  out.gain_se = std::sqrt(gain_var * g / (g - 2));
  out.offset_se_w = std::sqrt(offset_var * g / (g - 2));
  double squares = 0;
  for (std::size_t i = 0; i < points.time_s.size(); ++i) {
    const double r = points.internal_w[i] - out.offset_w - out.gain * points.external_w[i];
    if (plateaus.of_point[i] >= 0) squares += r * r;
  }
  out.residual_w = n > 2 ? std::sqrt(squares / (n - 2)) : 0;
  out.points = static_cast<std::size_t>(n);
  out.plateaus = means.size();
  return {};
}

/// Standard errors of offset and skew, from how the residual at the edges answers to a shift.
void fit_clock_errors(PairedPoints& points, const ClockMap& map, double step,
                      ExternalAlignment& out) {
  const auto n = points.time_s.size();
  std::vector<double> residual(n), answer(n);
  const auto difference = [&](std::vector<double>& into, double weight) {
    for (std::size_t i = 0; i < n; ++i)
      into[i] += weight * (points.internal_w[i] - out.offset_w - out.gain * points.external_w[i]);
  };
  const double nudge = 0.25 * step;
  difference(residual, 1);
  points.read({map.offset_s + nudge, map.skew, map.centre_s});
  difference(answer, 0.5 / nudge);
  points.read({map.offset_s - nudge, map.skew, map.centre_s});
  difference(answer, -0.5 / nudge);
  points.read(map);
  double a = 0, b = 0, c = 0, ma = 0, mb = 0, mc = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double t = points.time_s[i] - map.centre_s, d2 = answer[i] * answer[i],
                 w = d2 * residual[i] * residual[i];
    squares += residual[i] * residual[i];
    a += d2, b += d2 * t, c += d2 * t * t;
    ma += w, mb += w * t, mc += w * t * t;
  }
  out.residual_all_w = std::sqrt(squares / static_cast<double>(n - 2));
  const double det = a * c - b * b;
  if (det <= 0) return;
  out.offset_se_s = std::sqrt(std::max(0.0, c * c * ma - 2 * b * c * mb + b * b * mc)) / det;
  out.skew_se_ppm = 1e6 * std::sqrt(std::max(0.0, b * b * ma - 2 * a * b * mb + a * a * mc)) / det;
}

Status check_match(const CoarseMatch& match, const AlignmentLimits& limits) {
  constexpr double kLeastCoarse = 0.3; // a skewed clock blurs the coarse match
  if (match.correlation < kLeastCoarse)
    return not_found(
        fmt::format("the signature is not found: the best correlation over all offsets "
                    "is {:.3f}",
                    match.correlation));
  if (match.runner_up > limits.max_runner_up * match.correlation)
    return refuse(RefusalCode::meter_disagreement,
                  fmt::format("the offset is ambiguous: {:.4f} s fits with correlation {:.3f}, and "
                              "{:.4f} s with {:.3f}; a periodic wave fits at every period",
                              match.offset_s, match.correlation, match.runner_up_offset_s,
                              match.runner_up),
                  "drive the load with the pseudo-random signature, or give a range of offsets "
                  "narrower than a period");
  return {};
}

} // namespace

Result<ExternalAlignment> align_external(const PowerSeries& internal, const PowerSeries& external,
                                         const AlignmentLimits& limits) {
  HEBE_CHECK(check_series(internal, "internal"));
  HEBE_CHECK(check_series(external, "external"));
  constexpr double kLongestSettling = 3600;
  if (!(limits.settle_s >= 0 && limits.settle_s <= kLongestSettling))
    return refuse(RefusalCode::bad_argument,
                  fmt::format("a settling time of {} s", limits.settle_s), "give 0 to 3600 s");
  const double step = std::max(median_step(internal.time_s), median_step(external.time_s));
  const IntervalPower inside(internal), outside(external);
  HEBE_TRY(const auto match, search_offset(inside, outside, step, limits));
  HEBE_CHECK(check_match(match, limits));

  const double first = std::max(inside.begin_s(), outside.begin_s() - match.offset_s),
               last = std::min(inside.end_s(), outside.end_s() - match.offset_s),
               max_skew = limits.max_skew_ppm * 1e-6,
               margin = 4 * step + max_skew * 0.5 * (last - first);
  ClockMap map{match.offset_s, 0, 0.5 * (first + last)};
  PairedPoints points(internal, external, map, first + margin, last - margin);
  if (points.time_s.size() < kFewestPoints)
    return not_found(fmt::format("only {} points lie in the overlap", points.time_s.size()));
  map = refine(points, map, step, last - first, max_skew);

  ExternalAlignment out;
  out.offset_s = map.offset_s, out.centre_s = map.centre_s, out.skew_ppm = map.skew * 1e6;
  out.correlation = correlation_of(points.internal_w, points.external_w);
  out.runner_up = match.runner_up;
  out.overlap_s = last - first;
  const auto guard =
      std::max<std::size_t>(3, static_cast<std::size_t>(std::ceil(limits.settle_s / step)));
  const auto plateaus = plateaus_of(points.external_w, guard);
  out.edges = plateaus.edges;
  if (out.correlation < limits.min_correlation)
    return not_found(fmt::format("the signature is not found: the correlation is {:.3f}, {:.2f} is "
                                 "needed",
                                 out.correlation, limits.min_correlation));
  if (std::abs(out.skew_ppm) > limits.max_skew_ppm)
    return not_found(fmt::format("the clocks differ by more than {} ppm", limits.max_skew_ppm));
  if (out.edges < limits.min_edges)
    return not_found(fmt::format("both saw {} switches of the load, {} are needed", out.edges,
                                 limits.min_edges));
  HEBE_CHECK(fit_line(points, plateaus, out));
  auto wider = out;
  if (fit_line(points, plateaus_of(points.external_w, 2 * guard), wider))
    out.gain_change = wider.gain - out.gain;
  fit_clock_errors(points, map, step, out);
  return out;
}

std::vector<bool> on_off_signature() {
  // x^7 + x^6 + 1: every pattern of seven but all zeros, once.
  std::vector<bool> slots;
  for (unsigned state = 1, i = 0; i < 127; ++i) {
    slots.push_back((state & 1U) != 0);
    const unsigned next = (state ^ (state >> 1U)) & 1U;
    state = (state >> 1U) | (next << 6U);
  }
  return slots;
}

} // namespace hebe::measure
