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
  std::vector<std::size_t> switches;
  bool on = power[0] > low + 0.5 * swing;
  for (std::size_t i = 0; i < power.size(); ++i) {
    if (on ? power[i] < low + swing / 3 : power[i] > low + 2 * swing / 3)
      on = !on, switches.push_back(i);
    out.of_point[i] = static_cast<int>(switches.size());
  }
  for (const auto at : switches)
    for (auto i = at - std::min(at, guard); i < std::min(at + guard, power.size()); ++i)
      out.of_point[i] = -1;
  out.edges = static_cast<int>(switches.size());
  return out;
}

/// The line through the plateaus' points, with standard errors by plateau.
Status fit_line(const PairedPoints& points, const Plateaus& plateaus, ExternalAlignment& out) {
  const auto& x = points.external_w;
  const auto& y = points.internal_w;
  double n = 0, mx = 0, my = 0, sxx = 0, sxy = 0;
  const auto each = [&](auto&& visit) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (plateaus.of_point[i] >= 0) visit(i);
  };
  each([&](std::size_t i) { n += 1, mx += x[i], my += y[i]; });
  if (n < kFewestPoints)
    return not_found(fmt::format("only {} points lie away from the switches: the signature is too "
                                 "fast for these meters",
                                 n));
  mx /= n, my /= n;
  each([&](std::size_t i) { sxx += (x[i] - mx) * (x[i] - mx), sxy += (x[i] - mx) * (y[i] - my); });
  if (sxx <= 0) return not_found("the external power does not switch between its plateaus");
  out.gain = sxy / sxx;
  out.offset_w = my - out.gain * mx;

  std::vector<double> gain_by(static_cast<std::size_t>(plateaus.edges) + 1), offset_by = gain_by;
  std::vector<bool> seen(gain_by.size());
  double squares = 0;
  each([&](std::size_t i) {
    const double r = y[i] - out.offset_w - out.gain * x[i], pull = (x[i] - mx) / sxx;
    const auto plateau = static_cast<std::size_t>(plateaus.of_point[i]);
    squares += r * r;
    seen[plateau] = true;
    gain_by[plateau] += r * pull;
    offset_by[plateau] += r * (1 / n - mx * pull);
  });
  out.points = static_cast<std::size_t>(n);
  out.plateaus = static_cast<std::size_t>(std::ranges::count(seen, true));
  const auto g = static_cast<double>(out.plateaus);
  if (g < 4)
    return not_found(fmt::format("only {} plateaus can be compared: the signature is too fast for "
                                 "these meters",
                                 out.plateaus));
  double gain_var = 0, offset_var = 0;
  for (const double v : gain_by) gain_var += v * v;
  for (const double v : offset_by) offset_var += v * v;
  out.gain_se = std::sqrt(gain_var * g / (g - 2));
  out.offset_se_w = std::sqrt(offset_var * g / (g - 2));
  out.residual_w = std::sqrt(squares / (n - 2));
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
  const double step = std::max(median_step(internal.time_s), median_step(external.time_s));
  const MeanPower inside(internal), outside(external);
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
  constexpr std::size_t kGuard = 3; // points: the filters of both meters settle
  const auto plateaus = plateaus_of(points.external_w, kGuard);
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
