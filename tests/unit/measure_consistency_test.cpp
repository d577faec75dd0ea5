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

TEST(HasSettled, needs_two_blocks_of_each_arm_within_the_span_and_the_ranges) {
  const auto blocks = [](std::initializer_list<double> watts,
                         std::initializer_list<std::int64_t> celsius = {}) {
    std::vector<WarmUpBlock> out;
    for (const double w : watts) {
      const auto i = static_cast<std::int64_t>(out.size());
      WarmUpBlock b{static_cast<int>(i % 2), i * 1'000'000'000, Seconds(1e-3), Watts(w),
                    std::nullopt};
      if (celsius.size() > 0) b.temperature_c = *(celsius.begin() + i);
      out.push_back(b);
    }
    return out;
  };
  const auto smoke = tier_named("smoke-v1").value(); // 1 % and 2 C over 4 s
  EXPECT_FALSE(has_settled({}, smoke));
  EXPECT_FALSE(has_settled(blocks({400, 400, 400}), smoke));     // arm B once
  EXPECT_TRUE(has_settled(blocks({400, 500, 400, 500}), smoke)); // each arm by itself
  EXPECT_TRUE(has_settled(blocks({400, 500, 403.9, 500}), smoke));
  EXPECT_FALSE(has_settled(blocks({400, 500, 404.1, 500}), smoke));
  EXPECT_TRUE(has_settled(blocks({100, 100, 400, 500, 400, 500, 400}),
                          smoke)); // what is older does not count
  EXPECT_TRUE(has_settled(blocks({400, 500, 400, 500}, {50, 51, 51, 52}), smoke));
  EXPECT_FALSE(has_settled(blocks({400, 500, 400, 500}, {50, 51, 52, 53}), smoke));
  auto silent = blocks({400, 500, 400, 500});
  for (auto& b : silent) b.power.reset();
  EXPECT_FALSE(has_settled(silent, smoke));
  auto confirmation = tier_named("confirmation-v1").value();
  EXPECT_FALSE(has_settled(blocks({400, 500, 400, 500}),
                           confirmation)); // it judges temperature and has none
}

// An H200's warm-up of 30 s ended 1 C above its last 20 s; the job then rose by 4 C.
TEST(HasSettled, of_evidence_needs_a_temperature_that_stands_still_or_stays_for_a_minute) {
  const auto confirmation = tier_named("confirmation-v1").value();
  const auto after = [&](const std::vector<std::pair<int, std::int64_t>>& stretches) {
    std::vector<WarmUpBlock> blocks; // (seconds, degrees), a block a second
    for (const auto& [seconds, degrees] : stretches)
      for (int i = 0; i < seconds; ++i) {
        const auto n = static_cast<std::int64_t>(blocks.size());
        WarmUpBlock b{static_cast<int>(n % 2), n * 1'000'000'000, Seconds(1e-3), Watts(600),
                      std::nullopt};
        b.temperature_c = degrees;
        blocks.push_back(b);
      }
    return has_settled(blocks, confirmation);
  };
  EXPECT_TRUE(after({{10, 40}, {31, 50}}));
  EXPECT_FALSE(after({{10, 40}, {29, 50}})) << "not yet for 30 s";
  EXPECT_FALSE(after({{10, 48}, {15, 49}, {15, 50}})) << "1 C in 20 s, and still rising";
  EXPECT_FALSE(after({{20, 48}, {20, 49}, {20, 50}}));
  EXPECT_TRUE(after({{10, 40}, {20, 49}, {20, 50}, {21, 49}})) << "flickers between two degrees";
  EXPECT_FALSE(after({{20, 49}, {20, 50}, {5, 49}})) << "for a minute, not less";
  auto before = confirmation; // as older plans have it
  before.still_span.reset();
  before.steady_span.reset();
  EXPECT_EQ(to_json(before).contains("still_span_s"), false);
  EXPECT_EQ(tier_from(to_json(before))->still_span, std::nullopt);
  EXPECT_EQ(tier_from(to_json(confirmation))->still_span, Seconds(30));
}

} // namespace
} // namespace hebe::measure
