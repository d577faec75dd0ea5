#include "tune/search.hpp"

#include "core/philox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace hebe::tune {
namespace {

using State = Contender::State;

/// A made board: candidates of known power and latency, windows that differ as a real one's do.
struct MadeBoard {
  std::vector<double> power_w, latency_s;
  double noise = 0.001;
  std::uint64_t seed = 1;
  std::vector<std::size_t> asked; ///< in order
  std::size_t fails_at = SIZE_MAX;

  Result<measure::SeriesWindow> window(std::size_t i, Seconds length) {
    if (asked.size() == fails_at) return refuse(RefusalCode::meter_gap, "a gap");
    const auto number = asked.size();
    asked.push_back(i);
    Philox random(seed, number);
    measure::SeriesWindow w;
    // As much noise as one window has at 1 s; it averages away with its length.
    const double scale = noise / std::sqrt(length.value());
    w.power = Watts(power_w[i] * (1 + scale * random.normal()));
    w.power_error = Watts(power_w[i] * scale);
    w.latency = Seconds(latency_s[i]);
    w.latency_error = Seconds(latency_s[i] * 1e-5);
    w.duration = length;
    w.launches = std::llround(length.value() / latency_s[i]);
    w.spent = length + Seconds(0.6);
    return w;
  }
};

CostTerms terms(Objective objective = Objective::energy,
                IdleCharge idle_power = IdleCharge::excluded) {
  CostTerms t;
  t.idle = {Watts(120), Watts(0.05), Seconds(4), Idle::clocks_up};
  t.meter = {"made", "primary", Provenance::simulated};
  t.objective = objective;
  t.not_written = "nothing";
  t.idle_power = idle_power;
  return t;
}

Result<SearchOutcome> searched(MadeBoard& board, SearchSettings s = {}, std::size_t baseline = 0) {
  return search(
      board.power_w.size(), baseline, s,
      [&](std::size_t i, Seconds length) { return board.window(i, length); },
      [&](std::span<const CandidateWindow> w) { return cost_of(w, terms(s.objective)); });
}

MadeBoard spread(std::size_t candidates, double step) {
  MadeBoard board;
  for (std::size_t i = 0; i < candidates; ++i) {
    board.power_w.push_back(500 * (1 + step * static_cast<double>(candidates - i)));
    board.latency_s.push_back(1e-4);
  }
  return board;
}

TEST(Search, the_cheapest_of_candidates_that_lie_far_apart_is_found_in_one_rung) {
  auto board = spread(12, 0.05);
  const auto out = searched(board);
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_EQ(out->best, 11U);
  EXPECT_EQ(out->rungs, 1);
  EXPECT_THAT(out->stopped, testing::HasSubstr("one is left"));
}

TEST(Search, a_candidate_is_dropped_only_when_its_interval_lies_beyond_the_bests) {
  auto board = spread(16, 0.002);
  const auto out = searched(board);
  ASSERT_TRUE(out) << to_text(out.error());
  const auto& best = *out->contenders[*out->best].cost;
  int dropped = 0, left = 0;
  for (const auto& c : out->contenders) {
    if (c.state == State::dropped && c.rung == out->rungs - 1) {
      EXPECT_GT(c.cost->low, best.high);
    }
    if (c.state == State::alive) {
      EXPECT_LE(c.cost->low, best.high);
    }
    ++(c.state == State::dropped ? dropped : left);
  }
  EXPECT_GT(dropped, 0);
  EXPECT_GT(left, 0);
}

TEST(Search, the_true_best_is_hardly_ever_dropped_on_a_noisy_board) {
  int lost = 0;
  constexpr int kTrials = 400;
  for (int t = 0; t < kTrials; ++t) {
    auto board = spread(10, 0.002);
    board.seed = static_cast<std::uint64_t>(1000 + t);
    SearchSettings s;
    s.seed = static_cast<std::uint64_t>(t);
    const auto out = searched(board, s);
    ASSERT_TRUE(out) << to_text(out.error());
    lost += out->contenders[9].state == State::dropped;
  }
  // Its interval would have to lie beyond another's whole interval: for each of the nine others far
  // less than 1 %.
  EXPECT_LE(lost, kTrials / 50);
}

TEST(Search, equal_seeds_measure_in_equal_order_and_others_in_another) {
  SearchSettings one, two;
  two.seed = 1;
  auto a = spread(9, 0.01), b = spread(9, 0.01), c = spread(9, 0.01);
  ASSERT_TRUE(searched(a, one));
  ASSERT_TRUE(searched(b, one));
  ASSERT_TRUE(searched(c, two));
  EXPECT_EQ(a.asked, b.asked);
  EXPECT_NE(a.asked, c.asked);
}

TEST(Search, the_baseline_is_measured_first_last_and_among_the_others) {
  auto board = spread(9, 0.05);
  ASSERT_TRUE(searched(board));
  EXPECT_EQ(board.asked.front(), 0U);
  EXPECT_EQ(board.asked.back(), 0U);
  EXPECT_GE(std::ranges::count(board.asked, 0U), 3);
}

TEST(Search, candidates_that_cannot_be_told_apart_at_the_floor_end_it) {
  MadeBoard board;
  board.power_w = {500, 500, 500, 500};
  board.latency_s = {1e-4, 1e-4, 1e-4, 1e-4};
  board.noise = 0.0003;
  const auto out = searched(board);
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_THAT(out->stopped, testing::HasSubstr("lie within 0.5 %"));
  for (const auto& c : out->contenders) EXPECT_EQ(c.state, State::alive);
}

TEST(Search, noise_that_longer_windows_do_not_beat_ends_at_the_longest_window) {
  MadeBoard board;
  board.power_w = {500, 500, 500};
  board.latency_s = {1e-4, 1e-4, 1e-4};
  board.noise = 0.05;
  const auto out = searched(board);
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_EQ(out->rungs, 4); // 0.5, 1, 2, 4 s
  EXPECT_THAT(out->stopped, testing::HasSubstr("more than 4 s"));
}

TEST(Search, a_window_that_was_refused_ends_it_and_nothing_counts) {
  auto board = spread(5, 0.05);
  board.fails_at = 4;
  const auto out = searched(board);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, RefusalCode::meter_gap);
}

TEST(Search, a_candidate_at_idle_power_has_no_cost_and_ends_it) {
  auto board = spread(5, 0.05);
  board.power_w[3] = 119;
  const auto out = searched(board);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, RefusalCode::gate_failed);
  EXPECT_THAT(out.error().what, testing::HasSubstr("at or below idle"));
}

TEST(Search, who_is_slower_than_the_bound_is_never_the_best) {
  MadeBoard board;
  board.power_w = {600, 300, 500};
  board.latency_s = {1e-4, 1.2e-4, 1.01e-4};
  SearchSettings s;
  s.objective = Objective::energy_under_latency;
  s.latency_bound = LatencyBound{std::nullopt, 1.05};
  const auto out = searched(board, s);
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_EQ(out->best, 2U);
  EXPECT_EQ(out->contenders[1].state, State::over_latency);
}

TEST(Search, without_anyone_within_the_bound_there_is_no_best) {
  auto board = spread(4, 0.05);
  SearchSettings s;
  s.objective = Objective::energy_under_latency;
  s.latency_bound = LatencyBound{1.0, std::nullopt};
  const auto out = searched(board, s);
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_FALSE(out->best);
  EXPECT_FALSE(out->runner_up);
}

TEST(Search, edp_weighs_time_as_much_as_energy) {
  MadeBoard board;
  board.power_w = {500, 300, 560};
  board.latency_s = {1e-4, 1.5e-4, 0.9e-4};
  SearchSettings s;
  auto by_energy = board;
  EXPECT_EQ(searched(by_energy, s)->best, 1U); // 27 mJ against 38 and 39.6
  s.objective = Objective::edp;
  EXPECT_EQ(searched(board, s)->best, 2U);
}

TEST(Search, the_fastest_is_told_beside_the_cheapest) {
  MadeBoard board;
  board.power_w = {500, 300, 690};
  board.latency_s = {1e-4, 1.2e-4, 0.8e-4};
  const auto out = searched(board);
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_EQ(out->best, 1U);
  EXPECT_EQ(out->fastest, 2U);
}

TEST(Search, exhaustive_measures_each_once_at_the_longest_window) {
  auto board = spread(6, 0.05);
  SearchSettings s;
  s.method = Method::exhaustive;
  const auto out = searched(board, s);
  ASSERT_TRUE(out) << to_text(out.error());
  for (std::size_t i = 1; i < 6; ++i) {
    EXPECT_EQ(out->contenders[i].windows.size(), 1U);
    EXPECT_DOUBLE_EQ(out->contenders[i].cost->measured.value(), 4);
  }
  EXPECT_DOUBLE_EQ(out->exhaustive.value(), 24);
  EXPECT_DOUBLE_EQ((out->measured - out->references).value(), 20);
}

TEST(Search, halving_measures_less_than_exhaustive_at_the_noise_of_the_longest) {
  auto board = spread(24, 0.004);
  const auto out = searched(board);
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_GT(out->rungs, 1);
  EXPECT_LT(out->measured.value(), out->exhaustive.value());
}

TEST(Search, more_windows_make_a_cost_surer_and_the_noise_of_the_board_less_sure) {
  auto board = spread(1, 0.01);
  std::vector<measure::SeriesWindow> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(*board.window(0, Seconds(1)));
  std::vector<CandidateWindow> quiet, noisy;
  for (const auto& w : seen) {
    quiet.push_back(with_noise(w, {0, 0}));
    noisy.push_back(with_noise(w, {0.02, 0.001}));
  }
  const auto one = cost_of(std::span(quiet).first(1), terms()), four = cost_of(quiet, terms()),
             rough = cost_of(noisy, terms());
  ASSERT_TRUE(one && four && rough);
  EXPECT_LT(four->high - four->low, one->high - one->low);
  EXPECT_GT(rough->high - rough->low, four->high - four->low);
}

// On an H200 a decode product of 9.2 us was dropped for one of 12.0 that cost 2 % less beyond the
// idle board, and 13 % more with it (evidence/h200-tunes-confirmed).
TEST(Search, with_idle_power_included_a_launch_costs_all_that_the_board_takes_meanwhile) {
  MadeBoard board;
  board.power_w = {270, 230};
  board.latency_s = {9.2e-6, 12e-6};
  std::vector<std::vector<CandidateWindow>> windows;
  for (const std::size_t i : {0, 1})
    windows.push_back({with_noise(*board.window(i, Seconds(1)), {})});
  const auto cost = [&](std::size_t i, Objective o, IdleCharge charge) {
    return cost_of(windows[i], terms(o, charge)).value();
  };
  for (const auto o : {Objective::energy, Objective::edp}) {
    const double ns_s[] = {o == Objective::edp ? 9.2e-6 : 1, o == Objective::edp ? 12e-6 : 1};
    for (const std::size_t i : {0, 1}) {
      const auto beyond = cost(i, o, IdleCharge::excluded), all = cost(i, o, IdleCharge::included);
      const double launch_s = board.latency_s[i], nj = board.power_w[i] * launch_s * 1e9;
      EXPECT_NEAR(all.value / (nj * ns_s[i]), 1, 0.005);
      EXPECT_NEAR((all.value - beyond.value) / (120 * launch_s * 1e9 * ns_s[i]), 1, 1e-5);
      EXPECT_EQ(all.energy.exact_nj, beyond.energy.exact_nj) << "a row's cost is the same";
      // The idle power's error is none of all the board's.
      EXPECT_LT((all.high - all.low) / all.value, (beyond.high - beyond.low) / beyond.value);
      EXPECT_GT(all.high, all.low);
    }
  }
  using enum IdleCharge;
  EXPECT_GT(cost(0, Objective::energy, excluded).low, cost(1, Objective::energy, excluded).high);
  EXPECT_LT(cost(0, Objective::energy, included).high, cost(1, Objective::energy, included).low);
}

TEST(Search, nothing_was_measured_is_no_cost_of_zero) {
  const auto cost = cost_of({}, terms());
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().code, RefusalCode::meter_not_qualified);
  EXPECT_THAT(cost.error().what, testing::HasSubstr("no 0 J"));
}

TEST(Search, a_meter_that_is_not_believed_gives_no_cost) {
  auto board = spread(1, 0.01);
  const std::vector<CandidateWindow> windows = {with_noise(*board.window(0, Seconds(1)), {})};
  auto t = terms();
  t.meter.status = "frozen";
  const auto cost = cost_of(windows, t);
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().code, RefusalCode::meter_frozen);
  EXPECT_EQ(cost.error().not_written, "nothing");
}

TEST(Search, two_windows_do_not_tell_the_noise) {
  auto board = spread(1, 0.01);
  std::vector<measure::SeriesWindow> seen = {*board.window(0, Seconds(1)),
                                             *board.window(0, Seconds(1))};
  EXPECT_FALSE(noise_of(seen));
  seen.push_back(*board.window(0, Seconds(1)));
  EXPECT_TRUE(noise_of(seen));
}

TEST(IdlePower, stretches_that_differ_are_not_surer_than_their_difference) {
  const std::vector<measure::IdleStretch> stretches = {{Watts(120), Watts(0.1), Seconds(2), 1980},
                                                       {Watts(126), Watts(0.1), Seconds(2), 1980}};
  const auto idle = idle_power(stretches, 1980);
  ASSERT_TRUE(idle);
  EXPECT_DOUBLE_EQ(idle->mean.value(), 123);
  EXPECT_GE(idle->error.value(), 3);
}

TEST(IdlePower, clocks_that_fell_or_were_not_read_are_not_up) {
  const auto state = [](std::optional<std::int64_t> idle, std::optional<std::int64_t> loaded) {
    const std::vector<measure::IdleStretch> one = {{Watts(120), Watts(0.1), Seconds(2), idle}};
    return idle_power(one, loaded)->state;
  };
  EXPECT_EQ(state(1980, 1980), Idle::clocks_up);
  EXPECT_EQ(state(345, 1980), Idle::context_open);
  EXPECT_EQ(state(std::nullopt, 1980), Idle::context_open);
  EXPECT_EQ(state(1980, std::nullopt), Idle::context_open);
}

TEST(IdlePower, an_idle_board_that_nobody_measured_has_no_power) {
  EXPECT_FALSE(idle_power({}, 1980));
}

} // namespace
} // namespace hebe::tune
