#include "measure/contrast.hpp"

#include "measure/summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace hebe::measure {
namespace {

constexpr std::uint64_t kBootstrapSalt = 0x626f6f74,
                        kSignFlipSalt = 0x666c6970; // streams of the plan's seed

Json interval_json(const Interval& i) {
  return {{"low_percent", percent(i.low)}, {"high_percent", percent(i.high)}};
}
template <class T> Json or_null(const std::optional<T>& v) { return v ? Json(*v) : Json(nullptr); }

// An order effect or a trend voids a job only when it is both established and as large as the
// margin: a balanced order cancels the first, pairing the second.
bool gate(const std::optional<double>& p, const std::optional<double>& size, double alpha,
          double margin) {
  return !(p && *p < alpha && size && std::abs(*size) > margin);
}

} // namespace

double percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

std::string_view name_of(Verdict v) {
  switch (v) {
  case Verdict::lower:
    return "lower";
  case Verdict::higher:
    return "higher";
  case Verdict::equivalent:
    return "equivalent";
  case Verdict::inconclusive:
    return "inconclusive";
  case Verdict::invalid:
    return "invalid";
  }
  return "invalid";
}

namespace {

// The order was drawn balanced, so what the second window of a pair reads more cancels in the mean.
// It must not count as noise either: each pair is moved by its order's own mean, which costs a
// degree of freedom. (Analysed as if unordered, simulated jobs under a power drift had intervals
// twice too wide.)
struct Adjusted {
  std::vector<double> values;
  int estimated_means = 1;
};

Adjusted without_order(std::span<const double> d, std::span<const PairOrder> order) {
  std::array<double, 2> sum{};
  std::array<int, 2> count{};
  for (std::size_t i = 0; i < d.size(); ++i) {
    const auto group = order[i] == PairOrder::ab ? 0U : 1U;
    sum[group] += d[i];
    ++count[group];
  }
  Adjusted out{{d.begin(), d.end()}, 1};
  if (std::min(count[0], count[1]) < 2) return out; // too few to tell the order from the noise
  const std::array<double, 2> mean{sum[0] / count[0], sum[1] / count[1]};
  const double middle = 0.5 * (mean[0] + mean[1]);
  for (std::size_t i = 0; i < d.size(); ++i)
    out.values[i] += middle - mean[order[i] == PairOrder::ab ? 0U : 1U];
  out.estimated_means = 2;
  return out;
}

} // namespace

Result<Contrast> contrast_of(std::span<const double> d, std::span<const PairOrder> order,
                             double margin_percent, const Plan& plan) {
  Contrast c;
  HEBE_TRY(const auto summary, summarise(d));
  c.spread = summary.sd;
  const auto [values, means] = without_order(d, order);
  c.effect = mean_of(values);
  HEBE_TRY(c.t, t_interval(values, plan.level, means));
  HEBE_TRY(const auto bca, bca_interval(values, {plan.level, plan.resamples,
                                                 plan.seed ^ kBootstrapSalt, means, true}));
  c.bca = bca.interval;
  c.bca_plain = bca.uncorrected;
  c.degenerate = bca.degenerate;
  c.few = d.size() < kFewestBootstrapPairs;
  std::vector<bool> a_first;
  for (const auto o : order) a_first.push_back(o == PairOrder::ab);
  HEBE_TRY(c.sign_flip, balanced_sign_flip(d, a_first, plan.seed ^ kSignFlipSalt));
  c.margin = log_margin(margin_percent);
  HEBE_TRY(c.tost, tost(values, c.margin, plan.alpha, means));
  std::vector<double> ab, ba;
  for (std::size_t i = 0; i < d.size(); ++i) (order[i] == PairOrder::ab ? ab : ba).push_back(d[i]);
  HEBE_TRY(c.order, order_effect(ab, ba));
  HEBE_TRY(c.trend, trend(d));
  // A wide margin must not hide an order effect: the tier's own is the most that counts as small.
  const double small = std::min(c.margin, log_margin(plan.tier.max_energy_margin));
  c.order_gate = gate(c.order.p, c.order.difference, plan.tier.order_alpha, small);
  c.trend_gate = gate(c.trend.p, c.trend.total_change, plan.tier.trend_alpha, small);
  if (!c.order_gate || !c.trend_gate)
    c.verdict = Verdict::invalid;
  else if (c.tost.equivalent)
    c.verdict = Verdict::equivalent;
  else if (c.shown().high < 0)
    c.verdict = Verdict::lower;
  else if (c.shown().low > 0)
    c.verdict = Verdict::higher;
  return c;
}

Json to_json(const Contrast& c) {
  return {{"effect_percent", percent(c.effect)},
          {"effect_log_ratio", c.effect},
          {"pair_spread_percent", 100 * c.spread},
          {"interval_shown", c.few ? "t" : "bca"},
          {"interval_bca", interval_json(c.bca)},
          {"interval_bca_uncorrected", interval_json(c.bca_plain)},
          {"interval_t", interval_json(c.t)},
          {"degenerate", c.degenerate},
          {"sign_flip",
           {{"p", c.sign_flip.p}, {"exact", c.sign_flip.exact}, {"patterns", c.sign_flip.count}}},
          {"equivalence",
           {{"margin_percent", percent(c.margin)},
            {"p_lower", c.tost.p_lower},
            {"p_upper", c.tost.p_upper},
            {"p", c.tost.p},
            {"equivalent", c.tost.equivalent}}},
          {"order_effect",
           {{"difference_percent",
             c.order.difference ? Json(percent(*c.order.difference)) : Json(nullptr)},
            {"p", or_null(c.order.p)},
            {"passed", c.order_gate}}},
          {"trend",
           {{"total_change_percent", percent(c.trend.total_change)},
            {"p", or_null(c.trend.p)},
            {"passed", c.trend_gate}}},
          {"verdict", name_of(c.verdict)}};
}

} // namespace hebe::measure
