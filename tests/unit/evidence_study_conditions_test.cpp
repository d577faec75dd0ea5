// Facts about whether a study qualifies: every condition can fail alone, and then says why.
#include "evidence/content_record.hpp"

#include "analysed_study.hpp"

namespace hebe::evidence {
namespace {

TEST(StudyAnalysis, measured_with_every_condition_met_it_qualifies) {
  const auto& s = measured();
  EXPECT_EQ(failing(s), std::vector<std::string>{});
  EXPECT_EQ(s.at("study_qualified"), true);
  EXPECT_EQ(s.at("label"), "research");
  for (const auto& c : s.at("contrasts")) EXPECT_EQ(c.at("qualified"), true);
  EXPECT_EQ(s.at("conditions").size(), 14U);
  EXPECT_TRUE(has(evidence_of(s, "stable platform"), "board.driver \"board.driver as it is\""));
}

TEST(StudyAnalysis, resumed_in_the_same_boot_it_qualifies_and_tells_the_leases) {
  const auto s = changed(test::as_measured(),
                         [](MadeStudy& m) { set_fact(m.of("control"), "run.lease", "process 9"); });
  EXPECT_EQ(s.at("study_qualified"), true);
  EXPECT_EQ(s.at("platform").at("leases"), 2);
}

TEST(StudyAnalysis, a_reboot_between_jobs_unqualifies_the_study) {
  const auto s = changed(test::as_measured(), [](MadeStudy& m) {
    set_fact(m.of("control"), "host.boot_id", "another");
  });
  EXPECT_EQ(s.at("study_qualified"), false);
  EXPECT_EQ(failing(s), std::vector<std::string>{"one boot session"});
  EXPECT_EQ(evidence_of(s, "one boot session"),
            "host.boot_id \"host.boot_id as it is\" in aa, primary, 16384x8192.hoisted and "
            "\"another\" in control");
  for (const auto& c : s.at("contrasts")) EXPECT_EQ(c.at("qualified"), false);
}

TEST(StudyAnalysis, an_identity_that_nobody_knows_is_not_the_same) {
  for (const auto& [fact, condition] :
       {std::pair("host.boot_id", "one boot session"), std::pair("device.uuid", "one board")}) {
    const auto s = changed(test::as_measured(), [&, f = fact](MadeStudy& m) {
      m.each([&](Documents& d) { set_fact(d, f, nullptr); });
    });
    EXPECT_EQ(failing(s), std::vector<std::string>{condition});
    EXPECT_TRUE(has(evidence_of(s, condition), "not known"));
  }
}

TEST(StudyAnalysis, every_fact_of_the_platform_has_to_be_equal) {
  for (const char* fact :
       {"device.name", "device.cuda_driver", "board.driver", "board.vbios", "board.power_limit_w",
        "board.ecc_mode", "board.mig_enabled", "board.persistence_mode", "board.compute_mode",
        "board.clock_sm_application_mhz", "board.clock_memory_application_mhz", "host.kernel",
        "hebe.version", "hebe.git", "meter.primary", "meter.cross_check", "meter.qualification"}) {
    const auto s = changed(test::as_measured(),
                           [&](MadeStudy& m) { set_fact(m.of(kSecond), fact, "another"); });
    EXPECT_EQ(failing(s), std::vector<std::string>{"stable platform"}) << fact;
    const auto said = evidence_of(s, "stable platform");
    EXPECT_EQ(said.find(std::string("differs: ") + fact + " "), 0U) << said;
    EXPECT_TRUE(has(said, "\"another\" in 16384x8192.hoisted")) << said;
  }
  // Known in one run and not in the others.
  const auto s = changed(test::as_measured(),
                         [](MadeStudy& m) { set_fact(m.of("aa"), "board.vbios", nullptr); });
  EXPECT_EQ(failing(s), std::vector<std::string>{"stable platform"});
  EXPECT_TRUE(has(evidence_of(s, "stable platform"), "board.vbios not known in aa and"));
}

struct Break {
  std::vector<std::string> conditions;
  const char* evidence;
  std::function<void(MadeStudy&)> change;
};

TEST(StudyAnalysis, each_condition_broken_alone_unqualifies_it_and_says_why) {
  const std::string tier = "tier is confirmation-v1", protocol = "same acquisition protocol",
                    aa = "A/A equivalent in energy and latency",
                    cubins = "every measured cubin is the qualified one",
                    passed = "qualification passed on a GPU and knows no energy",
                    bits = "outputs of both arms have equal bits where the qualification says so";
  const auto smoke = measure::to_json(measure::tier_named("smoke-v1").value());
  const auto run_fails = [](const char* job) {
    return [job](MadeStudy& m) {
      auto& a = m.of(job).analysis;
      a["qualified"] = false;
      a["conditions"][2] = {{"name", "warm-up settled"}, {"holds", false}, {"evidence", "3.0 s"}};
    };
  };
  const Break table[] = {
      {{tier, protocol},
       "aa smoke-v1, primary confirmation-v1, control confirmation-v1",
       [&](MadeStudy& m) { m.of("aa").plan["tier"] = smoke; }},
      {{tier, protocol},
       "primary smoke-v1",
       [&](MadeStudy& m) { m.of("primary").plan["tier"] = smoke; }},
      {{tier, protocol},
       "control smoke-v1",
       [&](MadeStudy& m) { m.of("control").plan["tier"] = smoke; }},
      {{"provenance is measured"},
       "all 5 runs are simulated",
       [](MadeStudy& m) {
         m.each([](Documents& d) { d.acquisition["provenance"] = "simulated"; });
       }},
      {{aa},
       "inconclusive",
       [](MadeStudy& m) { m.of("aa").analysis["energy"]["verdict"] = "inconclusive"; }},
      {{aa}, "higher", [](MadeStudy& m) { m.of("aa").analysis["latency"]["verdict"] = "higher"; }},
      {{"A/A run qualified"}, "not: warm-up settled (3.0 s)", run_fails("aa")},
      {{"control's run qualified"}, "control: verdict higher", run_fails("control")},
      {{"primary's run qualified: every gate passed"},
       "not: warm-up settled",
       run_fails("primary")},
      {{"control seen"},
       "predicted",
       [](MadeStudy& m) { m.of("control").analysis["control"]["seen"] = false; }},
      {{"one board"},
       "\"another\" in primary",
       [](MadeStudy& m) { set_fact(m.of("primary"), "device.uuid", "another"); }},
      {{protocol}, "differs: window_s", [](MadeStudy& m) { m.of("control").plan["window_s"] = 9; }},
      {{protocol}, "differs: warm_up_s", [](MadeStudy& m) { m.of("aa").plan["warm_up_s"] = 9; }},
      {{protocol},
       "differs: analysis",
       [](MadeStudy& m) { m.of(kSecond).plan["analysis"]["resamples"] = 101; }},
      {{protocol},
       "differs: tier",
       [](MadeStudy& m) { m.of("primary").plan["tier"]["max_attempts"] = 99; }},
      {{protocol},
       "differs: primary source",
       [](MadeStudy& m) { m.of("aa").acquisition["primary"]["field"] = "another"; }},
      {{protocol},
       "differs: cross_check source",
       [](MadeStudy& m) { m.of("aa").acquisition["cross_check"]["field"] = "another"; }},
      {{protocol},
       "differs: response record",
       [](MadeStudy& m) {
         m.of("control").acquisition["meter"]["response"]["id"] = std::string(64, '8');
       }},
      {{protocol},
       "response record \"7777",
       [](MadeStudy& m) { m.of("control").acquisition["meter"].erase("response"); }},
      {{cubins},
       "aa arm A (baseline at 2048x8192): measured cccc",
       [](MadeStudy& m) { m.of("aa").plan["arms"]["A"]["cubin_sha256"] = std::string(64, 'c'); }},
      {{cubins},
       "primary arm B (hoisted at 2048x8192): measured aaaa",
       [](MadeStudy& m) {
         m.of("primary").plan["arms"]["B"]["cubin_sha256"] = std::string(64, 'a');
       }},
      {{cubins},
       "16384x8192.hoisted arm B (hoisted at 16384x8192): measured bbbb",
       [](MadeStudy& m) {
         m.record["points"][1]["candidates"][0]["artifacts"]["cubin"] = std::string(64, 'd');
       }},
      {{cubins},
       "qualified none",
       [](MadeStudy& m) { m.record["points"][1]["baseline"]["artifacts"] = nullptr; }},
      {{passed},
       "not qualified, provenance gpu",
       [](MadeStudy& m) { m.record["qualified"] = false; }},
      {{passed},
       "provenance simulated",
       [](MadeStudy& m) { m.record["provenance"] = "simulated"; }},
      {{passed},
       "hoisted at 2048x8192 is not qualified: [\"spills\"]",
       [](MadeStudy& m) {
         auto& v = m.record["points"][0]["candidates"][0];
         v["qualified"] = false;
         v["failed"] = {"spills"};
       }},
      {{passed},
       "16384x8192.hoisted is not eligible: too wide",
       [](MadeStudy& m) {
         auto& row = m.record["measurement_cases"]["cases"][1];
         row["eligible"] = false;
         row["why_not"] = "too wide";
       }},
      {{bits},
       "primary: out_ptr: different bits",
       [](MadeStudy& m) {
         m.of("primary").acquisition["check"]["B_against_A"] = {{"out_ptr", "different bits"}};
       }},
      {{bits},
       "16384x8192.hoisted: out_ptr: \"0000",
       [](MadeStudy& m) {
         m.of(kSecond).acquisition["check"]["B"]["out_ptr"]["sha256"] = std::string(64, '1');
       }},
      {{bits},
       "16384x8192.hoisted: out_ptr: equal bits, out_ptr: \"0000",
       [](MadeStudy& m) {
         auto& check = m.of(kSecond).acquisition["check"];
         check["B_against_A"] = {{"out_ptr", "equal bits"}};
         check["B"]["out_ptr"]["sha256"] = std::string(64, '1');
       }},
      {{bits},
       "primary: not known",
       [](MadeStudy& m) { m.of("primary").acquisition["check"] = Json::object(); }},
  };
  for (const auto& [conditions, evidence, change] : table) {
    const auto s = changed(test::as_measured(), change);
    ASSERT_FALSE(s.is_null()) << evidence;
    EXPECT_EQ(s.at("study_qualified"), false) << evidence;
    EXPECT_EQ(failing(s), conditions) << evidence;
    std::string said;
    for (const auto& c : conditions) said += evidence_of(s, c) + "\n";
    EXPECT_TRUE(has(said, evidence)) << said;
    EXPECT_EQ(s.at("contrasts")[0].at("qualified"), false) << evidence;
    // The primary's own run is the only thing that another contrast does not share.
    EXPECT_EQ(s.at("contrasts")[1].at("qualified"), conditions[0].starts_with("primary's run"));
  }
}

TEST(StudyAnalysis, what_is_no_condition_does_not_unqualify) {
  const auto s = changed(test::as_measured(), [](MadeStudy& m) {
    auto& floor = m.of("floor");
    floor.plan["tier"] = measure::to_json(measure::tier_named("smoke-v1").value());
    floor.plan["window_s"] = 9;
    floor.analysis["qualified"] = floor.analysis["claim_holds"] = false;
    set_fact(floor, "host.boot_id", "another");
    m.of("control").analysis["pairs"].erase(0);
    m.of("primary").plan["qualification"]["equal_bits"] = false;
    m.of("primary").acquisition["check"] = Json::object();
  });
  EXPECT_EQ(failing(s), std::vector<std::string>{});
  EXPECT_EQ(s.at("floor").at("tier"), "smoke-v1");
}

TEST(StudyAnalysis, a_contrasts_own_run_unqualifies_it_alone) {
  const auto s = changed(test::as_measured(),
                         [](MadeStudy& m) { m.of(kSecond).analysis["qualified"] = false; });
  EXPECT_EQ(s.at("study_qualified"), true);
  EXPECT_EQ(s.at("contrasts")[0].at("qualified"), true);
  EXPECT_EQ(s.at("contrasts")[1].at("run_qualified"), false);
  EXPECT_EQ(s.at("contrasts")[1].at("qualified"), false);
}

} // namespace
} // namespace hebe::evidence
