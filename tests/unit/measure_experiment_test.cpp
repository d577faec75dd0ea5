// Facts about the run loop, on the simulated board: what every fault leads to, and that the truth
// comes out.
#include "measure/experiment.hpp"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::measure {
namespace {

TEST(Experiment, a_healthy_board_gives_every_pair_at_the_first_attempt) {
  test::SimGpu sim;
  const auto plan = test::smoke_plan(4);
  const auto raw = sim.run(plan);
  ASSERT_TRUE(raw) << raw.error().what;
  ASSERT_EQ(raw->windows.size(), 8U);
  for (std::size_t i = 0; i < raw->windows.size(); ++i) {
    const auto& w = raw->windows[i];
    EXPECT_EQ(w.reading.index, static_cast<std::int64_t>(i));
    EXPECT_EQ(w.reading.pair, static_cast<int>(i / 2));
    EXPECT_EQ(w.reading.position, static_cast<int>(i % 2));
    EXPECT_EQ(w.reading.attempt, 1);
    const bool ab = plan.order[i / 2] == PairOrder::ab;
    EXPECT_EQ(w.reading.arm, (i % 2 == 0) == ab ? 0 : 1);
    EXPECT_TRUE(w.pair_accepted);
    EXPECT_GE(w.reading.elapsed.value(), plan.window.value() * 0.999);
  }
}

TEST(Experiment, the_boards_true_energy_comes_out_within_two_parts_in_a_thousand) {
  test::SimGpu sim(3);
  const auto raw = sim.run(test::smoke_plan(6, 3)).value();
  double worst = 0, sum = 0;
  for (const auto& w : raw.windows) {
    const auto& r = w.reading;
    const Instant from{Nanos(r.begin_ns)}, to{Nanos(r.end_ns)};
    const auto truth = sim.board.energy(from, to) / static_cast<double>(r.launches());
    const double error = *w.estimate.energy_per_launch / truth - 1;
    worst = std::max(worst, std::abs(error));
    sum += error;
    EXPECT_NEAR(r.elapsed / to_seconds(to - from), 1, 1e-6);
  }
  EXPECT_LT(worst, 0.002);
  EXPECT_LT(std::abs(sum / static_cast<double>(raw.windows.size())), 0.0005); // and no bias
}

TEST(Experiment, a_known_difference_of_energy_comes_out) {
  // B moves 10 % more bytes: 10 % more time and dynamic energy; static power is the same.
  test::SimGpu sim(4, {}, test::still_model(), {1e8, 1.1e8});
  auto plan = test::smoke_plan(4, 4);
  plan.cubins[1] = std::string(64, 'b');
  const auto raw = sim.run(plan).value();
  double ratio = 0, truth = 0;
  for (std::size_t i = 0; i < raw.windows.size(); i += 2) {
    std::array<double, 2> found{}, exact{};
    for (const auto* w : {&raw.windows[i], &raw.windows[i + 1]}) {
      const auto& r = w->reading;
      const auto arm = static_cast<std::size_t>(r.arm);
      found[arm] = w->estimate.energy_per_launch->value();
      exact[arm] = sim.board.energy(Instant(Nanos(r.begin_ns)), Instant(Nanos(r.end_ns))).value() /
                   static_cast<double>(r.launches());
    }
    ratio += found[1] / found[0] / 4;
    truth += exact[1] / exact[0] / 4;
  }
  EXPECT_NEAR(ratio / truth, 1, 0.001);
  EXPECT_NEAR(ratio, 1.1, 0.01);
}

TEST(Experiment, the_gpu_is_never_idle_for_5_ms_between_windows) {
  test::SimGpu sim(5);
  const auto raw = sim.run(test::smoke_plan(6, 5)).value();
  for (const auto& w : raw.windows) EXPECT_LT(w.reading.idle_before.value(), 0.005);
  // By the board itself: from the first window to the last its power is that of a busy one
  // throughout.
  for (Instant t{Nanos(raw.windows.front().reading.begin_ns)};
       t < Instant(Nanos(raw.windows.back().reading.end_ns)); t += std::chrono::milliseconds(5))
    ASSERT_GT(sim.board.mean_power(t, t + std::chrono::milliseconds(5)).value(), 400);
}

TEST(Experiment, pre_rolls_are_five_lags_and_a_random_phase) {
  test::SimGpu sim(6);
  const auto raw = sim.run(test::smoke_plan(6, 6)).value();
  std::set<double> lengths;
  for (const auto& w : raw.windows) {
    EXPECT_GE(w.reading.pre_roll.value(), 5 * raw.behaviour.lag.value());
    lengths.insert(w.reading.pre_roll.value());
  }
  EXPECT_GT(lengths.size(), 2U);
  EXPECT_GE(raw.behaviour.lag.value(),
            0.012); // the simulated meter is 12 ms late and averages over 30
  EXPECT_LE(raw.behaviour.lag.value(), 0.080);
  EXPECT_NEAR(raw.behaviour.sample_period.value(), 0.02, 0.002);
}

KnownResponse known(double lag) {
  return {MeterResponse{std::string(64, 'e'), "sim.samples.total_power", Seconds(lag),
                        Seconds(5 * lag), Seconds(0.4)},
          {}};
}

TEST(Experiment,
     a_response_record_sets_the_pre_roll_and_is_kept_with_the_step_it_was_held_against) {
  test::SimGpu sim(6);
  auto supervision = test::supervised();
  supervision.response = known(0.09);
  const auto raw = sim.run(test::smoke_plan(4, 6), supervision).value();
  for (const auto& w : raw.windows) EXPECT_GE(w.reading.pre_roll.value(), 0.45);
  EXPECT_EQ(raw.behaviour.response.record.value().id, std::string(64, 'e'));
  EXPECT_NEAR(raw.behaviour.step_lag.value().value(), 0.0375, 0.035);
  const auto acquisition = acquisition_of(raw, sim.meter, true);
  auto json = to_json(acquisition);
  json["check"] = json["occupancy"] = Json::object();
  const auto again = acquisition_from(json, "test");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(to_json(again->behaviour.response), to_json(raw.behaviour.response));
  EXPECT_EQ(again->behaviour.step_lag, raw.behaviour.step_lag);
}

TEST(Experiment, a_record_that_the_warm_up_contradicts_is_not_followed) {
  std::vector<std::string> told;
  auto supervision = test::supervised(&told);
  supervision.response = known(0.2); // the simulated meter needs 40 ms
  test::SimGpu smoke(6);
  const auto raw = smoke.run(test::smoke_plan(3, 6), supervision).value();
  EXPECT_FALSE(raw.behaviour.response.record);
  EXPECT_NE(raw.behaviour.response.why_not.find("says 200.0 ms"), std::string::npos)
      << raw.behaviour.response.why_not;
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0], raw.behaviour.response.why_not);

  auto plan = test::smoke_plan();
  plan.tier = tier_named("confirmation-v1").value();
  plan.warm_up = Seconds(30);
  test::SimGpu sim(6);
  const auto refused = sim.run(plan, supervision);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::meter_not_qualified);
  EXPECT_NE(refused.error().next.find("hebe probe-response"), std::string::npos);
}

TEST(Experiment, equal_seeds_give_equal_records) {
  const auto lines = [](std::uint64_t seed) {
    test::SimGpu sim(seed);
    std::string text;
    const auto raw = sim.run(test::smoke_plan(3, seed));
    EXPECT_TRUE(raw) << raw.error().what;
    if (!raw) return text;
    for (const auto& w : raw->windows)
      text += canonical_json(to_json(w, Provenance::simulated)).value();
    return text;
  };
  EXPECT_EQ(lines(7), lines(7));
  EXPECT_NE(lines(7), lines(8));
}

TEST(Experiment, both_arms_of_one_cubin_get_one_length) {
  test::SimGpu sim(9);
  const auto raw = sim.run(test::smoke_plan(2, 9)).value();
  EXPECT_EQ(raw.launches_per_replay[0], raw.launches_per_replay[1]);
}

// What a fault leads to: a refusal, or a record that shows it.
struct Outcome {
  const char* fault;
  std::optional<RefusalCode> refusal;
  int retries = 0;            ///< pairs that needed a second attempt
  const char* gate = nullptr; ///< that failed in the first
};

// A smoke run of three pairs; its meter is checked between 1.7 and 3.8 s.
TEST(Experiment, every_fault_leads_to_its_refusal_or_to_a_retry_that_is_recorded) {
  using enum RefusalCode;
  const Outcome table[] = {
      // before the run
      {"counter_frozen@0", meter_frozen},
      {"counter_unsupported@0", meter_unsupported},
      {"samples_frozen@0", meter_frozen},
      {"samples_empty@0", meter_empty},
      {"samples_implausible@0", meter_implausible},
      {"samples_unsupported@0", meter_unsupported},
      {"meter_lies@0", meter_disagreement},
      {"nvml_lost@0", device_error},
      {"thermal_throttle@0", throttled},
      {"power_brake@0", throttled},
      {"foreign_process@0", gpu_busy},
      // while the meter is checked
      {"counter_backwards@3", meter_backwards},
      {"counter_reset@3", meter_backwards},
      // during the pairs, for good
      {"counter_frozen@window", meter_frozen},
      {"counter_unsupported@window", meter_backwards},
      {"samples_frozen@window", meter_frozen},
      {"samples_empty@window", meter_empty},
      {"samples_unsupported@window", meter_unsupported},
      {"samples_implausible@window", meter_implausible},
      {"meter_lies@window", meter_disagreement},
      {"nvml_lost@window", device_error},
      {"foreign_process@window", gpu_busy},
      {"ecc_error@window", device_error},
      {"thermal_throttle@window", throttled},
      {"power_brake@window", throttled},
      // during the pairs, once
      {"samples_gap@window", std::nullopt, 1, "samples_missing_ratio"},
      {"counter_backwards@window", std::nullopt, 1, "counter_backwards_mj"},
      {"counter_reset@window", std::nullopt, 1, "counter_backwards_mj"},
      {"clock_jump@window", std::nullopt, 1, "clock_jump"},
      // what does not touch a smoke run
      {"temperature_unsupported@0", std::nullopt},
      {"temperature_unsupported@window", std::nullopt},
      {"power_drift@0", std::nullopt},
      {"ambient_rise@window", std::nullopt},

      {"ecc_error@0", std::nullopt},
      {"clock_jump@0", std::nullopt},
      {"samples_gap@60", std::nullopt}, // after the end
  };
  for (const auto& row : table) {
    test::SimGpu sim(1, {test::fault_named(row.fault)});
    std::vector<std::string> told;
    const auto raw = sim.run(test::smoke_plan(), test::supervised(&told));
    if (row.refusal) {
      ASSERT_FALSE(raw) << row.fault;
      EXPECT_EQ(name_of(raw.error().code), name_of(*row.refusal))
          << row.fault << ": " << raw.error().what;
      EXPECT_FALSE(raw.error().what.empty()) << row.fault;
      continue;
    }
    ASSERT_TRUE(raw) << row.fault << ": " << raw.error().what;
    std::set<int> accepted;
    int failed_pairs = 0;
    std::string gates;
    for (std::size_t i = 0; i < raw->windows.size(); i += 2) {
      const auto& w = raw->windows[i];
      EXPECT_TRUE(!w.pair_accepted || accepted.insert(w.reading.pair).second) << row.fault;
      failed_pairs += !w.pair_accepted;
      EXPECT_EQ(w.pair_accepted, raw->windows[i + 1].pair_accepted) << row.fault;
      for (const auto* x : {&w, &raw->windows[i + 1]})
        for (const auto& g : x->gates)
          if (!g.passed) gates += g.name + " ";
    }
    EXPECT_EQ(accepted.size(), 3U) << row.fault;
    EXPECT_GE(failed_pairs, row.retries) << row.fault;
    EXPECT_LE(failed_pairs, 2 * row.retries)
        << row.fault << ": " << gates; // the fault may lie across two pairs
    EXPECT_EQ(told.size(), static_cast<std::size_t>(failed_pairs)) << row.fault;
    EXPECT_NE(gates.find(row.gate == nullptr ? "" : row.gate), std::string::npos)
        << row.fault << ": " << gates;
  }
}

TEST(Experiment, a_retry_has_the_next_attempts_number_and_comes_after_the_other_pairs) {
  test::SimGpu sim(1, {test::fault_named("samples_gap@window")});
  std::vector<std::string> told;
  const auto raw = sim.run(test::smoke_plan(), test::supervised(&told));
  ASSERT_TRUE(raw) << raw.error().what;
  const auto& last = raw->windows.back().reading;
  EXPECT_EQ(last.attempt, 2);
  EXPECT_EQ(last.index, static_cast<std::int64_t>(raw->windows.size()) - 1);
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(told.front().starts_with("pair ")) << told.front();
  EXPECT_NE(told.front().find("attempt 1: samples_missing_ratio = "), std::string::npos)
      << told.front();
}

TEST(Experiment, a_refusal_of_a_gate_names_pair_value_limit_and_that_no_attempt_passed) {
  test::SimGpu sim(1, test::faults_from({"power_brake@0"}));
  const auto raw = sim.run(test::smoke_plan());
  ASSERT_FALSE(raw);
  EXPECT_TRUE(raw.error().what.starts_with("pair 1 attempt 3: power_brake_s = "))
      << raw.error().what;
  EXPECT_TRUE(raw.error().what.ends_with("limit 0; no attempt passed")) << raw.error().what;
}

TEST(Experiment, launches_that_jitter_more_than_the_tier_allows_are_refused) {
  auto plan = test::smoke_plan();
  plan.tier.max_replay_cv = 0.01; // the fault gives 0.02
  test::SimGpu sim(1, test::faults_from({"latency_jitter"}));
  const auto raw = sim.run(plan);
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().code, RefusalCode::gate_failed);
  EXPECT_NE(raw.error().what.find("replay_cv_ratio"), std::string::npos) << raw.error().what;
}

TEST(Experiment, an_evidence_run_needs_a_temperature) {
  auto plan = test::smoke_plan();
  plan.tier = tier_named("confirmation-v1").value();
  plan.warm_up = Seconds(30);
  test::SimGpu sim(1, test::faults_from({"temperature_unsupported"}));
  const auto raw = sim.run(plan);
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().code, RefusalCode::meter_unsupported);
  EXPECT_NE(raw.error().what.find("judges temperature drift"), std::string::npos)
      << raw.error().what;
}

TEST(Experiment, stops_at_the_first_no_of_its_supervision) {
  for (const int allowed : {0, 1, 5, 9}) {
    test::SimGpu sim;
    int asked = 0;
    auto supervision = test::supervised();
    supervision.may_continue = [&]() -> Status {
      if (asked++ < allowed) return {};
      return refuse(RefusalCode::lease_lost, "gone");
    };
    const auto raw = sim.run(test::smoke_plan(), supervision);
    ASSERT_FALSE(raw) << allowed;
    EXPECT_EQ(raw.error().code, RefusalCode::lease_lost);
    EXPECT_EQ(asked, allowed + 1);
  }
}

TEST(Experiment, progress_goes_from_warm_up_to_pairs_and_never_beyond_its_ends) {
  test::SimGpu sim;
  std::vector<Progress> seen;
  ASSERT_TRUE(sim.run(test::smoke_plan(),
                      test::supervised(nullptr, [&](const Progress& p) { seen.push_back(p); })));
  EXPECT_EQ(seen.front().stage, "warm-up");
  EXPECT_EQ(seen.back().stage, "pairs");
  EXPECT_NEAR(seen.back().done, 1, 0.01);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].done, 0);
    EXPECT_LE(seen[i].done, 1);
    EXPECT_GE(seen[i].left.value(), -1e-9);
    EXPECT_GE(seen[i].done, seen[i == 0 ? 0 : i - 1].done - 1e-9);
  }
}

} // namespace
} // namespace hebe::measure
