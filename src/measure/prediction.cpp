#include "measure/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::measure {
namespace {

Json or_null(const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); }
std::optional<double> number_or_none(const Json& j) {
  return j.is_null() ? std::nullopt : std::optional(j.get<double>());
}

// A quantity against the fraction of extra traffic: the line through two points.
struct Line {
  double plain = 0, per_fraction = 0; ///< at no extra traffic; per 100 % extra
  double percent = 0, half_width = 0; ///< the predicted effect and its range
};

Line line_through(double f0, double y0, double error0, double f1, double y1, double error1,
                  double fraction) {
  Line l;
  const double span = f1 - f0;
  l.per_fraction = (y1 - y0) / span;
  l.plain = y0 - f0 * l.per_fraction;
  const double scale = 100 * fraction / (l.plain * l.plain);
  l.percent = 100 * fraction * l.per_fraction / l.plain;
  const double from_high = scale * y0 / span, from_low = scale * (y0 / span + l.per_fraction);
  l.half_width = kAllowance * std::abs(l.percent) +
                 kErrors * std::hypot(from_high * error1, from_low * error0);
  return l;
}

Json effect_json(const Line& l) {
  return {{"percent", l.percent},
          {"low_percent", l.percent - l.half_width},
          {"high_percent", l.percent + l.half_width}};
}

Json point_json(const CalibrationPoint& p) {
  return {{"fraction", p.fraction},
          {"energy_per_launch_j", p.energy_j},
          {"energy_error_j", p.energy_error_j},
          {"latency_s", p.latency_s},
          {"latency_error_s", p.latency_error_s},
          {"power_w", p.power_w}};
}

Json calibration_json(const Calibration& c) {
  return {{"run_id", c.run_id},
          {"seal", c.seal},
          {"pairs", c.pairs},
          {"low", point_json(c.points[0])},
          {"high", point_json(c.points[1])},
          {"plain_bytes", c.plain_bytes},
          {"declared_fraction", c.declared_fraction},
          {"power_capped_s", or_null(c.capped_s)},
          {"power_limit_w", or_null(c.power_limit_w)}};
}

} // namespace

std::string power_cap_words(std::optional<double> capped_s, const char* during) {
  if (!capped_s)
    return fmt::format("whether the board was at its power limit during {} could not "
                       "be read",
                       during);
  if (*capped_s <= 0) return fmt::format("the board was not at its power limit during {}", during);
  return fmt::format(
      "the board was at its power limit for {:.3g} s of {}: its clocks fall there, so "
      "the extra traffic shows as time and not as power",
      *capped_s, during);
}

Result<Json> predict(double fraction, const Calibration& c) {
  const auto &low = c.points[0], &high = c.points[1];
  for (const double f : {fraction, low.fraction, high.fraction})
    if (!std::isfinite(f) || f <= 0)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("a fraction of {} of extra traffic has no effect to predict", f),
                    "give a fraction above 0", "--fraction");
  if (!(low.fraction < high.fraction))
    return refuse(RefusalCode::bad_argument, "two calibrations of one fraction have no slope");
  const auto energy = line_through(low.fraction, low.energy_j, low.energy_error_j, high.fraction,
                                   high.energy_j, high.energy_error_j, fraction);
  const auto latency = line_through(low.fraction, low.latency_s, low.latency_error_s, high.fraction,
                                    high.latency_s, high.latency_error_s, fraction);
  if (!(energy.plain > 0) || !(latency.plain > 0))
    return refuse(RefusalCode::gate_failed,
                  fmt::format("calibrated at fractions {} and {}, a launch with no extra traffic "
                              "would take {:.3g} J and {:.3g} s",
                              low.fraction, high.fraction, energy.plain, latency.plain),
                  "the kernel is not bound by its traffic, or the board is unsteady: use the "
                  "traffic-control case, and a larger n");
  const auto per_byte = [&](double per_fraction) { return per_fraction / c.plain_bytes; };
  const double seconds_per_byte = per_byte(latency.per_fraction);
  return Json{
      {"fraction", fraction},
      {"calibration", calibration_json(c)},
      {"model",
       {{"text", "energy and time of a launch are straight lines in its traffic; the lines go "
                 "through the calibration, which is none of the control's windows"},
        {"marginal_energy_j_per_byte", per_byte(energy.per_fraction)},
        {"marginal_bandwidth_bytes_per_s",
         seconds_per_byte > 0 ? Json(1 / seconds_per_byte) : Json(nullptr)},
        {"bandwidth_bytes_per_s", c.plain_bytes * (1 + high.fraction) / high.latency_s},
        {"plain_energy_j", energy.plain},
        {"plain_latency_s", latency.plain},
        {"allowance_ratio", kAllowance},
        {"standard_errors", kErrors},
        {"power_cap", power_cap_words(c.capped_s, "the calibration")}}},
      {"energy", effect_json(energy)},
      {"latency", effect_json(latency)}};
}

Result<Calibration> calibration_from(const Json& j) {
  try {
    Calibration c;
    std::size_t i = 0;
    for (const char* name : {"low", "high"}) {
      const auto& p = j.at(name);
      c.points[i++] = {p.at("fraction"),  p.at("energy_per_launch_j"), p.at("energy_error_j"),
                       p.at("latency_s"), p.at("latency_error_s"),     p.at("power_w")};
    }
    c.plain_bytes = j.at("plain_bytes");
    c.declared_fraction = j.at("declared_fraction");
    c.capped_s = number_or_none(j.at("power_capped_s"));
    c.power_limit_w = number_or_none(j.at("power_limit_w"));
    c.pairs = j.at("pairs");
    c.run_id = j.at("run_id");
    c.seal = j.at("seal");
    return c;
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::bad_schema, std::string("calibration: ") + e.what());
  }
}

Calibration calibration_of(const Json& analysis, double low, double high) {
  Calibration c;
  c.pairs = static_cast<int>(analysis.at("pairs").size());
  const auto point = [&](const char* name, double fraction) -> CalibrationPoint {
    const auto& arm = analysis.at("arms").at(name);
    const auto error = [&](const char* mean, const char* cv) {
      if (arm.at(cv).is_null()) return 0.0;
      return arm.at(mean).get<double>() * arm.at(cv).get<double>() / std::sqrt(c.pairs);
    };
    return {fraction,
            arm.at("energy_per_launch_j"),
            error("energy_per_launch_j", "energy_cv_ratio"),
            arm.at("latency_s"),
            error("latency_s", "latency_cv_ratio"),
            arm.at("power_w")};
  };
  c.points = {point("A", low), point("B", high)};
  c.capped_s = number_or_none(analysis.at("windows").at("power_capped_s"));
  return c;
}

std::string calibration_fault(const Json& stored, const Json& analysis) {
  const auto now = calibration_json(
      calibration_of(analysis, stored.at("low").at("fraction"), stored.at("high").at("fraction")));
  for (const char* at : {"low", "high"})
    for (const auto& [name, value] : now.at(at).items()) {
      const double a = stored.at(at).at(name), b = value;
      if (!(std::abs(a - b) <= 1e-6 * std::abs(b))) return fmt::format("{}/{}", at, name);
    }
  for (const char* at : {"pairs", "power_capped_s"})
    if (stored.at(at) != now.at(at)) return at;
  return {};
}

std::string prediction_fault(const Json& stored) {
  const auto calibration = calibration_from(stored.at("calibration"));
  if (!calibration) return calibration.error().what;
  const auto again = predict(stored.at("fraction"), *calibration);
  if (!again) return again.error().what;
  for (const char* quantity : {"energy", "latency"})
    for (const char* end : {"percent", "low_percent", "high_percent"}) {
      const double a = stored.at(quantity).at(end), b = again->at(quantity).at(end);
      if (!(std::abs(a - b) <= 1e-9 + 1e-6 * std::abs(b)))
        return fmt::format("{} {}: stored {}, predicted {}", quantity, end, a, b);
    }
  return {};
}

std::vector<Condition> control_conditions(const Json& prediction, const Contrast& energy,
                                          const Contrast& latency) {
  std::vector<Condition> out;
  const double fraction = prediction.at("fraction"),
               declared = prediction.at("calibration").at("declared_fraction");
  out.push_back(
      {"control: the case declares the extra traffic", std::abs(declared / fraction - 1) <= 0.05,
       fmt::format("arm B declares {:.4g} % more bytes than arm A, the fraction is {:.4g} %",
                   100 * declared, 100 * fraction)});
  for (const auto& [name, contrast] :
       {std::pair("energy", &energy), std::pair("latency", &latency)}) {
    const auto& due = prediction.at(name);
    const double low = due.at("low_percent"), high = due.at("high_percent"),
                 seen = percent(contrast->effect);
    const auto interval = fmt::format("[{:+.4f}, {:+.4f}] %", percent(contrast->shown().low),
                                      percent(contrast->shown().high));
    out.push_back({fmt::format("control: right sign in {}", name), contrast->effect > 0,
                   fmt::format("{:+.4f} %; more traffic costs more", seen)});
    out.push_back({fmt::format("control: interval of {} excludes 0", name),
                   contrast->shown().low > 0 || contrast->shown().high < 0, interval});
    out.push_back({fmt::format("control: {} within the predicted range", name),
                   low <= seen && seen <= high,
                   fmt::format("{:+.4f} %, predicted {:+.4f} % within {:+.4f} and {:+.4f} %", seen,
                               due.at("percent").get<double>(), low, high)});
  }
  return out;
}

Json control_json(const Json& prediction, const std::vector<Condition>& conditions,
                  std::optional<double> capped_s) {
  const bool seen =
      std::all_of(conditions.begin(), conditions.end(), [](auto& c) { return c.holds; });
  return {
      {"seen", seen},
      {"fraction", prediction.at("fraction")},
      {"predicted", {{"energy", prediction.at("energy")}, {"latency", prediction.at("latency")}}},
      {"power_cap", {{"evidence", power_cap_words(capped_s, "the accepted windows")}}}};
}

} // namespace hebe::measure
