#include "measure/ladder_fit.hpp"

#include "measure/summary.hpp"

#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace hebe::measure {
namespace {

Status check_points(std::span<const LadderPoint> points, std::size_t fewest) {
  std::map<double, int> fractions;
  for (const auto& p : points) {
    if (!std::isfinite(p.fraction) || !std::isfinite(p.effect_percent) || p.effect_percent <= -100)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("an effect of {} % at a fraction of {} cannot be fitted",
                                p.effect_percent, p.fraction));
    ++fractions[p.fraction];
  }
  if (points.size() >= fewest && fractions.size() >= 2) return {};
  return refuse(RefusalCode::bad_argument,
                fmt::format("{} runs at {} fractions are too few for a ladder", points.size(),
                            fractions.size()),
                "at least two fractions and three runs");
}

double weight_of(const LadderPoint& p) { return std::pow(1 + p.effect_percent / 100, -2); }

// Weighted sums of squares: of the runs about their fraction's mean, and of these about the line.
LackOfFit lack_of_fit(std::span<const LadderPoint> points, double residual_ss, double total_ss) {
  struct Group {
    double weight = 0, sum = 0;
    int runs = 0;
  };
  std::map<double, Group> groups;
  for (const auto& p : points) {
    auto& g = groups[p.fraction];
    g.weight += weight_of(p);
    g.sum += weight_of(p) * p.effect_percent;
    ++g.runs;
  }
  double pure = 0;
  for (const auto& p : points) {
    const auto& g = groups[p.fraction];
    pure += weight_of(p) * std::pow(p.effect_percent - g.sum / g.weight, 2);
  }
  LackOfFit out;
  out.df_line = static_cast<int>(groups.size()) - 2;
  out.df_replicates = static_cast<int>(points.size() - groups.size());
  // Replicates that do not differ but by rounding give no scale to judge by.
  if (out.df_line < 1 || out.df_replicates < 1 || pure <= 1e-24 * total_ss) return out;
  out.f = std::max(0.0, residual_ss - pure) / out.df_line / (pure / out.df_replicates);
  const boost::math::fisher_f_distribution<double> distribution(out.df_line, out.df_replicates);
  out.p = boost::math::cdf(boost::math::complement(distribution, out.f));
  return out;
}

} // namespace

Result<LineFit> fit_line(std::span<const LadderPoint> points, double level) {
  HEBE_CHECK(check_points(points, 3));
  HEBE_CHECK(check_fraction("level", level));
  double total = 0, mean_x = 0, mean_y = 0;
  for (const auto& p : points) {
    const double w = weight_of(p);
    total += w;
    mean_x += w * p.fraction;
    mean_y += w * p.effect_percent;
  }
  mean_x /= total;
  mean_y /= total;
  double xx = 0, xy = 0, yy = 0;
  for (const auto& p : points) {
    const double w = weight_of(p), x = p.fraction - mean_x, y = p.effect_percent - mean_y;
    xx += w * x * x;
    xy += w * x * y;
    yy += w * y * y;
  }
  LineFit fit;
  fit.slope = xy / xx;
  fit.intercept = mean_y - fit.slope * mean_x;
  double residual_ss = 0;
  for (const auto& p : points) {
    fit.residuals.push_back(p.effect_percent - fit.intercept - fit.slope * p.fraction);
    residual_ss += weight_of(p) * std::pow(fit.residuals.back(), 2);
  }
  const double df = static_cast<double>(points.size()) - 2;
  const double variance = residual_ss / df;
  fit.residual_sd = std::sqrt(variance);
  fit.slope_error = std::sqrt(variance / xx);
  fit.intercept_error = std::sqrt(variance * (1 / total + mean_x * mean_x / xx));
  const double t = t_exceeded_with((1 - level) / 2, df);
  fit.slope_interval = {fit.slope - t * fit.slope_error, fit.slope + t * fit.slope_error};
  fit.intercept_interval = {fit.intercept - t * fit.intercept_error,
                            fit.intercept + t * fit.intercept_error};
  if (yy > 0) fit.r_squared = 1 - residual_ss / yy;
  fit.lack_of_fit = lack_of_fit(points, residual_ss, yy);
  return fit;
}

Result<Monotone> monotone_response(std::span<const LadderPoint> points) {
  HEBE_CHECK(check_points(points, 2));
  std::map<double, std::vector<double>> groups;
  for (const auto& p : points) groups[p.fraction].push_back(p.effect_percent);
  // Pool adjacent violators; the largest fall is how far a mean is moved.
  struct Block {
    double mean = 0, runs = 0;
    std::vector<double> means;
  };
  std::vector<Block> blocks;
  for (const auto& [fraction, effects] : groups) {
    const double mean = mean_of(effects);
    blocks.push_back({mean, static_cast<double>(effects.size()), {mean}});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean > blocks.back().mean) {
      auto last = std::move(blocks.back());
      blocks.pop_back();
      auto& b = blocks.back();
      b.mean = (b.mean * b.runs + last.mean * last.runs) / (b.runs + last.runs);
      b.runs += last.runs;
      b.means.insert(b.means.end(), last.means.begin(), last.means.end());
    }
  }
  Monotone out;
  for (const auto& b : blocks)
    for (const double mean : b.means)
      out.largest_fall = std::max(out.largest_fall, std::abs(mean - b.mean));
  out.holds = blocks.size() == groups.size();
  // Jonckheere and Terpstra: pairs of runs at two fractions that are in the order of these.
  double in_order = 0, squares = 0, of_variance = 0;
  const auto n = static_cast<double>(points.size());
  for (auto a = groups.begin(); a != groups.end(); ++a) {
    const auto m = static_cast<double>(a->second.size());
    squares += m * m;
    of_variance += m * m * (2 * m + 3);
    for (auto b = std::next(a); b != groups.end(); ++b)
      for (const double x : a->second)
        for (const double y : b->second) in_order += x < y ? 1.0 : x == y ? 0.5 : 0.0;
  }
  const double expected = (n * n - squares) / 4,
               variance = (n * n * (2 * n + 3) - of_variance) / 72;
  if (variance > 0) {
    const boost::math::normal_distribution<double> normal;
    out.trend_p = boost::math::cdf(
        boost::math::complement(normal, (in_order - expected) / std::sqrt(variance)));
  }
  return out;
}

} // namespace hebe::measure
