// Facts about a tune with host code that is verified: what its record and its row say of the host
// follows from the counters that were read, and whoever changes one of them is told where.
#include "campaign/board_lease.hpp"
#include "campaign/campaign_spec.hpp"
#include "core/schema.hpp"
#include "tune/tune_record.hpp"
#include "tune/tune_verification.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "made_host_code.hpp"

namespace hebe::tune {
namespace {
using test::HostCodes;
using testing::AllOf, testing::Contains, testing::HasSubstr, testing::IsEmpty;

const std::string kRun(64, 'b');

Json made_spec(const Json& more) {
  Json out{{"schema", "hebe.tune.spec/1"},
           {"name", "made"},
           {"operation", "matmul"},
           {"dtype", "fp32"},
           {"dimensions", {"m", "n", "k"}},
           {"tier", "smoke-v1"},
           {"search_warm_up_s", 3},
           {"baseline", {{"backend", "tiles"}, {"configuration", {{"block", 16}}}}},
           {"shapes", Json::array({{{"name", "made"}, {"sizes", {{"m", 2}, {"n", 3}, {"k", 4}}}}})},
           {"backends", Json::array({{{"name", "tiles"},
                                      {"kind", "triton"},
                                      {"case", "made.py:case"},
                                      {"space", {{"block", Json::array({16})}}}},
                                     {{"name", "host"}, {"kind", "openblas"}}})}};
  out.update(more);
  return out;
}

// What a pair of the board gave, at so many joules an operation beyond about 120 W of idle.
campaign::JobOutcome paired(double latency_s) {
  campaign::JobOutcome out;
  out.run.seal = kRun;
  const Json arm{{"power_w", 420.0},
                 {"latency_s", latency_s},
                 {"power_cv_ratio", 1e-4},
                 {"latency_cv_ratio", 1e-5}};
  out.analysis.json = {{"arms", {{"A", arm}, {"B", arm}}}, {"pairs", Json::array({1, 2, 3, 4})}};
  return out;
}
constexpr double kDear = 1e-2, kCheap = 1e-5; // s: 3 J and 3 mJ, where the host's costs 60 mJ

// A tune of one shape: the baseline on the simulated GPU, host code on a made package.
class HostTune : public HostCodes {
protected:
  void make(double board_latency_s, const Json& more = Json::object()) {
    latency_s_ = board_latency_s;
    const auto spec = stored_tune_spec(made_spec(more), "the test");
    ASSERT_TRUE(spec) << to_text(spec.error());
    spec_ = *spec;
    root_.emplace(folder_.path());
    ASSERT_TRUE(root_->initialise());
    auto machine = campaign::Machine::open({"sim", 1, {}, {}, {}});
    ASSERT_TRUE(machine) << to_text(machine.error());
    const auto lease = campaign::BoardLease::acquire(*root_, **machine, "the test");
    ASSERT_TRUE(lease) << to_text(lease.error());
    const campaign::JobCallbacks callbacks;
    TunedShape shape;
    shape.prepared = prepared();
    auto searched =
        search_shape(shape.prepared, spec_, {*root_, **machine, *lease, callbacks, metering()},
                     campaign::seed_for("7", "made"), "the row");
    ASSERT_TRUE(searched) << to_text(searched.error());
    shape.searched = std::move(*searched);
    auto confirmed = confirm(*shape.searched, spec_.objective,
                             [&](std::size_t, std::size_t) { return paired(latency_s_); });
    ASSERT_TRUE(confirmed) << to_text(confirmed.error());
    shape.confirmed = std::move(*confirmed);
    auto again = how();
    again.windows = confirming_windows(spec_);
    again.objective = spec_.objective;
    const auto weighed = weigh_best_host(
        *shape.confirmed, *shape.searched, spec_.objective,
        [&](std::size_t i) { return measure_host(i, shape.prepared.candidates[i], again); },
        "the row");
    ASSERT_TRUE(weighed) << to_text(weighed.error());
    store(shape);
  }

  // Verification of the record as it is, or changed, under the same name.
  evidence::PartsReport verified(const Json& record) const {
    const FinalistOf finalist = [&](evidence::PartsReport&, evidence::VerifyReport&,
                                    const FinalistPair&) { return paired(latency_s_); };
    const auto out = verify_tune_and_profile(*root_, {file_, id_, record, true}, finalist);
    EXPECT_TRUE(out) << to_text(out.error());
    return out.value_or(evidence::PartsReport{});
  }
  static std::vector<std::string> problems(const evidence::PartsReport& report) {
    std::vector<std::string> out;
    for (const auto& part : report.parts)
      for (const auto& p : part.report.problems) out.push_back(p.where + ": " + p.what);
    return out;
  }
  // One line names both.
  void told(const Json& record, const std::string& where, const std::string& what) const {
    EXPECT_THAT(problems(verified(record)), Contains(AllOf(HasSubstr(where), HasSubstr(what))));
  }
  template <class Change> Json changed(const std::string& pointer, const Change& change) const {
    auto out = record_;
    auto& at = out.at(Json::json_pointer("/shapes/0" + pointer));
    at = change(at);
    return out;
  }
  void change_row(const std::function<void(ProfileRow&)>& change) const {
    auto row = row_;
    change(row);
    Profile profile;
    ASSERT_TRUE(profile.record(row, "the test"));
    std::filesystem::remove(profiles_of(*root_) / "made.json");
    ASSERT_TRUE(write_profile(profiles_of(*root_) / "made.json", profile));
  }

  Json record_;
  TuneSpec spec_;

private:
  PreparedShape prepared() {
    baseline_.compiled.launch.work = kernel::DeclaredWork{{1 << 24}, {1 << 24}, {}};
    PreparedShape out;
    out.spec = &spec_.shapes.front();
    TriedCandidate board;
    board.candidate = {"tiles", "triton.made", {{"block", 16}}};
    board.prepared = Prepared{board.candidate,
                              DeviceCode(std::make_shared<campaign::PreparedCase>(baseline_)),
                              std::string(64, 'a'),
                              {},
                              "3.6.0"};
    out.candidates = {board, tried(code())};
    return out;
  }
  void store(const TunedShape& shape) {
    const TunePlace place{{"GPU-1", "580", "Debian 12", "0.1.0", {}},
                          "Simulated Board",
                          "2026-11-30T04:20:00Z",
                          Provenance::simulated,
                          7};
    auto record = record_of({shape}, spec_, place);
    ASSERT_TRUE(record) << to_text(record.error());
    auto stored = evidence::store_record(*root_, tunes_of(*root_), *record);
    ASSERT_TRUE(stored) << to_text(stored.error());
    id_ = stored->id;
    file_ = stored->file;
    const auto read = evidence::load_record(file_, "hebe.tune/1"); // numbers as a file has them
    ASSERT_TRUE(read) << to_text(read.error());
    record_ = read->json;
    auto row = row_of(shape, spec_, place, id_, "the row");
    ASSERT_TRUE(row) << to_text(row.error());
    row_ = *row;
    std::filesystem::create_directories(profiles_of(*root_));
    change_row([](ProfileRow&) {});
  }

  std::optional<evidence::DataRoot> root_;
  double latency_s_ = 0;
  ProfileRow row_;
  std::string id_;
  std::filesystem::path file_;
};

TEST_F(HostTune, an_honest_record_verifies_where_the_host_wins) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  const auto& finalists = record_.at("shapes").at(0).at("finalists");
  ASSERT_EQ(finalists.at("choice"), 1);
  EXPECT_EQ(finalists.at("host").at("candidate"), 1);
  const auto report = verified(record_);
  EXPECT_THAT(problems(report), IsEmpty());
  EXPECT_TRUE(report.complete);
  EXPECT_THAT(report.parts.back().report.passed, Contains("1 rows held against the tune"));
}

TEST_F(HostTune, an_honest_record_verifies_where_the_host_loses) {
  ASSERT_NO_FATAL_FAILURE(make(kCheap));
  const auto& finalists = record_.at("shapes").at(0).at("finalists");
  ASSERT_EQ(finalists.at("choice"), 0);
  EXPECT_EQ(finalists.at("host").at("candidate"), 1); // its second measurement is kept all the same
  EXPECT_THAT(problems(verified(record_)), IsEmpty());
}

TEST_F(HostTune, an_honest_record_verifies_by_every_objective) {
  ASSERT_NO_FATAL_FAILURE(make(kDear, {{"objective", "edp"}}));
  EXPECT_THAT(problems(verified(record_)), IsEmpty());
  // Nobody is within the bound, so that no host code is measured again.
  ASSERT_NO_FATAL_FAILURE(
      make(kDear, {{"objective", "energy_under_latency"}, {"latency_bound", {{"ratio", 1.05}}}}));
  EXPECT_FALSE(record_.at("shapes").at(0).at("finalists").contains("host"));
  EXPECT_THAT(problems(verified(record_)), IsEmpty());
}

TEST_F(HostTune, the_record_has_what_the_package_counted) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  // By hand: beyond the mean of what it counted doing nothing, a millijoule a thousand counts.
  const auto by_hand = [](const Json& cost) {
    const auto& r = cost.at("readings");
    EXPECT_EQ(r.at("counters").at(0).at("name"), "powercap.intel-rapl.package-0");
    const double unit = r.at("counters").at(0).at("joules_per_count");
    const auto joules = [&](const Json& row) {
      return unit *
             static_cast<double>(row[1][0].get<std::int64_t>() - row[0][0].get<std::int64_t>());
    };
    double idle = 0, energy = 0, seconds = 0, operations = 0;
    for (const auto& row : r.at("idle")) idle += joules(row) / row[2].get<double>() / 2;
    for (const auto& row : r.at("windows")) {
      energy += joules(row);
      seconds += row[2].get<double>();
      operations += row[3].get<double>();
    }
    return (energy - idle * seconds) / operations * 1e9;
  };
  const auto& shape = record_.at("shapes").at(0);
  for (const auto* cost :
       {&shape.at("candidates").at(1).at("cost"), &shape.at("finalists").at("host").at("cost")}) {
    const double nj = cost->at("energy_nj").at("value");
    EXPECT_NEAR(by_hand(*cost), nj, nj * 1e-9);
    EXPECT_NEAR(nj, 60e6, 0.3e6);
  }
}

const auto kMore = [](const Json& j) -> Json { return j.get<std::int64_t>() + 1000; };
const auto kLonger = [](const Json& j) -> Json { return j.get<double>() * 1.001; };

TEST_F(HostTune, a_changed_reading_of_the_host_is_named) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  const std::string candidate = "/candidates/1/cost/readings",
                    again = "/finalists/host/cost/readings";
  for (const auto& [in, at] : {std::pair{candidate, "made/candidates[1]/cost"},
                               std::pair{again, "made/finalists/host/cost"}}) {
    const auto cost = std::string(at);
    told(changed(in + "/windows/0/1/0", kMore), cost + "/energy_nj/value", "recomputed");
    told(changed(in + "/windows/3/0/0", kMore), cost + "/energy_nj/value", "recomputed");
    told(changed(in + "/idle/1/1/0", kMore), cost + "/idle/mean_w", "recomputed");
    told(changed(in + "/idle/0/2", kLonger), cost + "/idle/mean_w", "recomputed");
    told(changed(in + "/windows/2/3", kMore), cost + "/time_ns/value", "recomputed");
    told(changed(in + "/windows/2/2", kLonger), cost + "/energy_nj/value", "recomputed");
    told(changed(in + "/counters/0/joules_per_count", kLonger), cost + "/energy_nj/value",
         "recomputed");
    told(changed(in + "/counters/0/name", [](const Json&) -> Json { return "another"; }),
         cost + "/meter/name", "recomputed \"another\"");
  }
  // A board's win by a host's reading is one by nothing else: the words say it too.
  told(changed(again + "/windows/0/1/0", kMore), "made/finalists/why", "recomputed");
}

TEST_F(HostTune, readings_that_the_hosts_meter_would_not_have_given_are_named) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  const auto swapped = [](Json j) {
    std::swap(j[0], j[1]);
    return j;
  };
  const auto shorter = [](Json j) {
    j.erase(j.size() - 1);
    return j;
  };
  const auto half = [](const Json& j) -> Json { return j.get<double>() / 2; };
  const std::string in = "/candidates/1/cost/readings", again = "/finalists/host/cost/readings";
  told(changed(in + "/windows", swapped), "candidates[1].cost.readings.windows[1]", "before the");
  told(changed(in + "/windows/1", swapped), "cost.readings.windows[1]", "went from");
  told(changed(in + "/windows", shorter), "cost.readings", "recorded 4 windows");
  told(changed(in + "/idle", shorter), "cost.readings", "and 1 idle stretches");
  told(changed(in + "/windows/1/4", half), "cost.readings.windows[1]", "were due");
  told(changed(in + "/windows/1/2", half), "cost.readings.windows[1]", "worked");
  told(changed(in + "/idle/0/2", half), "cost.readings.idle[0]", "were due");
  told(changed(again + "/windows", shorter), "made: finalists.host.cost.readings", "windows");
  told(changed(in + "/counters",
               [](Json j) {
                 j.push_back(j[0]);
                 return j;
               }),
       "cost.readings.idle[0]", "there are 2 counters");
}

TEST_F(HostTune, a_changed_cost_or_state_of_the_host_is_named) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  const auto less = [](const Json& j) -> Json { return j.get<double>() * 0.999; };
  for (const auto* amount : {"/energy_nj/value", "/energy_nj/low", "/time_ns/high",
                             "/objective/value", "/idle/error_w"}) {
    told(changed(std::string("/candidates/1/cost") + amount, less),
         std::string("candidates[1]/cost") + amount, "recomputed");
    told(changed(std::string("/finalists/host/cost") + amount, less),
         std::string("finalists/host/cost") + amount, "recomputed");
  }
  told(changed("/candidates/1/spent_s", less), "candidates[1]/spent_s", "recomputed");
  told(changed("/finalists/host/measured_s", less), "finalists/host/measured_s", "recomputed");
  told(changed("/candidates/1/cost/meter/status", [](const Json&) -> Json { return "primary"; }),
       "candidates[1]/cost/meter/status", "recomputed \"usable\"");
  told(changed("/candidates/1/state", [](const Json&) -> Json { return "failed"; }),
       "finalists.host", "the choice needs none");
  told(changed("/candidates/1/state", [](const Json&) -> Json { return "dropped"; }),
       "candidates[1]/state", "recomputed \"measured\"");
}

TEST_F(HostTune, a_choice_swapped_to_or_from_the_host_is_named) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  told(changed("/finalists/choice", [](const Json&) -> Json { return 0; }), "made/finalists/choice",
       "recorded 0, recomputed 1");
  told(changed("/finalists/is_baseline", [](const Json&) -> Json { return true; }),
       "made/finalists/is_baseline", "recomputed false");
  told(changed("/finalists/why", [](const Json& j) -> Json { return j.get<std::string>() + "!"; }),
       "made/finalists/why", "recomputed");
  ASSERT_NO_FATAL_FAILURE(make(kCheap));
  told(changed("/finalists/choice", [](const Json&) -> Json { return 1; }), "made/finalists/choice",
       "recorded 1, recomputed 0");
}

TEST_F(HostTune, host_code_that_is_left_out_is_named) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  const auto without = [&](const std::string& pointer, const char* key) {
    return changed(pointer, [&](Json j) {
      j.erase(key);
      return j;
    });
  };
  told(without("/candidates/1/cost", "readings"), "made: candidates[1].cost", "has no readings");
  told(changed("/candidates/1/cost", [](const Json&) { return Json(); }),
       "made: candidates[1].cost", "has no readings");
  told(without("/finalists", "host"), "made: finalists.host", "the choice needs candidate 1");
  told(changed("/finalists/host/candidate", [](const Json&) -> Json { return 0; }),
       "made: finalists.host", "recorded candidate 0");
  told(changed("/candidates",
               [](Json j) {
                 j.erase(1);
                 return j;
               }),
       "how many candidates of host", "recorded 0, recomputed 1");
  // Nor is a host's cost what a candidate of the board may have.
  told(changed("/candidates",
               [](Json j) {
                 j[0]["cost"]["meter"] = j[1]["cost"]["meter"];
                 return j;
               }),
       "made/candidates[0]/cost/meter", "there is none");
}

TEST_F(HostTune, a_row_whose_host_cost_differs_is_named) {
  ASSERT_NO_FATAL_FAILURE(make(kDear));
  const auto row_told = [&](const std::function<void(ProfileRow&)>& change, const char* where) {
    ASSERT_NO_FATAL_FAILURE(change_row(change));
    told(record_, where, "recomputed");
  };
  row_told([](auto& r) { r.energy_nj.value += 1; }, "/energy_nj/value");
  row_told([](auto& r) { r.energy_nj.low -= 1000; }, "/energy_nj/low");
  row_told([](auto& r) { r.time_ns.value += 1; }, "/time_ns/value");
  row_told([](auto& r) { r.meter.name = "another"; }, "/meter/name");
  row_told([](auto& r) { r.baseline->meter->name = "another"; }, "/baseline/meter/name");
  change_row([](auto&) {});
  EXPECT_THAT(problems(verified(record_)), IsEmpty());
}

} // namespace
} // namespace hebe::tune
