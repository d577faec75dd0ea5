// Facts about what a measurement is told as: the marginal energy of readings that are not sound is
// a refusal beside the rest, and never a number.
#include "capi/callable_answer.hpp"
#include "gpu/sim_device.hpp"

#include <gtest/gtest.h>

namespace hebe::capi {
namespace {

// A sound outcome of 200 W beyond idle for 1 ms a call, to be spoilt.
const campaign::CallableOutcome& sound() {
  static const auto outcome = [] {
    campaign::CallableRequest request;
    request.machine.selector = "sim";
    request.tier = measure::tier_named("smoke-v1").value();
    request.pairs = 3;
    request.window = Seconds(0.5);
    request.warm_up = Seconds(1);
    request.idle = Seconds(2);
    request.same = true;
    for (auto& arm : request.arms)
      arm.work = [](void* stream) {
        const gpu::TimedWork launch{Seconds(1e-3), Watts(200)};
        return gpu::enqueue_timed_work(stream, {&launch, 1}, 1, Seconds(0));
      };
    return measure_callables(evidence::DataRoot("/nonexistent"), request, {}).value();
  }();
  return outcome;
}

Json marginal_after(const std::function<void(campaign::CallableOutcome&)>& spoil) {
  auto outcome = sound();
  spoil(outcome);
  const auto told = measured_json(outcome);
  EXPECT_TRUE(told) << to_text(told.error());
  if (!told) return {};
  EXPECT_GT(told->at("energy_per_call_j").at("value").get<double>(), 0.3); // it stands by itself
  return told->at("marginal_j");
}

std::string code_of(const Json& marginal) {
  return marginal.contains("refused") ? marginal.at("refused").at("code").get<std::string>()
                                      : marginal.dump();
}
std::string what_of(const Json& marginal) {
  return marginal.at("refused").at("what").get<std::string>();
}

TEST(CapiAnswer, sound_readings_give_a_marginal_energy_that_says_its_idle) {
  const auto marginal = marginal_after([](auto&) {});
  ASSERT_TRUE(marginal.contains("value")) << marginal;
  EXPECT_NEAR(marginal.at("value").get<double>(), 0.2, 0.006);
  EXPECT_LT(marginal.at("low").get<double>(), marginal.at("value").get<double>());
  EXPECT_EQ(marginal.at("idle"), "clocks_up"); // the simulated board's never fall
  EXPECT_NEAR(marginal.at("idle_w").get<double>(), 124, 2);
}

TEST(CapiAnswer, clocks_that_fell_are_another_idle) {
  const auto marginal = marginal_after([](auto& o) { o.idle->end.sm_clock_mhz = 345; });
  EXPECT_EQ(marginal.at("idle"), "context_open");
}

TEST(CapiAnswer, an_idle_counter_that_held_is_not_metering) {
  const auto marginal =
      marginal_after([](auto& o) { o.idle->end.energy_mj = *o.idle->begin.energy_mj; });
  EXPECT_EQ(code_of(marginal), "meter_frozen");
  EXPECT_NE(what_of(marginal).find("did not advance in 2 s"), std::string::npos);
  EXPECT_NE(what_of(marginal).find("sim.counter.total_energy: usable"), std::string::npos);
}

TEST(CapiAnswer, an_idle_counter_that_went_backwards_or_was_not_read_is_refused) {
  EXPECT_EQ(code_of(marginal_after([](auto& o) { o.idle->end.energy_mj = 1; })), "meter_backwards");
  EXPECT_EQ(code_of(marginal_after([](auto& o) { o.idle->begin.energy_mj = meter::not_read(); })),
            "meter_unsupported");
}

TEST(CapiAnswer, idle_samples_that_showed_one_value_are_frozen) {
  const auto marginal = marginal_after([](auto& o) { o.idle->longest_repeat = Seconds(1.5); });
  EXPECT_EQ(code_of(marginal), "meter_frozen");
  EXPECT_NE(what_of(marginal).find("1.5 of 2 s"), std::string::npos) << marginal;
}

TEST(CapiAnswer, an_idle_power_that_was_not_measured_is_no_0_watts) {
  const auto marginal = marginal_after([](auto& o) { o.idle->power.reset(); });
  EXPECT_EQ(code_of(marginal), "meter_not_qualified");
  EXPECT_NE(what_of(marginal).find("no 0 J"), std::string::npos);
}

TEST(CapiAnswer, an_idle_power_without_an_error_was_not_measured) {
  EXPECT_EQ(code_of(marginal_after([](auto& o) { o.idle->standard_error = Watts(0); })),
            "bad_argument");
}

TEST(CapiAnswer, busy_at_or_below_idle_is_a_refusal_and_not_0) {
  for (const double idle_w : {330.0, 1000.0}) {
    const auto marginal = marginal_after([&](auto& o) { o.idle->power = Watts(idle_w); });
    EXPECT_EQ(code_of(marginal), "gate_failed");
    EXPECT_NE(what_of(marginal).find("at or below idle"), std::string::npos) << marginal;
  }
}

TEST(CapiAnswer, a_meter_that_was_rejected_gives_no_marginal_energy) {
  EXPECT_EQ(code_of(marginal_after([](auto& o) { o.meter_status = "frozen"; })), "meter_frozen");
  EXPECT_EQ(code_of(marginal_after([](auto& o) { o.meter_status = "rejected"; })),
            "meter_not_qualified");
}

TEST(CapiAnswer, windows_that_were_not_accepted_are_no_part_of_it_and_none_is_a_refusal) {
  auto outcome = sound();
  outcome.windows[0].pair_accepted = outcome.windows[1].pair_accepted = false;
  outcome.windows[0].estimate.energy_per_launch = Joules(1e6);
  const auto told = measured_json(outcome).value();
  EXPECT_LT(told.at("energy_per_call_j").at("value").get<double>(), 1);
  for (auto& w : outcome.windows) w.pair_accepted = false;
  EXPECT_EQ(measured_json(outcome).error().code, RefusalCode::gate_failed);
}

} // namespace
} // namespace hebe::capi
