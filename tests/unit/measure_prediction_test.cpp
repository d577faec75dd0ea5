// Facts about predicting what extra traffic costs.
#include "measure/prediction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hebe::measure {
namespace {

// A board where a launch takes e0 + e1 f joules and t0 + t1 f seconds.
Calibration calibrated(double e0 = 0.01, double e1 = 0.009, double t0 = 6e-5, double t1 = 5e-5) {
  Calibration c;
  c.points = {CalibrationPoint{0.25, e0 + 0.25 * e1, 1e-6, t0 + 0.25 * t1, 1e-9, 600},
              CalibrationPoint{0.75, e0 + 0.75 * e1, 1e-6, t0 + 0.75 * t1, 1e-9, 610}};
  c.plain_bytes = 1e8;
  c.declared_fraction = 1;
  c.pairs = 4;
  c.run_id = "r";
  c.seal = std::string(64, 'a');
  return c;
}

Contrast seen(double percent_effect, double half_width = 0.1) {
  Contrast c;
  c.effect = std::log1p(percent_effect / 100);
  c.bca = c.t = {c.effect - half_width / 100, c.effect + half_width / 100};
  return c;
}

bool holds(const std::vector<Condition>& conditions, const std::string& part) {
  for (const auto& c : conditions)
    if (c.name.find(part) != std::string::npos) return c.holds;
  ADD_FAILURE() << part;
  return false;
}

TEST(Prediction, a_linear_board_is_predicted_exactly) {
  const auto p = predict(1, calibrated()).value();
  EXPECT_NEAR(p.at("energy").at("percent").get<double>(), 90, 1e-9);
  EXPECT_NEAR(p.at("latency").at("percent").get<double>(), 100 * 5.0 / 6, 1e-9);
  EXPECT_NEAR(p.at("model").at("marginal_energy_j_per_byte").get<double>(), 9e-11, 1e-20);
  EXPECT_NEAR(p.at("model").at("marginal_bandwidth_bytes_per_s").get<double>(), 2e12, 1);
  EXPECT_LT(p.at("energy").at("low_percent"), 90 * (1 - kAllowance));
  EXPECT_EQ(prediction_fault(p), "");
}

TEST(Prediction, the_range_grows_with_the_calibrations_error_as_the_delta_method_says) {
  auto c = calibrated();
  const auto half = [](const Json& p) {
    return p.at("energy").at("high_percent").get<double>() -
           p.at("energy").at("percent").get<double>();
  };
  const auto percent_at = [](Calibration x) {
    return predict(1, x).value().at("energy").at("percent").get<double>();
  };
  c.points[1].energy_error_j = 1e-5;
  c.points[0].energy_error_j = 2e-5;
  auto low = c, high = c;
  low.points[0].energy_j += 1e-8;
  high.points[1].energy_j += 1e-8;
  const double by_low = (percent_at(low) - percent_at(c)) / 1e-8,
               by_high = (percent_at(high) - percent_at(c)) / 1e-8;
  EXPECT_NEAR(half(predict(1, c).value()),
              kAllowance * 90 + kErrors * std::hypot(by_low * 2e-5, by_high * 1e-5), 0.01);
}

TEST(Prediction, what_has_no_prediction_is_refused) {
  for (const double f : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity()})
    EXPECT_EQ(predict(f, calibrated()).error().code, RefusalCode::bad_argument) << f;
  EXPECT_EQ(predict(1, calibrated(-0.001, 0.02)).error().code, RefusalCode::gate_failed)
      << "no energy without extra traffic";
  auto same = calibrated();
  same.points[1].fraction = same.points[0].fraction;
  EXPECT_FALSE(predict(1, same));
}

TEST(Prediction, each_way_of_failing_is_named_by_its_own_condition) {
  const auto p = predict(1, calibrated()).value();
  const auto good = control_conditions(p, seen(91), seen(82));
  for (const auto& c : good) EXPECT_TRUE(c.holds) << c.name << ": " << c.evidence;
  const auto wrong_sign = control_conditions(p, seen(-5), seen(82));
  EXPECT_FALSE(holds(wrong_sign, "right sign in energy"));
  EXPECT_TRUE(holds(wrong_sign, "interval of energy"));
  EXPECT_TRUE(holds(wrong_sign, "right sign in latency"));
  const auto wide = control_conditions(p, seen(91, 200), seen(82));
  EXPECT_FALSE(holds(wide, "interval of energy"));
  EXPECT_TRUE(holds(wide, "energy within"));
  const auto off = control_conditions(p, seen(91), seen(120));
  EXPECT_FALSE(holds(off, "latency within"));
  EXPECT_TRUE(holds(off, "energy within"));
  auto silent = calibrated();
  silent.declared_fraction = 0;
  EXPECT_FALSE(
      holds(control_conditions(predict(1, silent).value(), seen(91), seen(82)), "declares"));
}

TEST(Prediction, a_changed_prediction_does_not_follow_from_its_calibration) {
  for (const char* at :
       {"/energy/low_percent", "/energy/percent", "/latency/high_percent",
        "/calibration/low/energy_per_launch_j", "/calibration/high/latency_s", "/fraction"}) {
    auto p = predict(1, calibrated()).value();
    auto& value = p.at(Json::json_pointer(at));
    value = value.get<double>() * 1.001;
    EXPECT_NE(prediction_fault(p), "") << at;
  }
}

TEST(Prediction, a_board_at_its_power_limit_is_said_in_words) {
  EXPECT_NE(power_cap_words(2.5, "x").find("for 2.5 s of x"), std::string::npos);
  EXPECT_NE(power_cap_words(0, "x").find("was not"), std::string::npos);
  EXPECT_NE(power_cap_words({}, "x").find("could not be read"), std::string::npos);
}

} // namespace
} // namespace hebe::measure
