// Facts about plans and tiers: frozen means that anything else is another plan.
#include "measure/plan.hpp"

#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::measure {
namespace {

std::string id_of(const Plan& p) { return content_id(to_json(p)).value(); }

Plan confirmation(int pairs = 12) {
  auto p = test::smoke_plan();
  p.tier = tier_named("confirmation-v1").value();
  p.pairs = pairs;
  p.window = Seconds(5);
  p.warm_up = Seconds(30);
  return p;
}

TEST(RandomOrder, has_as_many_ab_as_ba_and_one_more_of_either_when_odd) {
  int extra_ab = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const int pairs : {2, 3, 12, 13, 50}) {
      const auto order = random_order(pairs, seed);
      ASSERT_EQ(order.size(), static_cast<std::size_t>(pairs));
      const auto ab = std::count(order.begin(), order.end(), PairOrder::ab);
      EXPECT_EQ(std::abs(2 * ab - pairs), pairs % 2);
      extra_ab += pairs == 13 && ab == 7;
    }
  EXPECT_NEAR(extra_ab, 50, 20); // which one has one more is random too
}

TEST(RandomOrder, is_a_function_of_the_seed_and_every_order_occurs) {
  EXPECT_EQ(random_order(20, 7), random_order(20, 7));
  std::map<std::vector<PairOrder>, int> seen;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++seen[random_order(4, seed)];
  EXPECT_EQ(seen.size(), 6U);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 130);
}

TEST(StartPhase, is_spread_over_the_period_and_fixed_by_seed_and_window) {
  const auto plan = test::smoke_plan(3, 5), other = test::smoke_plan(3, 6);
  std::set<double> phases;
  double sum = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const double phase = start_phase(plan, i);
    ASSERT_GE(phase, 0);
    ASSERT_LT(phase, 1);
    sum += phase;
    phases.insert(phase);
    EXPECT_EQ(phase, start_phase(plan, i));
    EXPECT_NE(phase, start_phase(other, i));
  }
  EXPECT_EQ(phases.size(), 1000U);
  EXPECT_NEAR(sum / 1000, 0.5, 0.04);
}

TEST(Plan, changing_anything_makes_another_plan) {
  const std::pair<const char*, std::function<void(Plan&)>> table[] = {
      {"kind", [](Plan& p) { p.kind = "ab"; }},
      {"subject", [](Plan& p) { p.subject["launch"] = 1; }},
      {"cubin A", [](Plan& p) { p.cubins[0] = std::string(64, 'b'); }},
      {"cubin B", [](Plan& p) { p.cubins[1] = std::string(64, 'b'); }},
      {"inputs", [](Plan& p) { p.inputs["x_ptr"] = std::string(64, 'c'); }},
      {"device", [](Plan& p) { p.device["faults"] = Json::array(); }},
      {"pairs", [](Plan& p) { ++p.pairs, p.order.push_back(PairOrder::ab); }},
      {"window", [](Plan& p) { p.window = Seconds(0.6); }},
      {"warm-up", [](Plan& p) { p.warm_up = Seconds(2); }},
      {"seed", [](Plan& p) { ++p.seed; }},
      {"order",
       [](Plan& p) {
         std::swap(p.order.front(), p.order.back());
         p.order.front() = p.order.front() == PairOrder::ab ? PairOrder::ba : PairOrder::ab;
       }},
      {"energy margin", [](Plan& p) { p.margins.energy_percent = 0.6; }},
      {"latency margin", [](Plan& p) { p.margins.latency_percent = 0.6; }},
      {"resamples", [](Plan& p) { ++p.resamples; }},
      {"level", [](Plan& p) { p.level = 0.9; }},
      {"alpha", [](Plan& p) { p.alpha = 0.01; }},
      {"tier name", [](Plan& p) { p.tier.name = "other"; }},
      {"tier is evidence", [](Plan& p) { p.tier.is_evidence = true; }},
      {"tier pairs", [](Plan& p) { ++p.tier.min_pairs; }},
      {"tier window", [](Plan& p) { p.tier.min_window = Seconds(0.1); }},
      {"tier warm-up", [](Plan& p) { p.tier.min_warm_up = Seconds(0.1); }},
      {"tier longest warm-up", [](Plan& p) { p.tier.max_warm_up = Seconds(11); }},
      {"tier settle span", [](Plan& p) { p.tier.settle_span = Seconds(2); }},
      {"tier settle power", [](Plan& p) { p.tier.settle_power = 0.5; }},
      {"tier settle temperature", [](Plan& p) { p.tier.settle_temperature = Celsius(5); }},
      {"tier still span", [](Plan& p) { p.tier.still_span = Seconds(3); }},
      {"tier steady span", [](Plan& p) { p.tier.steady_span = Seconds(3); }},
      {"tier steady power", [](Plan& p) { p.tier.steady_power = 0.5; }},
      {"tier steady energy's change", [](Plan& p) { p.tier.steady_energy_change = 0.5; }},
      {"tier clock recovery", [](Plan& p) { p.tier.max_clock_recovery = 0.5; }},
      {"tier of before: clock recovery", [](Plan& p) { p.tier.max_clock_recovery.reset(); }},
      {"tier job drift", [](Plan& p) { p.tier.max_job_drift = Celsius(2); }},
      {"tier pair drift", [](Plan& p) { p.tier.max_pair_drift = Celsius(1); }},
      {"tier coverage", [](Plan& p) { p.tier.min_coverage = 0.5; }},
      {"tier gap", [](Plan& p) { p.tier.max_sample_gap = Seconds(0.5); }},
      {"tier repeat", [](Plan& p) { p.tier.max_repeat = Seconds(0.5); }},
      {"tier clock change", [](Plan& p) { p.tier.max_clock_change = 0.5; }},
      {"tier capped clock change", [](Plan& p) { p.tier.max_capped_clock_change = 0.5; }},
      {"tier capped replay cv", [](Plan& p) { p.tier.max_capped_replay_cv = 0.5; }},
      {"tier of before: capped replays", [](Plan& p) { p.tier.max_capped_replay_cv.reset(); }},
      {"tier of before: capped clocks", [](Plan& p) { p.tier.max_capped_clock_change.reset(); }},
      {"tier of before: drift", [](Plan& p) { p.tier.drift_beyond_arms = false; }},
      {"tier agreement", [](Plan& p) { p.tier.meter_agreement = 0.5; }},
      {"tier replay cv", [](Plan& p) { p.tier.max_replay_cv = 0.5; }},
      {"tier energy margin", [](Plan& p) { p.tier.max_energy_margin = 2; }},
      {"tier latency margin", [](Plan& p) { p.tier.max_latency_margin = 2; }},
      {"tier failed pairs", [](Plan& p) { p.tier.max_failed_pairs = 0.5; }},
      {"tier idle", [](Plan& p) { p.tier.max_idle = Seconds(0.5); }},
      {"tier attempts", [](Plan& p) { ++p.tier.max_attempts; }},
      {"tier order alpha", [](Plan& p) { p.tier.order_alpha = 0.5; }},
      {"tier trend alpha", [](Plan& p) { p.tier.trend_alpha = 0.5; }},
  };
  std::map<std::string, const char*> ids = {{id_of(test::smoke_plan()), "unchanged"}};
  for (const auto& [name, change] : table) {
    auto p = test::smoke_plan();
    change(p);
    const auto [at, fresh] = ids.emplace(id_of(p), name);
    EXPECT_TRUE(fresh) << name << " makes the same plan as " << at->second;
    // and comes back with the change
    const auto json = to_json(p);
    if (p.kind != "aa") continue; // the schema knows no other kind yet
    const auto back = plan_from(json, "plan.json");
    ASSERT_TRUE(back) << name << ": " << back.error().what;
    EXPECT_EQ(to_json(*back), json) << name;
  }
}

TEST(Plan, two_of_the_same_are_one) {
  EXPECT_EQ(id_of(test::smoke_plan(4, 9)), id_of(test::smoke_plan(4, 9)));
}

TEST(Plan, the_largest_seed_comes_back) {
  auto p = test::smoke_plan();
  p.seed = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(plan_from(to_json(p), "plan.json").value().seed, p.seed);
}

TEST(Plan, a_stored_plan_that_does_not_follow_is_refused_never_thrown) {
  const std::pair<const char*, Json> table[] = {
      {"/schema", "hebe.run.plan/2"},
      {"/kind", "contrast"},
      {"/arms/A/cubin_sha256", "abc"},
      {"/pairs", 1},
      {"/pairs", 2.5},
      {"/window_s", 0},
      {"/seed", 3},
      {"/seed", "-3"},
      {"/seed", "99999999999999999999"},
      {"/order/0", "BB"},
      {"/margins/energy_percent", 0},
      {"/analysis/resamples", 10},
      {"/device/provenance", "guessed"},
      {"/tier/min_pairs", "two"},
      {"/tier/max_job_drift_c", "none"},
      {"/inputs_sha256/x_ptr", 1},
  };
  for (const auto& [pointer, value] : table) {
    auto json = to_json(test::smoke_plan());
    json[Json::json_pointer(pointer)] = value;
    Result<Plan> p;
    ASSERT_NO_THROW(p = plan_from(json, "plan.json")) << pointer << " = " << value;
    ASSERT_FALSE(p) << pointer << " = " << value;
    EXPECT_EQ(p.error().code, RefusalCode::bad_schema) << pointer;
  }
}

TEST(Plan, an_order_of_another_length_than_the_pairs_is_refused) {
  auto json = to_json(test::smoke_plan(4));
  json["order"].push_back("AB");
  EXPECT_FALSE(plan_from(json, "plan.json"));
}

TEST(Plan, less_than_the_tiers_minimum_is_refused_by_the_minimum) {
  struct Row {
    std::function<void(Plan&)> change;
    const char *what, *option;
  };
  const Row table[] = {
      {[](Plan& p) { p.pairs = 11; }, "confirmation-v1 needs at least 12 pairs, 11 was asked for",
       "--pairs"},
      {[](Plan& p) { p.pairs = -1; }, "needs at least 12 pairs", "--pairs"},
      {[](Plan& p) { p.window = Seconds(4.999); },
       "needs at least 5 s per window, 4.999 was asked for", "--batch-seconds"},
      {[](Plan& p) { p.warm_up = Seconds(29); }, "needs at least 30 s of warm-up, 29 was asked for",
       "--warm-up-seconds"},
  };
  for (const auto& row : table) {
    auto p = confirmation();
    row.change(p);
    const auto status = complete_plan(p);
    ASSERT_FALSE(status) << row.what;
    EXPECT_EQ(status.error().code, RefusalCode::below_tier_minimum);
    EXPECT_NE(status.error().what.find(row.what), std::string::npos) << status.error().what;
    EXPECT_NE(status.error().next.find("smoke-v1"), std::string::npos);
    EXPECT_EQ(status.error().where, row.option);
  }
  auto enough = confirmation();
  EXPECT_TRUE(complete_plan(enough));
  EXPECT_EQ(enough.order.size(), 12U);
}

TEST(Plan, what_is_no_finite_number_is_told_as_such_and_no_other_tier_is_advised) {
  for (const double wrong : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (int which = 0; which < 2; ++which) {
      auto p = confirmation();
      (which == 0 ? p.window : p.warm_up) = Seconds(wrong);
      const auto status = complete_plan(p);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, RefusalCode::bad_argument);
      EXPECT_NE(status.error().what.find("no finite number"), std::string::npos)
          << status.error().what;
      EXPECT_EQ(status.error().next.find("smoke"), std::string::npos) << status.error().next;
    }
  }
}

TEST(Plan, the_tier_that_asks_for_least_is_not_advised_to_who_uses_it) {
  auto p = confirmation();
  p.tier = tier_named("smoke-v1").value();
  p.pairs = 1;
  const auto status = complete_plan(p);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().next, "raise --pairs to 2 or more");
}

TEST(Plan, more_than_can_be_meant_is_refused) {
  const std::function<void(Plan&)> table[] = {
      [](Plan& p) { p.pairs = 10'001; },
      [](Plan& p) { p.window = Seconds(601); },
      [](Plan& p) { p.window = Seconds(std::numeric_limits<double>::infinity()); },
      [](Plan& p) { p.warm_up = Seconds(3601); },
  };
  for (const auto& change : table) {
    auto p = confirmation();
    change(p);
    EXPECT_FALSE(complete_plan(p));
  }
}

TEST(Tier, the_two_are_those_of_the_protocol) {
  const auto smoke = tier_named("smoke-v1").value(),
             confirmation = tier_named("confirmation-v1").value();
  EXPECT_FALSE(smoke.is_evidence);
  EXPECT_EQ(smoke.min_pairs, 2);
  EXPECT_EQ(smoke.min_window, Seconds(0.5));
  EXPECT_EQ(smoke.min_warm_up, Seconds(1));
  EXPECT_FALSE(smoke.max_job_drift || smoke.max_pair_drift);
  EXPECT_TRUE(confirmation.is_evidence);
  EXPECT_EQ(confirmation.min_pairs, 12);
  EXPECT_EQ(confirmation.min_window, Seconds(5));
  EXPECT_EQ(confirmation.min_warm_up, Seconds(30));
  EXPECT_EQ(confirmation.max_job_drift, Celsius(2));
  EXPECT_EQ(confirmation.max_pair_drift, Celsius(1));
}

TEST(Tier, an_unknown_one_is_refused_with_the_known) {
  const auto t = tier_named("confirmation");
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, RefusalCode::bad_argument);
  EXPECT_EQ(t.error().next, "use smoke-v1 or confirmation-v1");
}

TEST(Tier, every_threshold_goes_out_and_comes_back) {
  for (const char* name : {"smoke-v1", "confirmation-v1"}) {
    const auto json = to_json(tier_named(name).value());
    EXPECT_EQ(to_json(tier_from(json).value()), json);
    for (const auto& [member, value] : json.items()) {
      const auto since = {"still_span_s",
                          "steady_span_s",
                          "steady_temperature_c",
                          "steady_change_c",
                          "steady_power_ratio",
                          "steady_energy_change_ratio",
                          "max_clock_recovery_ratio",
                          "drift_beyond_arms",
                          "settle_by_arm",
                          "max_hold_s",
                          "max_capped_clock_change_ratio",
                          "max_capped_replay_cv_ratio"};
      if (std::ranges::find(since, member) != since.end()) continue; // older plans have none
      auto less = json;
      less.erase(member);
      EXPECT_FALSE(tier_from(less)) << member;
    }
  }
}

} // namespace
} // namespace hebe::measure
