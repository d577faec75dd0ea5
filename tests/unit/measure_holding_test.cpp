// Waiting for a board that has left its temperature: when, until when, and what a record may say of
// it.
#include "measure/holding.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::measure {
namespace {

const Tier kConfirmation = tier_named("confirmation-v1").value(); // 2 C
const Reference kSettled{{}, 52.5, {}};

Window ending(Result<std::int64_t> celsius, std::int64_t begin_s = 0) {
  Window w;
  w.reading.begin_ns = begin_s * 1'000'000'000;
  w.reading.end_ns = (begin_s + 5) * 1'000'000'000;
  w.reading.end.temperature_c = std::move(celsius);
  return w;
}

bool holds_after(std::int64_t first, std::int64_t second, const Tier& tier = kConfirmation) {
  return must_hold(ending(first).reading, ending(second).reading, kSettled, tier);
}

TEST(Hold, begins_half_a_degree_before_a_pair_would_fail) {
  EXPECT_FALSE(holds_after(52, 53));
  EXPECT_FALSE(holds_after(54, 54)); // 1.5 C above
  EXPECT_TRUE(holds_after(54, 55));  // 2 C
  EXPECT_TRUE(holds_after(50, 51));  // 2 C below
  EXPECT_FALSE(holds_after(59, 46)) << "what arms differ by is no drift";
}

TEST(Hold, is_not_known_where_drift_is_not_judged_or_nothing_was_read) {
  auto before = kConfirmation;
  before.max_hold.reset();
  EXPECT_FALSE(holds_after(60, 60, before));
  EXPECT_FALSE(holds_after(60, 60, tier_named("smoke-v1").value()));
  const auto unread = refuse(RefusalCode::meter_unsupported, "not supported");
  EXPECT_FALSE(must_hold(ending(60).reading, ending(unread).reading, kSettled, kConfirmation));
  EXPECT_FALSE(must_hold(ending(60).reading, ending(60).reading, {}, kConfirmation));
}

std::vector<WarmUpBlock> alternating(int seconds, std::int64_t a, std::int64_t b,
                                     std::int64_t begin_s = 0) {
  std::vector<WarmUpBlock> out;
  for (int i = 0; i < seconds; ++i) {
    WarmUpBlock block;
    block.arm = i % 2;
    block.end_ns = (begin_s + i + 1) * 1'000'000'000;
    block.temperature_c = i % 2 == 0 ? a : b;
    out.push_back(block);
  }
  return out;
}

TEST(Hold, ends_when_both_arms_together_lie_within_half_the_limit_for_ten_seconds) {
  const auto back = [](const std::vector<WarmUpBlock>& blocks) {
    return has_come_back(blocks, kSettled, kConfirmation);
  };
  EXPECT_TRUE(back(alternating(11, 53, 53)));
  EXPECT_FALSE(back(alternating(10, 53, 53))) << "9 s";
  EXPECT_TRUE(back(alternating(11, 59, 47))); // mean 53
  EXPECT_TRUE(back(alternating(11, 53, 54))); // 1 C above
  EXPECT_FALSE(back(alternating(11, 54, 54)));
  EXPECT_FALSE(back(alternating(11, 51, 51)));
  auto late = alternating(20, 57, 57);
  EXPECT_FALSE(back(late));
  for (const auto& b : alternating(11, 52, 52, 20)) late.push_back(b);
  EXPECT_TRUE(back(late)) << "what was before does not count";
  EXPECT_FALSE(back({}));
  auto unread = alternating(20, 53, 53);
  for (auto& b : unread)
    if (b.arm == 1) b.temperature_c.reset();
  EXPECT_FALSE(back(unread));
}

Plan confirmation_plan() {
  auto plan = test::smoke_plan(12);
  plan.tier = kConfirmation;
  plan.warm_up = Seconds(30);
  plan.window = Seconds(5);
  (void)complete_plan(plan).value();
  return plan;
}

/// Cooling that others share takes the board up and down by 3 C and more.
gpu::BoardModel shared_cooling(double period_s = 240) {
  gpu::BoardModel model;
  model.ambient_swing = Celsius(1.7);
  model.ambient_swing_period = Seconds(period_s);
  return model;
}

TEST(Hold, a_board_that_wanders_and_comes_back_costs_time_and_no_attempt) {
  const auto plan = confirmation_plan();
  auto before = plan;
  before.tier.max_hold.reset();
  test::SimGpu as_before(1, {}, shared_cooling());
  const auto spent = as_before.run(before);
  EXPECT_TRUE(!spent || spent->windows.size() > 24U) << "else the model shows nothing";

  test::SimGpu sim(1, {}, shared_cooling());
  std::vector<std::string> told;
  const auto raw = sim.run(plan, test::supervised(&told));
  ASSERT_TRUE(raw) << to_text(raw.error());
  EXPECT_EQ(raw->windows.size(), 24U);
  ASSERT_FALSE(raw->holds.empty());
  EXPECT_EQ(hold_fault(raw->holds, raw->windows, raw->reference, plan.tier), "");
  EXPECT_TRUE(std::ranges::any_of(told, [](auto& t) {
    return t.contains("C from where it had settled: no pair is measured");
  }));
}

// Then the gates have the word, as if nobody had waited.
TEST(Hold, a_board_that_does_not_come_back_is_waited_for_once) {
  test::SimGpu sim(1, test::faults_from({"ambient_rise@90"}));
  std::vector<std::string> told;
  const auto raw = sim.run(confirmation_plan(), test::supervised(&told));
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().code, RefusalCode::not_stable);
  EXPECT_NE(raw.error().what.find("pair_mean_temperature_drift_c"), std::string::npos)
      << raw.error().what;
  EXPECT_EQ(std::ranges::count_if(told, [](auto& t) { return t.contains("until it is back"); }), 1);
}

TEST(Hold, what_was_waited_in_vain_is_recorded_and_follows) {
  auto plan = confirmation_plan();
  plan.tier.max_hold = Seconds(5); // the board is away for a minute
  int waited = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    test::SimGpu sim(seed, {}, shared_cooling(200 + 20 * static_cast<double>(seed)));
    const auto raw = sim.run(plan);
    if (!raw || raw->holds.empty()) continue;
    ++waited;
    EXPECT_EQ(hold_fault(raw->holds, raw->windows, raw->reference, plan.tier), "");
    EXPECT_GE(hold_length(raw->holds.back().blocks,
                          raw->windows[static_cast<std::size_t>(raw->holds.back().after_window) - 1]
                              .reading.end_ns),
              Seconds(5));
  }
  EXPECT_GT(waited, 0);
}

TEST(Hold, is_written_and_read) {
  Acquisition a;
  a.samples = a.counter = {"sim.x", "f", "gpu", "mW"};
  a.check = a.occupancy = Json::object();
  a.errors = {{"ecc", "none seen"}, {"xid", "none seen"}, {"processes", "none but ours"}};
  a.reference = kSettled;
  EXPECT_FALSE(to_json(a).contains("holds"));
  a.holds = {{4, alternating(11, 53, 52, 30)}, {8, alternating(12, 53, 52, 90)}};
  const auto again = acquisition_from(to_json(a), "test");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(to_json(*again), to_json(a));
  EXPECT_EQ(again->reference.temperature_c, 52.5);
  a.reference.temperature_c = 52;
  EXPECT_TRUE(to_json(a).at("reference").at("temperature_c").is_number_integer());
}

struct Story { // two pairs, A first in both; the first ends 3 C above
  std::vector<Window> windows{ending(55, 0), ending(56, 6), ending(53, 26), ending(53, 32)};
  std::vector<Hold> holds{{2, alternating(12, 53, 53, 12)}};
  Tier tier = kConfirmation;
  [[nodiscard]] std::string fault() const { return hold_fault(holds, windows, kSettled, tier); }
};

TEST(HoldFault, each_contradiction_is_named) {
  EXPECT_EQ(Story().fault(), "");
  const std::pair<std::function<void(Story&)>, const char*> table[] = {
      {[](Story& s) { s.holds.clear(); }, "before window 2 the run did not wait"},
      {[](Story& s) { s.windows[0] = ending(52), s.windows[1] = ending(53, 6); },
       "before window 2 the run waited, though the board was where it had settled"},
      {[](Story& s) { s.tier.max_hold.reset(); }, "before window 2 the run waited"},
      {[](Story& s) { s.holds[0].after_window = 4; }, "before window 2 the run did not wait"},
      {[](Story& s) {
         s.holds.push_back({4, alternating(12, 53, 53, 38)});
       },
       "a wait stands where no window follows"},
      {[](Story& s) { s.holds[0].blocks = alternating(12, 55, 55, 12); }, "ended before it had to"},
      {[](Story& s) { s.holds[0].blocks.clear(); }, "ended before it had to"},
      {[](Story& s) { s.holds[0].blocks.pop_back(); }, "ended before it had to"},
      {[](Story& s) { s.holds[0].blocks = alternating(14, 53, 53, 12); },
       "went on when it had to end"},
      {[](Story& s) { s.holds[0].blocks = alternating(12, 53, 53, 5); },
       "blocks that do not follow each other"},
      {[](Story& s) { s.holds[0].blocks = alternating(12, 53, 53, 21); },
       "blocks that do not follow each other"},
      {[](Story& s) { s.holds[0].blocks[3].arm = 0; }, "blocks that do not alternate"},
      {[](Story& s) { s.windows[2].reading.arm = 1; }, "blocks that do not alternate"},
      {[](Story& s) { s.holds[0].blocks = alternating(12, 53, 53, 15); },
       "does not end where the window begins"},
      {[](Story& s) { s.windows[2].reading.begin_ns += 10'000'000'000; },
       "does not end where the window begins"},
  };
  for (const auto& [change, what] : table) {
    Story story;
    change(story);
    EXPECT_NE(story.fault().find(what), std::string::npos) << story.fault() << " not " << what;
  }
}

TEST(HoldFault, a_wait_in_vain_ends_with_the_tiers_time_and_is_the_last) {
  Story story;
  story.windows.push_back(ending(55, 80));
  story.windows.push_back(ending(56, 86));
  story.windows[2] = ending(55, 44);
  story.windows[3] = ending(55, 50);
  story.tier.max_hold = Seconds(30);
  story.holds[0].blocks = alternating(30, 56, 56, 11); // from 11 to 41 s
  EXPECT_EQ(story.fault(), "") << "and none before window 4, though the board is away";
  story.holds[0].blocks = alternating(28, 56, 56, 11);
  EXPECT_NE(story.fault().find("ended before it had to"), std::string::npos) << story.fault();
  story.holds[0].blocks = alternating(32, 56, 56, 11);
  EXPECT_NE(story.fault().find("went on when it had to end"), std::string::npos) << story.fault();
}

} // namespace
} // namespace hebe::measure
