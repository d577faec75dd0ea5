// Facts about host code as a shape's choice: held against the board's without pairs, and what a row
// and the record then say.
#include "tune/finalists.hpp"
#include "tune/tune_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "matmul_launch.hpp"

namespace hebe::tune {
namespace {
using testing::AllOf, testing::HasSubstr;

HostContender contender(double nj, double ns, std::size_t candidate = 1) {
  HostContender h;
  h.candidate = candidate;
  h.meter = {"powercap.intel-rapl.package-0", "usable", Provenance::measured};
  h.idle = {Watts(20), Watts(0.1), Seconds(2), Idle::no_context};
  auto& e = h.cost.energy;
  e.exact_nj = nj;
  e.cost_nj = std::llround(nj);
  e.low_nj = nj * 0.98;
  e.high_nj = nj * 1.02;
  e.meter = h.meter;
  h.cost.value = nj;
  h.cost.latency_ns = ns;
  h.cost.latency_error_ns = ns * 1e-6;
  h.cost.measured = Seconds(5);
  h.spent = Seconds(9);
  return h;
}
ArmCost board_choice(double nj, double ns) {
  ArmCost out;
  out.energy = contender(nj, ns).cost.energy;
  out.energy.meter = {"nvml.samples.total_power", "primary", Provenance::measured};
  out.time_ns = {std::llround(ns), ns * 0.99, ns * 1.01};
  return out;
}

TEST(DecideHost, takes_it_only_where_its_whole_interval_lies_below_the_boards) {
  const auto wins = [](double host, double board) {
    const auto d = decide_host(Objective::energy, contender(host, 100), board_choice(board, 100),
                               {}, "the profile");
    EXPECT_TRUE(d) << to_text(d.error());
    return d && d->b_wins;
  };
  EXPECT_TRUE(wins(900, 1000));
  EXPECT_FALSE(wins(970, 1000)); // 989.4 against 980: they overlap
  EXPECT_FALSE(wins(1100, 1000));
  const auto d = decide_host(Objective::energy, contender(900, 100), board_choice(1000, 100), {},
                             "the profile");
  ASSERT_TRUE(d);
  EXPECT_THAT(d->words, AllOf(HasSubstr("900 nJ [882, 918] by powercap.intel-rapl.package-0"),
                              HasSubstr("1000 nJ [980, 1020] by nvml.samples.total_power"),
                              HasSubstr("not in pairs")));
}

TEST(DecideHost, weighs_time_where_the_objective_does) {
  const auto wins = [](double ns, Objective objective, const std::optional<double>& bound = {},
                       double board_ns = 100) {
    const auto d = decide_host(objective, contender(500, ns), board_choice(1000, board_ns), bound,
                               "the profile");
    return d && d->b_wins;
  };
  EXPECT_TRUE(wins(150, Objective::edp));
  EXPECT_FALSE(wins(250, Objective::edp));
  EXPECT_TRUE(wins(250, Objective::energy));
  EXPECT_TRUE(wins(250, Objective::energy_under_latency, 300));
  EXPECT_FALSE(wins(250, Objective::energy_under_latency, 200));
  // A choice beyond the bound is no answer, whatever the other costs.
  const auto dear = decide_host(Objective::energy_under_latency, contender(5000, 100),
                                board_choice(1000, 400), 200, "the profile");
  EXPECT_TRUE(dear && dear->b_wins);
}

TEST(DecideHost, a_cost_that_is_none_is_refused_and_not_compared) {
  const auto refused = decide_host(Objective::energy, contender(std::nan(""), 100),
                                   board_choice(1000, 100), {}, "the profile");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().not_written, "the profile");
  EXPECT_FALSE(decide_host(Objective::energy, contender(500, 100), board_choice(0, 100), {}, "x"));
}

TEST(WeighHost, nothing_pairs_the_host_with_the_board) {
  Confirmed before;
  before.choice = 0;
  before.fastest = 2;
  before.against_fastest = 1;
  const auto weighed = [&](double host_ns, bool wins) {
    auto c = before;
    weigh_host(c, contender(900, host_ns, 5), {wins, "words"}, 100);
    return c;
  };
  const auto slower_and_dearer = weighed(200, false);
  EXPECT_EQ(slower_and_dearer.choice, 0U);
  EXPECT_EQ(slower_and_dearer.fastest, 2U);
  EXPECT_EQ(slower_and_dearer.against_fastest, 1U); // the pair of the board's two stays
  EXPECT_FALSE(slower_and_dearer.host());
  ASSERT_TRUE(slower_and_dearer.weighed); // kept for the record
  const auto faster_and_dearer = weighed(50, false);
  EXPECT_EQ(faster_and_dearer.choice, 0U);
  EXPECT_EQ(faster_and_dearer.fastest, 5U);
  EXPECT_EQ(faster_and_dearer.against_fastest, std::nullopt);
  const auto slower_and_cheaper = weighed(200, true);
  EXPECT_EQ(slower_and_cheaper.choice, 5U);
  EXPECT_EQ(slower_and_cheaper.fastest, 2U);
  EXPECT_EQ(slower_and_cheaper.against_fastest, std::nullopt);
  ASSERT_TRUE(slower_and_cheaper.host());
  EXPECT_EQ(slower_and_cheaper.host()->candidate, 5U);
}

TEST(BestHost, is_the_cheapest_within_the_bound) {
  const std::vector<HostContender> all{contender(900, 100, 1), contender(500, 300, 2),
                                       contender(700, 200, 3)};
  EXPECT_EQ(best_host(all, {})->candidate, 2U);
  EXPECT_EQ(best_host(all, 250)->candidate, 3U);
  EXPECT_EQ(best_host(all, 50), nullptr);
  EXPECT_EQ(best_host({}, {}), nullptr);
}

// A shape that was searched: the baseline at place 0 on the board, host code at place 1.
TunedShape tuned(const ShapeSpec& spec, bool host_wins) {
  TunedShape out;
  out.prepared.spec = &spec;
  auto launch = std::make_shared<campaign::PreparedCase>();
  launch->compiled.launch = test::matmul_launch(2, 3, 4, "fp32");
  TriedCandidate board, host;
  board.candidate = {"tiles", "triton.matmul", {{"block", 16}}};
  board.prepared = Prepared{board.candidate, DeviceCode(launch), std::string(64, 'a'), {}, "3.6.0"};
  host.candidate = {"host", "openblas.matmul", {{"threads", 3}}};
  host.prepared = Prepared{host.candidate, HostCode{}, std::string(64, 'e'), "made", {}};
  out.prepared.candidates = {board, host};
  SearchedShape s;
  s.meter = {"nvml.samples.total_power", "primary", Provenance::measured};
  s.idle = {Watts(120), Watts(0.2), Seconds(4), Idle::clocks_up};
  s.candidate = {0};
  Contender c;
  c.rung = 0;
  c.cost = contender(1000, 100).cost;
  c.spent = Seconds(2);
  s.outcome.contenders = {c};
  s.hosts = {contender(1000, 100)};
  out.searched = s;
  PairedRun run;
  run.job.run.seal = std::string(64, 'b');
  const Json arm{{"power_w", 320.0},
                 {"latency_s", 1e-3},
                 {"power_cv_ratio", 1e-4},
                 {"latency_cv_ratio", 1e-5}};
  run.job.analysis.json = {{"arms", {{"A", arm}, {"B", arm}}},
                           {"pairs", Json::array({1, 2, 3, 4})}};
  Confirmed confirmed;
  confirmed.runs.push_back(run);
  confirmed.words = "nothing else could be measured";
  out.confirmed = confirmed;
  weigh_host(*out.confirmed, contender(1e8, 2e6), {host_wins, "on the host 100000000 nJ"}, 1e6);
  return out;
}

// What a row and a record are made with, beside the shape.
struct Made {
  TuneSpec all;
  TunePlace place{{"GPU-1", "580", "Debian 12", "0.1.0", {}},
                  "NVIDIA H200",
                  "2026-11-30T04:20:00Z",
                  Provenance::measured,
                  7};
  Made() {
    all.name = "made";
    all.operation = "matmul";
    all.dtype = "fp32";
    all.protocol.tier = *measure::tier_named("smoke-v1");
    all.json = Json::object();
  }
};

TEST(HostChoice, its_row_names_its_own_meter_and_the_baselines_beside_it) {
  ShapeSpec spec;
  spec.shape = {"made", {{"m", 2}, {"n", 3}, {"k", 4}}};
  const auto [all, place] = Made();
  const auto shape = tuned(spec, true);
  const auto row = row_of(shape, all, place, "tune-1", "the profile");
  ASSERT_TRUE(row) << to_text(row.error());
  EXPECT_EQ(row->implementation.name, "openblas.matmul");
  EXPECT_EQ(row->energy_nj.value, 100'000'000);
  EXPECT_EQ(row->time_ns.value, 2'000'000);
  EXPECT_EQ(row->meter.name, "powercap.intel-rapl.package-0");
  EXPECT_EQ(row->idle, Idle::no_context);
  EXPECT_EQ(row->platform.triton, std::nullopt);
  EXPECT_EQ(row->verdict, std::nullopt); // nothing paired them
  EXPECT_EQ(row->effect, std::nullopt);
  ASSERT_TRUE(row->baseline);
  EXPECT_EQ(row->baseline->implementation.name, "triton.matmul");
  EXPECT_EQ(row->baseline->energy_nj.value, 200'000'000); // 200 W for 1 ms
  ASSERT_TRUE(row->baseline->meter);
  EXPECT_EQ(row->baseline->meter->name, "nvml.samples.total_power");
  const auto back = row_from(json_of(*row), "here");
  ASSERT_TRUE(back) << to_text(back.error());
  EXPECT_EQ(*back, *row);
  auto judged = *row;
  judged.verdict = "lower";
  EXPECT_FALSE(check_row(judged, "the profile"));
  judged = *row;
  judged.baseline->meter->status = "frozen";
  EXPECT_FALSE(check_row(judged, "the profile"));

  const auto stays = row_of(tuned(spec, false), all, place, "tune-1", "the profile");
  ASSERT_TRUE(stays) << to_text(stays.error());
  EXPECT_EQ(stays->implementation.name, "triton.matmul");
  EXPECT_EQ(stays->meter.name, "nvml.samples.total_power");
  EXPECT_EQ(stays->baseline->meter, std::nullopt);
}

TEST(HostChoice, the_record_says_what_each_meter_saw) {
  ShapeSpec spec;
  spec.shape = {"made", {{"m", 2}, {"n", 3}, {"k", 4}}};
  const auto [all, place] = Made();
  const auto record = record_of({tuned(spec, true)}, all, place);
  ASSERT_TRUE(record) << to_text(record.error());
  const auto& shape = record->at("shapes").at(0);
  const auto& host = shape.at("candidates").at(1);
  EXPECT_EQ(host.at("state"), "measured");
  EXPECT_EQ(host.at("cost").at("meter").at("name"), "powercap.intel-rapl.package-0");
  EXPECT_EQ(host.at("cost").at("idle").at("state"), "no_context");
  EXPECT_FALSE(shape.at("candidates").at(0).at("cost").contains("meter"));
  const auto& f = shape.at("finalists");
  EXPECT_EQ(f.at("choice"), 1);
  EXPECT_TRUE(f.at("latency_choice_differs"));
  EXPECT_TRUE(f.at("against_latency_choice").is_null());
  EXPECT_THAT(f.at("why").get<std::string>(), HasSubstr("on the host 100000000 nJ"));
  auto without = tuned(spec, true);
  without.searched->hosts.clear();
  without.confirmed->weighed.reset();
  const auto plain = shape_record(without, all);
  ASSERT_TRUE(plain) << to_text(plain.error());
  EXPECT_FALSE(plain->at("finalists").contains("host")); // as it was before host code was known
}

} // namespace
} // namespace hebe::tune
