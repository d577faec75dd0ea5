// The warm-up's end, judged. In: made blocks of a second each; out: settled, or what is named as
// moving.
#include "measure/settling.hpp"

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

namespace hebe::measure {
namespace {

std::vector<WarmUpBlock> seconds_at(const std::vector<std::pair<int, std::int64_t>>& stretches,
                                    Watts power = Watts(600)) {
  std::vector<WarmUpBlock> blocks; // (seconds, degrees), a block a second
  for (const auto& [seconds, degrees] : stretches)
    for (int i = 0; i < seconds; ++i) {
      const auto n = static_cast<std::int64_t>(blocks.size());
      WarmUpBlock b{
          static_cast<int>(n % 2), n * 1'000'000'000, Seconds(1e-3), power, std::nullopt, false};
      b.temperature_c = degrees;
      blocks.push_back(b);
    }
  return blocks;
}

Tier confirmation() { return tier_named("confirmation-v1").value(); }

// As plans had it that were made before a temperature could flicker.
Tier without_flicker() {
  auto tier = confirmation();
  tier.steady_temperature.reset();
  tier.steady_change.reset();
  return tier;
}

TEST(HasSettled, needs_two_blocks_of_each_arm_within_the_span_and_the_ranges) {
  const auto blocks = [](std::initializer_list<double> watts,
                         std::initializer_list<std::int64_t> celsius = {}) {
    std::vector<WarmUpBlock> out;
    for (const double w : watts) {
      const auto i = static_cast<std::int64_t>(out.size());
      WarmUpBlock b{
          static_cast<int>(i % 2), i * 1'000'000'000, Seconds(1e-3), Watts(w), std::nullopt, false};
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
  EXPECT_FALSE(has_settled(blocks({400, 500, 400, 500}, {50, 51, 53, 54}), smoke));
  auto silent = blocks({400, 500, 400, 500});
  for (auto& b : silent) b.power.reset();
  EXPECT_FALSE(has_settled(silent, smoke));
  auto confirmation = tier_named("confirmation-v1").value();
  EXPECT_FALSE(has_settled(blocks({400, 500, 400, 500}),
                           confirmation)); // it judges temperature and has none
}

// An H200's warm-up of 30 s ended 1 C above its last 20 s; the job then rose by 4 C.
TEST(HasSettled, of_evidence_needs_a_temperature_that_stands_still_or_stays_for_a_minute) {
  for (const auto& tier : {confirmation(), without_flicker()}) {
    const auto after = [&](const std::vector<std::pair<int, std::int64_t>>& stretches) {
      return has_settled(seconds_at(stretches), tier);
    };
    EXPECT_TRUE(after({{10, 40}, {31, 50}}));
    EXPECT_FALSE(after({{10, 40}, {29, 50}})) << "not yet for 30 s";
    EXPECT_FALSE(after({{10, 48}, {15, 49}, {15, 50}})) << "1 C in 20 s, and still rising";
    EXPECT_FALSE(after({{20, 48}, {20, 49}, {20, 50}}));
    EXPECT_FALSE(after({{20, 48}, {20, 49}, {25, 50}})) << "2 C in a minute, all of it upwards";
    EXPECT_TRUE(after({{10, 40}, {20, 49}, {20, 50}, {21, 49}})) << "flickers between two degrees";
    EXPECT_FALSE(after({{20, 49}, {20, 50}, {5, 49}})) << "for a minute, not less";
  }
}

// Near its power limit an H200 went 57, 55, 57 C while its power stood within 0.2 %.
TEST(HasSettled, a_temperature_may_flicker_by_two_degrees_without_a_trend) {
  const auto flicker =
      seconds_at({{5, 57}, {20, 56}, {5, 55}, {10, 57}, {5, 55}, {10, 56}, {5, 57}, {5, 56}});
  EXPECT_EQ(what_moves(flicker, confirmation()), "");
  EXPECT_EQ(settled_temperature(flicker, confirmation()), 56);
  EXPECT_FALSE(has_settled(flicker, without_flicker())) << "older plans are judged as before";
  const auto wide = what_moves(seconds_at({{20, 55}, {20, 58}, {21, 55}}), confirmation());
  EXPECT_EQ(wide, "the temperature moved between 55 and 58 C in 60 s (limit 2 C)");
  const auto rising = what_moves(seconds_at({{25, 55}, {11, 56}, {25, 57}}), confirmation());
  EXPECT_NE(rising.find("from the first half of them to the second (limit 0.5 C)"),
            std::string::npos)
      << rising;
  const auto falling = what_moves(seconds_at({{25, 57}, {11, 56}, {25, 55}}), confirmation());
  EXPECT_NE(falling.find("-1.7 C"), std::string::npos) << falling;
}

// Of an H200: 250 W under one arm, 500 under the other, a second each, from 49 to 59 C and back.
std::vector<WarmUpBlock> far_apart(std::int64_t a, std::int64_t b, int seconds = 70) {
  auto blocks = seconds_at({{seconds, a}});
  for (auto& block : blocks) {
    if (block.arm == 0) continue;
    block.temperature_c = b;
    block.power = Watts(250);
  }
  return blocks;
}

TEST(HasSettled, arms_of_unequal_power_settle_each_by_itself) {
  EXPECT_EQ(what_moves(far_apart(59, 49), confirmation()), "");
  EXPECT_EQ(settled_temperature(far_apart(59, 49), confirmation()), 54);
  EXPECT_EQ(settled_temperature(far_apart(59, 50), confirmation()), 54.5);
  auto before = confirmation();
  before.settle_by_arm = false;
  EXPECT_EQ(what_moves(far_apart(59, 49), before),
            "the temperature moved between 49 and 59 C in 60 s (limit 2 C)");
  auto smoke = tier_named("smoke-v1").value();
  EXPECT_TRUE(has_settled(far_apart(59, 49), smoke));
  smoke.settle_by_arm = false;
  EXPECT_FALSE(has_settled(far_apart(59, 49), smoke));
}

// Of an A/A, say: what takes turns there is the board's own wandering.
TEST(HasSettled, arms_of_like_power_settle_together) {
  auto blocks = seconds_at({{10, 53}});
  for (int i = 0; i < 70; ++i) {
    auto block = blocks.back();
    block.end_ns += 1'000'000'000;
    block.arm = 1 - block.arm;
    block.temperature_c = (block.arm == 0 ? 52 : 54) + (i / 4 % 2) * 2;
    blocks.push_back(block);
  }
  EXPECT_EQ(what_moves(blocks, confirmation()),
            "the temperature moved between 52 and 56 C in 60 s (limit 2 C)");
  for (auto& b : blocks)
    if (b.arm == 1) b.power = Watts(560);
  EXPECT_EQ(what_moves(blocks, confirmation()), "");
}

TEST(HasSettled, an_arm_whose_own_temperature_moves_is_named) {
  for (const int arm : {0, 1}) {
    auto blocks = far_apart(59, 49);
    for (std::size_t i = 0; i < 50; ++i)
      if (blocks[i].arm == arm) *blocks[i].temperature_c -= 2;
    EXPECT_EQ(what_moves(blocks, confirmation()).substr(0, 37),
              fmt::format("under arm {} the temperature moved bet", arm == 0 ? 'A' : 'B'));
  }
  auto silent = far_apart(59, 49);
  for (auto& b : silent)
    if (b.arm == 1) b.temperature_c.reset();
  EXPECT_EQ(what_moves(silent, confirmation()), "under arm B the temperature is not known");
  EXPECT_EQ(settled_temperature(silent, confirmation()), std::nullopt);
}

TEST(HasSettled, what_moves_is_named_with_its_figure) {
  auto blocks = seconds_at({{70, 50}});
  blocks[60].power = Watts(615); // arm A, 2.5 %
  EXPECT_EQ(what_moves(blocks, confirmation()),
            "arm A's power moved between 600.0 and 615.0 W, 2.50 %, in 20 s (limit 0.6 %)");
  for (auto& b : blocks)
    if (b.arm == 1) b.power.reset();
  blocks[60].power = Watts(600);
  EXPECT_EQ(what_moves(blocks, confirmation()),
            "arm B's power is known of 0 of the blocks of the last 20 s, 2 are needed");
  blocks = seconds_at({{70, 50}});
  for (auto& b : blocks) b.temperature_c.reset();
  EXPECT_EQ(what_moves(blocks, confirmation()), "the temperature is not known");
}

// As an H200's blocks at its limit of 700 W: by some tenths of a percent, one way and the other.
// `shape` is what the board does beyond that, by seconds.
std::vector<WarmUpBlock> flickering(double relative,
                                    const std::function<double(int)>& shape = nullptr) {
  auto blocks = seconds_at({{70, 50}}, Watts(698));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const double up = i / 2 % 2 == 0 ? 1 : -1;
    const double beyond = shape ? shape(static_cast<int>(i)) : 0;
    *blocks[i].power = Watts(698 * (1 + up * relative / 2 + beyond));
    blocks[i].capped = true;
  }
  return blocks;
}

TEST(HasSettled, power_may_flicker_at_the_limit_without_a_trend) {
  for (const double relative : {0.0, 0.005, 0.011, 0.013})
    EXPECT_EQ(what_moves(flickering(relative), confirmation()), "") << relative;
  EXPECT_NE(what_moves(flickering(0.016), confirmation()), "") << "another state, not a flicker";
  auto before = confirmation();
  before.steady_power.reset();
  before.steady_energy_change.reset();
  EXPECT_EQ(what_moves(flickering(0.005), before), "");
  EXPECT_NE(what_moves(flickering(0.011), before), "") << "older plans are judged as before";
  EXPECT_NE(what_moves(flickering(0.011), tier_named("smoke-v1").value()), "");
  auto short_one = flickering(0.011);
  short_one.erase(short_one.begin(), short_one.begin() + 20);
  EXPECT_NE(what_moves(short_one, confirmation()), "") << "for a minute, not less";
}

TEST(HasSettled, below_the_limit_power_that_moves_is_no_flicker) {
  for (const int arm : {0, 1}) { // the other one is at the limit
    auto blocks = flickering(0.011);
    for (auto& b : blocks)
      if (b.arm == arm) b.capped = false;
    EXPECT_EQ(what_moves(blocks, confirmation()).substr(0, 13),
              fmt::format("arm {}'s power", arm == 0 ? 'A' : 'B'));
    for (auto& b : blocks) b.capped.reset();
    EXPECT_NE(what_moves(blocks, confirmation()), "") << "whether it was held is not known";
  }
  auto blocks = flickering(0.011);
  for (std::size_t i = 10; i < 70; i += 3) blocks[i].capped = false;
  EXPECT_NE(what_moves(blocks, confirmation()), "") << "held now and then";
  blocks = flickering(0.011);
  blocks[30].capped = false;
  EXPECT_EQ(what_moves(blocks, confirmation()), "");
}

TEST(HasSettled, at_the_limit_whatever_is_more_than_a_flicker_moves) {
  const std::pair<const char*, std::function<double(int)>> shapes[] = {
      {"a drift", [](int i) { return 0.006 * i / 70; }},
      {"a drift downwards", [](int i) { return -0.006 * i / 70; }},
      {"out and back", [](int i) { return i > 25 && i < 45 ? -0.006 : 0.0; }},
      {"a sine of a minute", [](int i) { return 0.004 * std::sin(0.105 * i); }},
      {"a step that has just been", [](int i) { return i > 60 ? 0.006 : 0.0; }}};
  for (const auto& [name, shape] : shapes) {
    const auto moves = what_moves(flickering(0.006, shape), confirmation());
    EXPECT_NE(moves.find("'s power moved between"), std::string::npos) << name << ": " << moves;
  }
  // The control holds the power; the clock goes, and the energy of a launch with it.
  auto slower = flickering(0.009);
  for (std::size_t i = 0; i < slower.size(); ++i)
    slower[i].latency = Seconds(1e-3 * (1 + 0.004 * static_cast<double>(i) / 70));
  EXPECT_NE(what_moves(slower, confirmation()), "");
  for (std::size_t i = 0; i < slower.size(); ++i)
    slower[i].latency = Seconds(1e-3 * (1 + 0.001 * static_cast<double>(i) / 70));
  EXPECT_EQ(what_moves(slower, confirmation()), "");
}

TEST(HasSettled, a_flicker_is_not_judged_by_a_part_of_its_blocks) {
  for (const int unknown : {4, 12}) { // of about 30 of an arm
    auto blocks = flickering(0.011);
    for (int i = 0; i < unknown; ++i) blocks[10 + 2 * static_cast<std::size_t>(i)].power.reset();
    EXPECT_EQ(what_moves(blocks, confirmation()).empty(), unknown == 0) << unknown;
  }
  auto blocks = flickering(0.011);
  blocks[30].power.reset();
  EXPECT_EQ(what_moves(blocks, confirmation()), "");
}

TEST(WhatMoved, is_counted_for_each_by_itself) {
  auto blocks = seconds_at({{30, 50}, {25, 53}, {65, 53}});
  for (std::size_t i = 45; i < 55; ++i)
    if (blocks[i].arm == 1) *blocks[i].power = Watts(650);
  // The temperature until the degrees of before have stood still for 30 s; arm B's power while a
  // block of 650 W is among the last 20 s.
  EXPECT_EQ(what_moved(blocks, 30, confirmation()),
            "of 90 looks arm B's power moved at 29, the temperature at 30");
  for (auto& b : blocks)
    *b.power = Watts(600 + 0.5 * static_cast<double>(b.end_ns / 1'000'000'000));
  EXPECT_EQ(what_moved(blocks, 30, confirmation()),
            "of 90 looks arm A's power moved at 90, arm B's power at 90, the temperature at 30");
  EXPECT_EQ(what_moved(blocks, blocks.size(), confirmation()), "of 0 looks nothing moved");
  auto unlike = far_apart(59, 49, 100);
  for (std::size_t i = 0; i < unlike.size(); ++i)
    *unlike[i].temperature_c += static_cast<std::int64_t>(i / 10 % 2) * 4;
  EXPECT_EQ(
      what_moved(unlike, 80, confirmation()),
      "of 20 looks under arm A the temperature moved at 20, under arm B the temperature at 20");
  EXPECT_EQ(what_moved(seconds_at({{100, 50}}), 70, confirmation()), "of 30 looks nothing moved");
}

TEST(SettledTemperature, is_the_median_of_the_span_and_not_the_last_flicker) {
  EXPECT_EQ(settled_temperature(seconds_at({{100, 40}, {60, 50}, {1, 52}}), confirmation()), 50);
  EXPECT_EQ(settled_temperature({}, confirmation()), std::nullopt);
  EXPECT_EQ(settled_temperature(seconds_at({{60, 50}, {1, 52}}), without_flicker()), 52)
      << "older plans are judged as before";
}

TEST(Tier, settling_is_written_and_read_and_absent_from_plans_from_before) {
  auto before = without_flicker();
  EXPECT_FALSE(to_json(before).contains("steady_temperature_c"));
  EXPECT_EQ(tier_from(to_json(before))->steady_temperature, std::nullopt);
  EXPECT_EQ(tier_from(to_json(confirmation()))->steady_temperature, Celsius(2));
  EXPECT_EQ(tier_from(to_json(confirmation()))->steady_change, Celsius(0.5));
  const auto since = {"settle_by_arm", "max_hold_s", "steady_power_ratio",
                      "steady_energy_change_ratio"};
  for (const char* field : since) EXPECT_TRUE(to_json(confirmation()).contains(field)) << field;
  before.settle_by_arm = false;
  before.max_hold.reset();
  before.steady_power.reset();
  before.steady_energy_change.reset();
  for (const char* field : since) EXPECT_FALSE(to_json(before).contains(field)) << field;
  EXPECT_FALSE(tier_from(to_json(before))->settle_by_arm);
  EXPECT_EQ(tier_from(to_json(before))->max_hold, std::nullopt);
  EXPECT_EQ(to_json(*tier_from(to_json(confirmation()))), to_json(confirmation()));
  before.still_span.reset();
  before.steady_span.reset();
  EXPECT_FALSE(to_json(before).contains("still_span_s"));
  EXPECT_EQ(tier_from(to_json(before))->still_span, std::nullopt);
  EXPECT_EQ(tier_from(to_json(confirmation()))->still_span, Seconds(30));
}

} // namespace
} // namespace hebe::measure
