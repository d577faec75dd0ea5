// Facts about finalists: which pairs are measured, and what a pair that could not be measured
// costs.
#include "tune/finalists.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hebe::tune {
namespace {

// The baseline, the cheapest, the fastest.
SearchedShape searched() {
  SearchedShape s;
  s.candidate = {0, 1, 2};
  s.outcome.contenders.resize(3);
  s.outcome.best = 1;
  s.outcome.fastest = 2;
  return s;
}

struct Measured {
  std::vector<std::pair<std::size_t, std::size_t>> pairs{};
  std::size_t refused_from = 99;
  RefusalCode code = RefusalCode::not_stable;

  Result<Confirmed> confirmed(const SearchedShape& s = searched()) {
    return confirm(s, Objective::energy, [&](std::size_t a, std::size_t b) {
      pairs.emplace_back(a, b);
      return pairs.size() > refused_from ? Result<campaign::JobOutcome>(refuse(code, "no"))
                                         : lower();
    });
  }
  static Result<campaign::JobOutcome> lower() {
    campaign::JobOutcome job;
    job.analysis.energy.verdict = measure::Verdict::lower;
    return job;
  }
};

TEST(Confirm, the_choice_is_paired_with_the_baseline_and_with_the_fastest) {
  Measured m;
  const auto c = m.confirmed();
  ASSERT_TRUE(c) << to_text(c.error());
  EXPECT_EQ(m.pairs, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {2, 1}}));
  EXPECT_EQ(c->choice, 1U);
  EXPECT_EQ(c->against_fastest, 1U);
  EXPECT_FALSE(c->not_compared);
}

TEST(Confirm, a_comparison_that_the_board_was_not_fit_for_is_left_out_and_the_choice_stands) {
  using enum RefusalCode;
  for (const auto code : {not_stable, throttled, gate_failed, interrupted}) {
    Measured m{.refused_from = 1, .code = code};
    const auto c = m.confirmed();
    ASSERT_TRUE(c) << to_text(c.error());
    EXPECT_EQ(c->choice, 1U);
    EXPECT_EQ(c->runs.size(), 1U);
    EXPECT_EQ(c->fastest, 2U);
    EXPECT_FALSE(c->against_fastest);
    ASSERT_TRUE(c->not_compared);
    EXPECT_EQ(c->not_compared->code, code);
  }
}

TEST(Confirm, a_meter_that_fails_in_it_and_a_lost_lease_refuse_the_shape) {
  using enum RefusalCode;
  for (const auto code : {meter_frozen, meter_gap, meter_unsupported, device_error, gpu_busy,
                          lease_lost, io_failed, wrong_output}) {
    Measured m{.refused_from = 1, .code = code};
    const auto c = m.confirmed();
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().code, code);
  }
}

TEST(Confirm, the_pair_that_decides_is_never_left_out) {
  for (const auto code : {RefusalCode::not_stable, RefusalCode::interrupted}) {
    Measured m{.refused_from = 0, .code = code};
    const auto c = m.confirmed();
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().code, code);
  }
}

} // namespace
} // namespace hebe::tune
