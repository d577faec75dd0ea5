// Facts about the run loop on boards that are warm, held at their power limit, or never settled.
#include "measure/experiment.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::measure {
namespace {

Plan evidence_of_two_arms() {
  auto plan = test::smoke_plan(12);
  plan.tier = tier_named("confirmation-v1").value();
  plan.kind = "ab";
  plan.cubins[1] = std::string(64, 'b');
  plan.warm_up = Seconds(30);
  plan.window = Seconds(5);
  EXPECT_TRUE(complete_plan(plan));
  return plan;
}

TEST(ExperimentOnABoard, a_power_cap_is_recorded_and_is_no_fault) {
  auto model = test::still_model();
  model.power_limit = Watts(300);
  test::SimGpu sim(1, {}, model);
  const auto raw = sim.run(test::smoke_plan());
  ASSERT_TRUE(raw) << raw.error().what;
  for (const auto& w : raw->windows) {
    EXPECT_NEAR(w.estimate.mean_power->value(), 300, 1);
    EXPECT_GT(*w.reading.end.throttle.power_cap_ns - *w.reading.begin.throttle.power_cap_ns,
              400'000'000);
  }
}

TEST(ExperimentOnABoard, an_evidence_run_does_not_begin_before_the_board_has_settled) {
  auto plan = test::smoke_plan();
  plan.tier = tier_named("confirmation-v1").value();
  plan.warm_up = Seconds(30);
  plan.pairs = 12;
  plan.window = Seconds(5);
  ASSERT_TRUE(complete_plan(plan));
  auto model = gpu::BoardModel{};
  model.thermal_time_constant = Seconds(300); // and never within the 300 s that are allowed
  model.kelvin_per_watt = 0.2;
  test::SimGpu sim(1, {}, model);
  const auto raw = sim.run(plan);
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().code, RefusalCode::not_stable);
  EXPECT_NE(raw.error().what.find("of warm-up the board had not settled"), std::string::npos)
      << raw.error().what;
  EXPECT_NE(raw.error().what.find("the temperature moved between"), std::string::npos)
      << raw.error().what;
}

gpu::BoardModel held_down() {
  gpu::BoardModel model;
  model.flops = 1024 / 25e-6; // of the 1024 operations that a launch has here
  model.joules_per_operation = 775 * 25e-6 / 1024;
  return model;
}

TEST(ExperimentOnABoard,
     arithmetic_at_the_power_limit_is_measured_as_evidence_though_its_clock_wanders) {
  auto plan = test::smoke_plan(12);
  plan.tier = tier_named("confirmation-v1").value();
  plan.warm_up = Seconds(30);
  plan.window = Seconds(5);
  ASSERT_TRUE(complete_plan(plan));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    test::SimGpu sim(seed, {}, held_down(), {1e6, 1e6});
    const auto raw = sim.run(plan);
    ASSERT_TRUE(raw) << to_text(raw.error());
    EXPECT_EQ(raw->windows.size(), 24U) << "seed " << seed << ": none was measured again";
    for (const auto& w : raw->windows) {
      EXPECT_NEAR(w.estimate.mean_power->value(), 700, 2);
      EXPECT_GT(w.reading.replay_cv, 0.005) << "the model's replays do follow its clock";
    }
  }
  auto before = plan;
  before.tier.max_capped_replay_cv.reset();
  before.tier.max_capped_clock_change.reset();
  test::SimGpu sim(1, {}, held_down(), {1e6, 1e6});
  EXPECT_FALSE(sim.run(before));
}

TEST(ExperimentOnABoard, arms_at_a_limit_that_swings_after_idleness_are_measured) {
  auto model = held_down();
  model.limit_swing = 0.48;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    test::SimGpu sim(seed, {}, model, {1e6, 1e6});
    const auto raw = sim.run(evidence_of_two_arms());
    ASSERT_TRUE(raw) << to_text(raw.error());
    EXPECT_EQ(raw->windows.size(), 24U) << "seed " << seed << ": none was measured again";
    for (const auto& w : raw->windows) EXPECT_NEAR(w.estimate.mean_power->value(), 700, 7);
  }
}

// A product at 690 W before one at 430: an H200's first replays of it took 13 to 23 % longer.
TEST(ExperimentOnABoard, a_clock_that_comes_back_from_the_limit_is_no_idleness) {
  auto plan = evidence_of_two_arms();
  auto model = held_down();
  model.joules_per_operation = 300 * 25e-6 / 1024;
  model.kelvin_per_watt = 0.01; // of two windows of one arm in a row the board makes no drift
  double slowest = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    test::SimGpu sim(seed, {}, model, {1e6, 9e7}); // 425 W more, of memory, within the same time
    const auto raw = sim.run(plan);
    ASSERT_TRUE(raw) << to_text(raw.error());
    EXPECT_EQ(raw->windows.size(), 24U) << "seed " << seed << ": none was measured again";
    for (const auto& w : raw->windows) {
      const auto& times = w.reading.pre_roll_replays;
      // The clock is read once, and moves.
      EXPECT_LT(w.reading.idle_before.value(), 0.0045) << seed;
      if (w.reading.arm == 0) slowest = std::max(slowest, times.front() / times.back());
    }
  }
  EXPECT_GT(slowest, 1.1) << "the model's clock does come back late";
  auto before = plan;
  before.tier.max_clock_recovery.reset();
  test::SimGpu sim(1, {}, model, {1e6, 9e7});
  const auto raw = sim.run(before);
  EXPECT_TRUE(!raw || raw->windows.size() > 24U) << "plans from before are run as they were";
}

// A launch of 1 MB is mostly overhead: arms hundreds of watts apart, the board 5 C at their ends.
TEST(ExperimentOnABoard, arms_of_unequal_power_are_no_drift) {
  auto plan = evidence_of_two_arms();
  test::SimGpu sim(1, {}, gpu::BoardModel{}, {1e8, 1e6});
  const auto raw = sim.run(plan);
  ASSERT_TRUE(raw) << to_text(raw.error());
  double apart = 0;
  for (std::size_t i = 0; i < raw->windows.size(); i += 2)
    apart = std::max(apart,
                     std::abs(static_cast<double>(*raw->windows[i].reading.end.temperature_c -
                                                  *raw->windows[i + 1].reading.end.temperature_c)));
  EXPECT_GT(apart, 2);
  plan.tier.drift_beyond_arms = false;
  test::SimGpu again(1, {}, gpu::BoardModel{}, {1e8, 1e6});
  const auto before = again.run(plan);
  ASSERT_FALSE(before);
  EXPECT_EQ(before.error().code, RefusalCode::not_stable) << to_text(before.error());
}

TEST(ExperimentOnABoard, a_room_that_warms_within_the_pairs_is_drift_still) {
  auto plan = evidence_of_two_arms();
  test::SimGpu sim(1, test::faults_from({"ambient_rise@150"}), gpu::BoardModel{}, {1e8, 1e6});
  const auto raw = sim.run(plan);
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().code, RefusalCode::not_stable) << to_text(raw.error());
}

} // namespace
} // namespace hebe::measure
