// Facts about the temperature of pairs: what arms differ by themselves is no drift, and drift is
// still seen, in whichever pair it comes.
#include "measure/gates.hpp"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hebe::measure {
namespace {

std::unexpected<Refusal> missing() {
  return refuse(RefusalCode::meter_unsupported, "not supported");
}

// Pairs of one job, in the order in which they were measured.
struct Job {
  Tier tier = tier_named("confirmation-v1").value();
  Reference reference{{}, 50, {}};
  bool is_aa = false;
  std::vector<Window> windows{};

  // Temperatures at the windows' ends; which arm is first takes turns.
  Job& pair(Result<std::int64_t> a, Result<std::int64_t> b) {
    const int first = static_cast<int>(windows.size() / 2 % 2);
    std::array<Result<std::int64_t>, 2> end{std::move(a), std::move(b)};
    for (const int arm : {first, 1 - first}) {
      Window w;
      w.reading.arm = arm;
      w.reading.end.temperature_c = end[static_cast<std::size_t>(arm)];
      windows.push_back(std::move(w));
    }
    return *this;
  }
  Job& pairs(int count, std::int64_t a, std::int64_t b) {
    for (int i = 0; i < count; ++i) pair(a, b);
    return *this;
  }
  // "0" for each pair that passes, "w" for drift within it, "m" for its mean, "b" for both.
  std::string judged() {
    judge_temperatures(windows, tier, reference, is_aa);
    std::string out;
    for (std::size_t i = 1; i < windows.size(); i += 2) {
      int bits = 0;
      for (const auto& g : windows[i].gates)
        if (!g.passed) bits += g.name == "pair_temperature_drift_c" ? 1 : 2;
      out += "0wmb"[bits];
    }
    return out;
  }
};

// An H200 under arms of 574 and 652 W: 1.2 C apart on the mean, three of fifteen pairs refused.
TEST(PairDrift, what_the_arms_differ_by_themselves_is_none) {
  EXPECT_EQ(Job().pairs(9, 49, 50).pairs(2, 49, 51).pair(49, 50).judged(), "000000000000");
  EXPECT_EQ(Job().pairs(12, 47, 53).judged(), "000000000000"); // hundreds of watts
  EXPECT_EQ(Job().pairs(6, 47, 53).pair(48, 52).pair(46, 54).judged(), "000000ww");
}

TEST(PairDrift, a_step_is_seen_in_whichever_pair_it_comes) {
  for (int at = 0; at < 12; ++at)
    for (const std::int64_t step : {2, -2, 3}) {
      std::string due(12, '0');
      due[static_cast<std::size_t>(at)] = 'w';
      EXPECT_EQ(Job().pairs(at, 50, 50).pair(50, 50 + step).pairs(11 - at, 50, 50).judged(), due);
      EXPECT_EQ(Job().pairs(at, 49, 51).pair(49, 51 + step).pairs(11 - at, 49, 51).judged(), due);
    }
}

TEST(PairDrift, a_board_that_warms_in_every_pair_is_seen_by_the_two_orders) {
  Job job; // by 2 C from window to window, whichever arm
  job.reference.temperature_c = 51;
  for (int i = 0; i < 12; ++i) i % 2 == 0 ? job.pair(50, 52) : job.pair(52, 50);
  EXPECT_EQ(job.judged(), "wwwwwwwwwwww");
}

TEST(PairDrift, arms_of_one_code_differ_by_nothing) {
  Job job;
  job.is_aa = true;
  EXPECT_EQ(job.pair(50, 51).pair(50, 51).pair(51, 50).pair(50, 52).judged(), "000w");
  Job warm;
  warm.is_aa = true;
  EXPECT_EQ(warm.pairs(3, 49, 51).judged(), "www");
}

TEST(PairDrift, a_pairs_mean_is_held_to_the_warm_ups_temperature) {
  EXPECT_EQ(Job().pairs(3, 52, 52).pairs(3, 48, 48).judged(), "000000");
  EXPECT_EQ(Job().pairs(3, 50, 50).pair(53, 53).pair(52, 53).pair(47, 47).judged(), "000mmm");
  EXPECT_EQ(Job().pairs(3, 45, 55).judged(), "000"); // 5 C each, and none together
}

TEST(PairDrift, a_temperature_that_is_not_known_fails_where_there_is_a_limit) {
  EXPECT_EQ(Job().pair(missing(), 50).pair(50, missing()).pair(50, 50).judged(), "bb0");
  Job unknown;
  unknown.reference.temperature_c.reset();
  EXPECT_EQ(unknown.pair(50, 50).judged(), "m");
  Job smoke;
  smoke.tier = tier_named("smoke-v1").value();
  EXPECT_EQ(smoke.pair(missing(), 50).pair(20, 90).pair(90, 20).judged(), "000");
}

TEST(PairDrift, judging_again_changes_nothing) {
  Job job;
  job.pairs(3, 49, 50).pair(49, 53);
  const auto once = job.judged();
  EXPECT_EQ(job.judged(), once);
  EXPECT_EQ(job.windows.back().gates.size(), 2U);
}

TEST(PairDrift, a_plan_from_before_holds_any_difference_to_be_drift) {
  Job job;
  job.tier.drift_beyond_arms = false;
  job.reference.temperature_c = 90; // which it judges by the window
  EXPECT_EQ(job.pair(50, 51).pair(51, 50).pairs(3, 50, 52).pair(missing(), 50).judged(), "00wwww");
}

} // namespace
} // namespace hebe::measure
