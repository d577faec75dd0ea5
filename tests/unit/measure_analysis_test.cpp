// Facts about the analysis of a job: pure, complete, and never evidence when it must not be.
#include "measure/analysis.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "../data/support/made_run.hpp"

namespace hebe::measure {
namespace {

const evidence::RunParts& healthy() {
  static const auto parts = test::made_run(test::smoke_plan(6));
  return parts;
}

Result<Analysis> analysed(evidence::RunParts p) {
  HEBE_CHECK(judge_windows(p.windows, p.samples, p.plan, p.acquisition));
  return analyse(p.plan, p.plan_id, p.acquisition, p.windows);
}

bool holds(const Analysis& a, const std::string& name) {
  for (const auto& c : a.conditions)
    if (c.name == name) return c.holds;
  ADD_FAILURE() << "no condition \"" << name << "\"";
  return false;
}

TEST(Analysis, is_the_same_when_it_is_made_again_from_stored_parts) {
  auto parts = healthy();
  for (auto& w : parts.windows) { // only the raw part, through its text
    const auto line = canonical_json(to_json(w, Provenance::simulated)).value();
    w = window_from(parse_json(line, "windows.jsonl").value(), "windows.jsonl").value();
    EXPECT_TRUE(w.gates.empty());
  }
  parts.acquisition =
      acquisition_from(parse_json(canonical_json(to_json(parts.acquisition)).value(), "x").value(),
                       "x")
          .value();
  parts.plan = plan_from(to_json(parts.plan), "plan.json").value();
  EXPECT_EQ(canonical_json(analysed(parts).value().json).value(),
            canonical_json(healthy().analysis.json).value());
}

TEST(Analysis, an_a_a_run_on_a_steady_board_is_equivalent) {
  const auto& a = healthy().analysis;
  EXPECT_EQ(a.verdict, Verdict::equivalent);
  EXPECT_TRUE(a.claim_holds);
  EXPECT_TRUE(holds(a, "every planned pair accepted"));
  EXPECT_TRUE(holds(a, "arms are one cubin"));
  EXPECT_EQ(a.json.at("pairs").size(), 6U);
  EXPECT_EQ(a.json.at("windows").at("attempted"), 12);
}

TEST(Analysis, a_smoke_or_simulated_record_never_qualifies) {
  // Everything else made true: a confirmation tier that the plan satisfies, a settled warm-up.
  auto parts = healthy();
  parts.plan.tier.is_evidence = true;
  parts.acquisition.warm_up.stable = true;
  const auto simulated = analysed(parts).value();
  EXPECT_TRUE(simulated.claim_holds);
  EXPECT_FALSE(simulated.qualified);
  EXPECT_FALSE(holds(simulated, "provenance is measured"));

  parts.acquisition.provenance = Provenance::estimated;
  EXPECT_FALSE(analysed(parts).value().qualified);

  parts.acquisition.provenance = Provenance::measured;
  EXPECT_TRUE(analysed(parts).value().qualified); // so it was this condition alone

  parts.plan.tier.is_evidence = false;
  const auto smoke = analysed(parts).value();
  EXPECT_FALSE(smoke.qualified);
  EXPECT_FALSE(holds(smoke, "tier is evidence"));
}

TEST(Analysis, each_condition_alone_keeps_a_record_from_qualifying) {
  const std::pair<const char*, std::function<void(evidence::RunParts&)>> table[] = {
      {"warm-up settled", [](auto& p) { p.acquisition.warm_up.stable = false; }},
      {"every planned pair accepted",
       [](auto& p) { p.plan.pairs = 7, p.plan.order.push_back(PairOrder::ab); }},
      {"arms are one cubin", [](auto& p) { p.plan.cubins[1] = std::string(64, 'b'); }},
      {"energy equivalent", [](auto& p) { p.plan.margins.energy_percent = 1e-6; }},
      {"latency equivalent", [](auto& p) { p.plan.margins.latency_percent = 1e-9; }},
  };
  for (const auto& [name, change] : table) {
    auto parts = healthy();
    parts.plan.tier.is_evidence = true;
    parts.acquisition.warm_up.stable = true;
    parts.acquisition.provenance = Provenance::measured;
    change(parts);
    const auto a = analysed(parts).value();
    EXPECT_FALSE(a.qualified) << name;
    EXPECT_FALSE(holds(a, name));
  }
}

// The run again, with every window of arm B (or of the second position, or of later pairs) slower.
Analysis with_latency(const std::function<double(const WindowReading&)>& factor) {
  auto parts = healthy();
  for (auto& w : parts.windows) w.reading.elapsed = w.reading.elapsed * factor(w.reading);
  return analysed(parts).value();
}

TEST(Analysis, a_slower_arm_is_higher_in_latency_and_energy_and_the_claim_fails) {
  const auto a = with_latency([](const WindowReading& r) { return r.arm == 1 ? 1.008 : 1; });
  EXPECT_EQ(a.latency.verdict, Verdict::higher);
  EXPECT_EQ(a.verdict, Verdict::higher);
  EXPECT_FALSE(a.claim_holds);
  EXPECT_NEAR(percent(a.latency.effect), 0.8, 0.05);
}

TEST(Analysis, an_order_effect_makes_it_invalid_and_says_so) {
  const auto a = with_latency([](const WindowReading& r) { return r.position == 1 ? 1.008 : 1; });
  EXPECT_EQ(a.verdict, Verdict::invalid);
  EXPECT_NE(a.reason.find("order effect"), std::string::npos);
  EXPECT_FALSE(a.claim_holds);
}

TEST(Analysis, a_trend_makes_it_invalid_and_says_so) {
  const auto a =
      with_latency([](const WindowReading& r) { return r.arm == 1 ? 1 + 0.0016 * r.pair : 1; });
  EXPECT_EQ(a.verdict, Verdict::invalid);
  EXPECT_NE(a.reason.find("trend"), std::string::npos);
}

TEST(Analysis, a_failed_attempt_is_counted_and_not_used) {
  const auto parts = test::made_run(test::smoke_plan(), {test::fault_named("samples_gap@window")});
  const auto& a = parts.analysis;
  EXPECT_EQ(a.json.at("pairs").size(), 3U);
  EXPECT_GE(a.json.at("windows").at("failed_a_gate"), 1);
  EXPECT_EQ(a.json.at("windows").at("attempted"), parts.windows.size());
  bool second = false;
  for (const auto& p : a.json.at("pairs")) second |= p.at("attempt") == 2;
  EXPECT_TRUE(second);
  EXPECT_TRUE(holds(a, "every planned pair accepted"));
}

TEST(Analysis, fewer_than_two_accepted_pairs_say_nothing) {
  auto parts = healthy();
  parts.windows.resize(2);
  EXPECT_EQ(analysed(parts).error().code, RefusalCode::gate_failed);
  parts.windows.clear();
  EXPECT_EQ(analysed(parts).error().code, RefusalCode::gate_failed);
}

TEST(Analysis, windows_that_are_no_pairs_are_refused_before_they_are_read) {
  const std::pair<const char*, std::function<void(std::vector<Window>&)>> table[] = {
      {"an odd number", [](auto& w) { w.pop_back(); }},
      {"two of one arm", [](auto& w) { w[3].reading.arm = w[2].reading.arm; }},
      {"of two pairs", [](auto& w) { w[3].reading.pair = 5; }},
      {"of two attempts", [](auto& w) { w[3].reading.attempt = 2; }},
      {"of one position", [](auto& w) { w[3].reading.position = 0; }},
      {"a pair that the plan has not", [](auto& w) { w[2].reading.pair = w[3].reading.pair = 6; }},
      {"a negative pair", [](auto& w) { w[2].reading.pair = w[3].reading.pair = -1; }},
      {"another order than the plan's",
       [](auto& w) { std::swap(w[2].reading.arm, w[3].reading.arm); }},
      {"one pair twice",
       [](auto& w) {
         w.insert(w.end(), {w[2], w[3]});
       }},
  };
  for (const auto& [name, change] : table) {
    auto parts = healthy();
    change(parts.windows);
    const auto status = judge_windows(parts.windows, parts.samples, parts.plan, parts.acquisition);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, RefusalCode::bad_schema) << name;
  }
}

TEST(Analysis, a_pair_that_passes_twice_counts_once) {
  auto parts = healthy();
  parts.windows.insert(parts.windows.end(), {parts.windows[2], parts.windows[3]});
  for (std::size_t i = 12; i < 14; ++i) parts.windows[i].reading.attempt = 2;
  const auto a = analysed(parts).value();
  EXPECT_EQ(a.json.at("pairs").size(), 6U);
  EXPECT_EQ(a.energy.effect, healthy().analysis.energy.effect);
}

TEST(Acquisition, goes_out_and_comes_back) {
  auto a = healthy().acquisition;
  a.clock_jumps_ns = {5, 1'790'000'000'000'000'000};
  a.clock_offset_ns = 1'790'000'000'000'000'001;
  a.sampler_cpu_share = 0.02;
  a.warm_up.blocks.front().power.reset();
  a.warm_up.blocks.front().temperature_c.reset();
  a.reference.temperature_c.reset();
  const auto json = parse_json(canonical_json(to_json(a)).value(), "x").value();
  const auto back = acquisition_from(json, "windows.jsonl:1");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(canonical_json(to_json(*back)).value(), canonical_json(to_json(a)).value());
  EXPECT_EQ(back->clock_jumps_ns, a.clock_jumps_ns);
}

TEST(Acquisition, what_does_not_follow_is_refused_never_thrown) {
  const std::pair<const char*, Json> table[] = {
      {"/schema", "hebe.run.acquisition/9"},
      {"/provenance", "guessed"},
      {"/primary/name", 3},
      {"/warm_up/stable", "yes"},
      {"/warm_up/blocks/0/end_ns", 1.5},
      {"/warm_up/blocks/0/end_ns", "1e3"},
      {"/warm_up/blocks/0/latency_s", "1"},
      {"/warm_up/blocks/0/latency_s", nullptr},
      {"/meter/lag_s", "0.1"},
      {"/reference/temperature_c", "50"},
      {"/holds", {{{"after_window", 1.5}, {"blocks", Json::array()}}}},
      {"/holds", {{{"after_window", 2}, {"blocks", {{{"arm", "A"}}}}}}},
      {"/reference/latency_a_s", "x"},
      {"/clock/offset_ns", nullptr},
      {"/clock/jumps_ns/0", "x"},
      {"/sampler/drains", 1.5},
      {"/wall_s", nullptr},
  };
  for (const auto& [pointer, value] : table) {
    auto json = to_json(healthy().acquisition);
    json[Json::json_pointer(pointer)] = value;
    Result<Acquisition> a;
    ASSERT_NO_THROW(a = acquisition_from(json, "windows.jsonl:1")) << pointer << " = " << value;
    ASSERT_FALSE(a) << pointer << " = " << value;
    EXPECT_EQ(a.error().code, RefusalCode::bad_schema) << pointer;
  }
}

TEST(Window, goes_out_and_comes_back_with_what_was_unavailable) {
  auto w = healthy().windows.front();
  w.reading.begin.throttle.sync_ns = refuse(RefusalCode::meter_unsupported, "not on this board");
  w.reading.end.energy_mj = 9'007'199'254'740'993;
  const auto text = canonical_json(to_json(w, Provenance::measured)).value();
  const auto back = window_from(parse_json(text, "x").value(), "x").value();
  EXPECT_EQ(back.reading.begin.throttle.sync_ns.error().what, "not on this board");
  EXPECT_EQ(*back.reading.end.energy_mj, 9'007'199'254'740'993);
  EXPECT_EQ(back.reading.begin_ns, w.reading.begin_ns);
  EXPECT_EQ(back.reading.elapsed, w.reading.elapsed);
  EXPECT_EQ(back.reading.launches(), w.reading.launches());
  EXPECT_EQ(back.pair_accepted, w.pair_accepted);
  auto again = back;
  again.estimate = w.estimate;
  again.gates = w.gates;
  EXPECT_EQ(canonical_json(to_json(again, Provenance::measured)).value(), text);
}

TEST(Window, what_does_not_follow_is_refused_never_thrown) {
  const std::pair<const char*, Json> table[] = {
      {"/schema", "hebe.run.window/2"},
      {"/arm", "C"},
      {"/position", 2},
      {"/attempt", 0},
      {"/replays", 0},
      {"/elapsed_s", 0},
      {"/elapsed_s", "1"},
      {"/begin_ns", 1.5},
      {"/begin_ns", "soon"},
      {"/end_ns", nullptr},
      {"/begin", nullptr},
      {"/begin/energy_mj", 1.5},
      {"/begin/energy_mj", nullptr},
      {"/begin/energy_mj", Json::object()},
      {"/begin/sync_ns", "99999999999999999999"},
      {"/begin/before_ns", "99999999999999999999"},
      {"/pair_accepted", 1},
      {"/index", -1},
  };
  for (const auto& [pointer, value] : table) {
    auto json = to_json(healthy().windows.front(), Provenance::simulated);
    json[Json::json_pointer(pointer)] = value;
    Result<Window> w;
    ASSERT_NO_THROW(w = window_from(json, "windows.jsonl:2")) << pointer << " = " << value;
    EXPECT_FALSE(w) << pointer << " = " << value;
  }
}

} // namespace
} // namespace hebe::measure
