#include "measure/contrast.hpp"

#include "measure/summary.hpp"

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

Result<Contrast> contrast_of(std::span<const double> d, std::span<const PairOrder> order,
                             double margin_percent, const Plan& plan) {
  Contrast c;
  HEBE_TRY(const auto summary, summarise(d));
  c.effect = summary.mean;
  c.spread = summary.sd;
  HEBE_TRY(c.t, t_interval(d, plan.level));
  BootstrapOptions options{plan.level, plan.resamples, plan.seed ^ kBootstrapSalt, true};
  HEBE_TRY(const auto corrected, bca_interval(d, options));
  options.small_sample_correction = false;
  HEBE_TRY(const auto plain, bca_interval(d, options));
  c.bca = corrected.interval;
  c.bca_plain = plain.interval;
  c.degenerate = corrected.degenerate;
  c.few = d.size() < kFewestBootstrapPairs;
  HEBE_TRY(c.sign_flip, sign_flip(d, plan.seed ^ kSignFlipSalt));
  c.margin = log_margin(margin_percent);
  HEBE_TRY(c.tost, tost(d, c.margin, plan.alpha));
  std::vector<double> ab, ba;
  for (std::size_t i = 0; i < d.size(); ++i) (order[i] == PairOrder::ab ? ab : ba).push_back(d[i]);
  HEBE_TRY(c.order, order_effect(ab, ba));
  HEBE_TRY(c.trend, trend(d));
  c.order_gate = gate(c.order.p, c.order.difference, plan.tier.order_alpha, c.margin);
  c.trend_gate = gate(c.trend.p, c.trend.total_change, plan.tier.trend_alpha, c.margin);
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
