// Facts about consistency: each stored fact that another one contradicts is named.
#include "measure/consistency.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "../data/support/made_run.hpp"

namespace hebe::measure {
namespace {

using Parts = evidence::RunParts;

const Parts& healthy() {
  static const auto parts = test::made_run(test::smoke_plan());
  return parts;
}

Status checked(const Parts& p) { return check_consistency(p.plan, p.acquisition, p.windows); }

void follow(Parts& p, const std::string& source, double lag, double pre_roll) {
  p.acquisition.behaviour.response.record =
      MeterResponse{std::string(64, 'e'), source, Seconds(lag), Seconds(pre_roll), Seconds(0.1)};
}

TEST(Consistency, a_response_record_that_the_step_bears_out_is_consistent) {
  auto parts = healthy();
  follow(parts, parts.acquisition.samples.name, 0.04, 0.2);
  const auto status = checked(parts);
  EXPECT_TRUE(status) << status.error().what;
}

TEST(Consistency, a_run_as_it_was_made_is_consistent) {
  const auto status = checked(healthy());
  EXPECT_TRUE(status) << status.error().what;
}

// Each is what the one before it did not have yet; a stored plan is of one of them.
TEST(Consistency, a_plan_has_the_thresholds_of_one_generation_of_its_tier) {
  const std::function<void(Tier&)> without[] = {[](Tier&) {},
                                                [](Tier& t) {
                                                  t.steady_power.reset();
                                                  t.steady_energy_change.reset();
                                                  t.max_clock_recovery.reset();
                                                },
                                                [](Tier& t) {
                                                  t.settle_by_arm = false;
                                                  t.max_hold.reset();
                                                },
                                                [](Tier& t) {
                                                  t.drift_beyond_arms = false;
                                                  t.max_capped_clock_change.reset();
                                                  t.max_capped_replay_cv.reset();
                                                }};
  auto parts = healthy();
  for (const auto& change : without) {
    change(parts.plan.tier);
    const auto status = checked(parts);
    EXPECT_TRUE(status) << status.error().what;
  }
  for (std::size_t i = 1; i < std::size(without); ++i) {
    auto mixed = healthy(); // one rule dropped, a younger one kept
    without[i](mixed.plan.tier);
    EXPECT_EQ(checked(mixed).has_value(), i == 1) << i;
  }
}

TEST(Consistency, each_contradiction_is_named) {
  struct Row {
    const char* what;
    std::function<void(Parts&)> change;
  };
  const Row table[] = {
      {"thresholds are not those of tier \"smoke-v1\"",
       [](Parts& p) { p.plan.tier.max_sample_gap = Seconds(9); }},
      {"thresholds are not those of tier \"mine\"", [](Parts& p) { p.plan.tier.name = "mine"; }},
      {"thresholds are not those of tier \"confirmation-v1\"",
       [](Parts& p) { p.plan.tier.name = "confirmation-v1"; }},
      {"below its tier", [](Parts& p) { p.plan.tier = tier_named("confirmation-v1").value(); }},
      {"below its tier", [](Parts& p) { p.plan.window = Seconds(0.4); }},
      {"not what the seed gives",
       [](Parts& p) {
         p.plan.order[0] = p.plan.order[0] == PairOrder::ab ? PairOrder::ba : PairOrder::ab;
       }},
      {"not what the seed gives", [](Parts& p) { p.plan.pairs = 30; }},
      {"two different cubins", [](Parts& p) { p.plan.cubins[1] = std::string(64, 'b'); }},
      {"not the artifact that was compiled",
       [](Parts& p) { p.plan.subject["artifacts"]["cubin"] = std::string(64, 'b'); }},
      {"the plan's device is measured, the windows are simulated",
       [](Parts& p) { p.plan.device["provenance"] = "measured"; }},
      {"the plan's device is simulated, the windows are measured",
       [](Parts& p) { p.acquisition.provenance = Provenance::measured; }},
      {"source sim.samples.total_power cannot be measured",
       [](Parts& p) {
         p.plan.device["provenance"] = "measured", p.acquisition.provenance = Provenance::measured;
       }},
      {"source nvml.counter cannot be simulated",
       [](Parts& p) { p.acquisition.counter.name = "nvml.counter"; }},
      {"the warm-up has no blocks", [](Parts& p) { p.acquisition.warm_up.blocks.clear(); }},
      {"whether the warm-up settled",
       [](Parts& p) { p.acquisition.warm_up.stable = !p.acquisition.warm_up.stable; }},
      {"shorter than planned", [](Parts& p) { p.plan.warm_up = Seconds(60); }},
      {"span more than its duration",
       [](Parts& p) { p.acquisition.warm_up.duration = Seconds(1); }},
      {"reference temperature", [](Parts& p) { *p.acquisition.reference.temperature_c += 1; }},
      {"reference temperature", [](Parts& p) { p.acquisition.reference.temperature_c.reset(); }},
      {"reference latency",
       [](Parts& p) {
         p.acquisition.reference.latency[1] = p.acquisition.reference.latency[1] * 1.00001;
       }},
      {"the response record is of nvml.samples",
       [](Parts& p) { follow(p, "nvml.samples", 0.04, 0.2); }},
      {"pre-roll is not five of its lags",
       [](Parts& p) { follow(p, p.acquisition.samples.name, 0.04, 0.19); }},
      {"pre-roll is not five of its lags",
       [](Parts& p) { follow(p, p.acquisition.samples.name, 0, 0); }},
      {"the warm-up's step was seen after 140.0 ms, response record eeee",
       [](Parts& p) {
         follow(p, p.acquisition.samples.name, 0.04, 0.2);
         p.acquisition.behaviour.step_lag = Seconds(0.14);
       }},
      {"the run waited, though the board was where it had settled",
       [](Parts& p) {
         p.acquisition.holds.push_back({2, {}});
       }},
      {"window 1 stands in place 0", [](Parts& p) { std::swap(p.windows[0], p.windows[1]); }},
      {"window 3 stands in place 2", [](Parts& p) { p.windows.erase(p.windows.begin() + 2); }},
      {"window 2 overlaps",
       [](Parts& p) { p.windows[2].reading.begin_ns = p.windows[1].reading.end_ns; }},
      {"window 2 overlaps",
       [](Parts& p) { p.windows[2].reading.end_ns = p.windows[2].reading.begin_ns; }},
      {"window 0 overlaps", [](Parts& p) { p.windows[0].reading.begin_ns = 0; }},
      {"window 4 is of attempt 4, the tier allows 3",
       [](Parts& p) { p.windows[4].reading.attempt = 4; }},
  };
  for (const auto& row : table) {
    auto parts = healthy();
    row.change(parts);
    const auto status = checked(parts);
    ASSERT_FALSE(status) << row.what;
    EXPECT_EQ(status.error().code, RefusalCode::analysis_mismatch);
    EXPECT_NE(status.error().what.find(row.what), std::string::npos)
        << status.error().what << " instead of " << row.what;
  }
}

} // namespace
} // namespace hebe::measure
