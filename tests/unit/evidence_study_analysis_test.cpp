// Facts about a study's analysis: what it says follows from its runs and its qualification, every
// condition of study_qualified can fail alone and then says why, and what is not the study's is
// refused.
#include "evidence/analysis_store.hpp"
#include "evidence/content_record.hpp"
#include "evidence/study_analysis.hpp"
#include "evidence/study_words.hpp"

#include "measure/multiplicity.hpp"

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"
#include "../data/support/sealed_study.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;
using test::Documents;
using test::MadeStudy;

constexpr const char* kSecond = "16384x8192.hoisted";

Result<Json> analysed(const MadeStudy& s, const DataRoot& root) {
  return study_analysis("spring", s.study, s.record, s.sealed(root));
}
Result<Json> analysed(const MadeStudy& s) {
  const test::ScratchFolder folder;
  return analysed(s, DataRoot(folder.path()));
}
Json changed(MadeStudy s, const std::function<void(MadeStudy&)>& change) {
  change(s);
  s.name_record();
  auto result = analysed(s);
  EXPECT_TRUE(result) << (result ? "" : to_text(result.error()));
  return result ? *result : Json();
}

std::string evidence_of(const Json& analysis, const std::string& condition) {
  for (const auto& c : analysis.at("conditions"))
    if (c.at("name") == condition) return c.at("evidence");
  return "no such condition";
}
std::vector<std::string> failing(const Json& analysis) {
  std::vector<std::string> out;
  for (const auto& c : analysis.at("conditions"))
    if (!c.at("holds").get<bool>()) out.push_back(c.at("name"));
  return out;
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string joined(const Json& words) {
  std::string out;
  for (const auto& w : words) out += w.get<std::string>() + "\n";
  return out;
}

// Studies that many facts look at.
const Json& simulated() {
  static const auto json = analysed(test::made_study()).value();
  return json;
}
const Json& measured() {
  static const auto json = analysed(test::as_measured()).value();
  return json;
}

// --- what it says
// ---------------------------------------------------------------------------------

TEST(StudyAnalysis, it_says_what_its_runs_say) {
  const auto& s = simulated();
  const auto& run = test::study_contrast_parts().analysis.json;
  ASSERT_EQ(s.at("contrasts").size(), 2U);
  const auto& primary = s.at("contrasts")[0];
  EXPECT_EQ(primary.at("role"), "primary");
  EXPECT_EQ(primary.at("point"), "2048x8192");
  EXPECT_EQ(primary.at("b"), "hoisted");
  for (const char* quantity : {"energy", "latency", "power"}) {
    EXPECT_EQ(primary.at(quantity).at("effect_percent"), run.at(quantity).at("effect_percent"));
    EXPECT_EQ(primary.at(quantity).at("verdict"), run.at(quantity).at("verdict"));
  }
  const auto& e = primary.at("energy");
  EXPECT_EQ(e.at("interval"), "bca");
  EXPECT_EQ(e.at("low_percent"), run.at("energy").at("interval_bca").at("low_percent"));
  EXPECT_NEAR(e.at("half_width_percent").get<double>() * 2,
              e.at("high_percent").get<double>() - e.at("low_percent").get<double>(), 1e-12);
  EXPECT_EQ(primary.at("arms").at("B").at("energy_per_launch_j"),
            run.at("arms").at("B").at("energy_per_launch_j"));
  EXPECT_EQ(s.at("verdict"), "lower");
  EXPECT_EQ(s.at("aa").at("verdict"), "equivalent");
  EXPECT_EQ(s.at("control").at("seen"), true);
  EXPECT_EQ(s.at("control").at("fraction"), 1);
  EXPECT_EQ(s.at("claim_holds"), true);
  EXPECT_EQ(s.at("floor").at("case"), "vector_add");
  EXPECT_EQ(s.at("platform").at("board"), "Hebe simulated GPU (H200-like)");
  EXPECT_TRUE(s.at("platform").at("leases").is_null());
  EXPECT_EQ(measured().at("platform").at("boot_id"), "host.boot_id as it is");
  EXPECT_EQ(measured().at("platform").at("device_uuid"), "device.uuid as it is");
  EXPECT_EQ(measured().at("platform").at("leases"), 1);
}

TEST(StudyAnalysis, a_simulated_smoke_study_never_qualifies_and_says_so) {
  const auto& s = simulated();
  EXPECT_EQ(s.at("label"), "smoke: checks the plumbing, never evidence");
  EXPECT_EQ(s.at("provenance"), "simulated");
  EXPECT_EQ(s.at("study_qualified"), false);
  EXPECT_EQ(failing(s),
            (std::vector<std::string>{
                "tier is confirmation-v1", "provenance is measured", "A/A run qualified",
                "control's run qualified", "primary's run qualified: every gate passed",
                "one boot session", "qualification passed on a GPU and knows no energy"}));
  EXPECT_EQ(evidence_of(s, "one boot session").find("host.boot_id not known"), 0U);
  EXPECT_EQ(evidence_of(s, "tier is confirmation-v1"),
            "aa smoke-v1, primary smoke-v1, control smoke-v1");
}

TEST(StudyAnalysis, p_values_of_the_contrasts_alone_are_adjusted) {
  const auto s = changed(test::as_measured(), [](MadeStudy& m) {
    m.of("primary").analysis["energy"]["sign_flip"]["p"] = 0.04;
    m.of(kSecond).analysis["energy"]["sign_flip"]["p"] = 0.03;
    m.of("aa").analysis["energy"]["sign_flip"]["p"] = 1e-9;
    m.of("control").analysis["energy"]["sign_flip"]["p"] = 1e-9;
  });
  const auto due = measure::holm(std::vector<double>{0.04, 0.03}).value();
  EXPECT_EQ(s.at("contrasts")[0].at("energy_p"), 0.04);
  EXPECT_EQ(s.at("contrasts")[0].at("energy_p_holm"), due[0]);
  EXPECT_EQ(s.at("contrasts")[1].at("energy_p_holm"), due[1]);
}

TEST(StudyAnalysis, the_claim_needs_the_aa_and_the_control) {
  for (const char* job : {"primary", "aa"})
    EXPECT_EQ(changed(test::as_measured(),
                      [&](MadeStudy& m) { m.of(job).analysis["claim_holds"] = false; })
                  .at("claim_holds"),
              false)
        << job;
  EXPECT_EQ(changed(test::as_measured(),
                    [](MadeStudy& m) { m.of("control").analysis["control"]["seen"] = false; })
                .at("claim_holds"),
            false);
  const auto without = changed(test::as_measured(), [](MadeStudy& m) {
    m.drop("control");
    m.study["calibration"] = nullptr;
  });
  EXPECT_EQ(without.at("claim_holds"), true);
  EXPECT_TRUE(without.at("control").is_null());
  EXPECT_EQ(failing(without),
            (std::vector<std::string>{"control seen", "control's run qualified"}));
}

// --- whether it qualifies
// -------------------------------------------------------------------------

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

// --- what is refused
// ------------------------------------------------------------------------------

TEST(StudyAnalysis, a_run_that_is_not_the_studys_is_refused_by_run_and_job) {
  const std::pair<const char*, std::function<void(MadeStudy&)>> table[] = {
      {"is of kind aa, not ab", [](MadeStudy& m) { m.of("primary") = m.of("aa"); }},
      {"is of kind ab, not positive_control",
       [](MadeStudy& m) { m.of("control") = m.of("primary"); }},
      {"is of kind ab, not aa", [](MadeStudy& m) { m.of("floor") = m.of("primary"); }},
      {"names no qualification", [](MadeStudy& m) { m.of("aa").plan.erase("qualification"); }},
      {"names no qualification", [](MadeStudy& m) { m.of(kSecond).plan.erase("qualification"); }},
      {"a qualification of record",
       [](MadeStudy& m) {
         m.of("primary").plan["qualification"]["record"] = std::string(64, '9');
       }},
      {"a qualification of name",
       [](MadeStudy& m) { m.of("primary").plan["qualification"]["name"] = "another"; }},
      {"a qualification of provenance",
       [](MadeStudy& m) { m.of("primary").plan["qualification"]["provenance"] = "gpu"; }},
      {"names \"hoisted\" at \"1x1\"",
       [](MadeStudy& m) {
         for (const char* job : {"aa", "primary"}) m.of(job).plan["qualification"]["point"] = "1x1";
         m.record["points"][0]["name"] = "2x2";
         m.record["points"].push_back(m.record["points"][0]);
         m.record["points"][2]["name"] = "1x1";
         m.record["points"][2]["candidates"] = Json::array();
         m.name_record();
       }},
      {"names \"another\"",
       [](MadeStudy& m) { m.of("primary").plan["qualification"]["b"] = "another"; }},
      {"not of the primary's \"baseline\" against itself",
       [](MadeStudy& m) { m.of("aa").plan["qualification"]["b"] = "hoisted"; }},
      {"not of the primary's \"baseline\" against itself",
       [](MadeStudy& m) { m.of("aa").plan["qualification"]["point"] = "16384x8192"; }},
      {"against itself",
       [](MadeStudy& m) { m.of(kSecond).plan["qualification"]["b"] = "baseline"; }},
      {"another job's contrast",
       [](MadeStudy& m) { m.of(kSecond).plan["qualification"]["point"] = "2048x8192"; }},
      {"the study's calibration is", [](MadeStudy& m) { m.study["calibration"]["run_id"] = "x"; }},
      {"the study's calibration is null", [](MadeStudy& m) { m.study["calibration"] = nullptr; }},
      {"is measured, that of job aa is simulated",
       [](MadeStudy& m) { m.of("floor").acquisition["provenance"] = "measured"; }},
  };
  for (const auto& [what, change] : table) {
    auto s = test::made_study();
    change(s);
    const auto result = analysed(s);
    ASSERT_FALSE(result) << what;
    EXPECT_EQ(result.error().code, RefusalCode::bad_argument) << result.error().what;
    EXPECT_TRUE(has(result.error().what, what)) << what << ": " << result.error().what;
    EXPECT_TRUE(has(result.error().what, "run 20260921T")) << result.error().what;
    EXPECT_EQ(result.error().what.find("job "), 0U) << result.error().what;
  }
}

TEST(StudyAnalysis, jobs_that_are_not_the_studys_are_refused) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto s = test::made_study();
  const auto jobs = s.sealed(root);
  const auto refused = [&](const char* campaign, auto list) {
    return study_analysis(campaign, s.study, s.record, list).error();
  };
  auto fewer = jobs, swapped = jobs, twice = jobs, renamed = jobs, exchanged = jobs;
  fewer.pop_back();
  std::swap(swapped[1], swapped[2]);
  twice.push_back(twice.front());
  renamed[3].first = "x";
  std::swap(exchanged[1].second, exchanged[2].second); // both are contrasts
  for (const auto& list : {fewer, swapped, renamed, decltype(jobs){}})
    EXPECT_TRUE(
        has(refused("spring", list).what, "the study's are aa, primary, 16384x8192.hoisted"));
  EXPECT_EQ(refused("spring", twice).what, "job aa is named twice");
  EXPECT_TRUE(has(refused("spring", exchanged).what, "job primary (primary): run "));
  EXPECT_TRUE(has(refused("autumn", jobs).what, "is of campaign \"spring\", job \"aa\""));
  for (const auto& list : {fewer, swapped, twice, exchanged})
    EXPECT_EQ(refused("spring", list).code, RefusalCode::bad_argument);
  auto gone = jobs;
  gone[0].second = folder / "none";
  EXPECT_EQ(refused("spring", gone).code, RefusalCode::not_found);
}

TEST(StudyAnalysis, a_study_or_a_record_that_is_none_is_refused) {
  const test::ScratchFolder folder;
  const auto s = test::made_study();
  const auto jobs = s.sealed(DataRoot(folder.path()));
  auto other = s.record, broken = s.record, energetic = s.record;
  other["name"] = "another";
  broken.erase("points");
  energetic["energy_labels"] = "0.1 J";
  EXPECT_EQ(study_analysis("spring", s.study, other, jobs).error().code, RefusalCode::bad_argument);
  auto misnamed = s.study;
  misnamed["qualification_name"] = "another";
  EXPECT_EQ(study_analysis("spring", misnamed, s.record, jobs).error().what,
            "the qualification is \"layernorm-reintegration\", the study calls it \"another\"");
  for (const auto& record : {broken, energetic, Json()})
    EXPECT_EQ(study_analysis("spring", s.study, record, jobs).error().code,
              RefusalCode::bad_schema);
  const auto with_roles = [&](std::initializer_list<const char*> roles) {
    auto study = s.study;
    study["jobs"] = Json::array();
    for (const char* role : roles)
      study["jobs"].push_back({{"job", std::to_string(study["jobs"].size())}, {"role", role}});
    return study;
  };
  auto unnamed = s.study, repeated = s.study;
  unnamed.erase("jobs");
  repeated["jobs"][4]["job"] = "aa";
  for (const auto& study :
       {Json(), Json::object(), unnamed, repeated, with_roles({}), with_roles({"aa"}),
        with_roles({"primary", "aa"}), with_roles({"aa", "aa", "primary"}),
        with_roles({"aa", "primary", "floor", "control"}), with_roles({"aa", "primary", "other"})})
    EXPECT_EQ(study_analysis("spring", study, s.record, jobs).error().code, RefusalCode::bad_schema)
        << study.dump();
}

// --- arms
// -----------------------------------------------------------------------------------------

Json arm(const Json& study, const char* which = "A") {
  return study.at("contrasts")[0].at("arms").at(which);
}

TEST(StudyAnalysis, an_arms_energy_is_what_the_idle_board_would_draw_and_the_rest) {
  const auto a = arm(simulated());
  const auto& split = a.at("split");
  ASSERT_FALSE(split.contains("unavailable")) << split.dump();
  EXPECT_NEAR(split.at("idle_w").get<double>(), 125, 1); // the model's board with a context
  const double energy = a.at("energy_per_launch_j"), idle = split.at("idle_j");
  EXPECT_DOUBLE_EQ(idle, split.at("idle_w").get<double>() * a.at("latency_s").get<double>());
  EXPECT_DOUBLE_EQ(split.at("active_j").get<double>(), energy - idle);
  EXPECT_DOUBLE_EQ(split.at("idle_share_ratio").get<double>(), idle / energy);
}

// The checks' own work at its beginning, and the load at its end, are not taken for idleness.
TEST(StudyAnalysis, idleness_is_read_from_0_45_to_0_1_s_before_the_first_launch) {
  const auto& parts = test::study_contrast_parts();
  const auto& warm_up = parts.acquisition.warm_up;
  const auto begin = warm_up.blocks.back().end_ns - to_nanos(warm_up.duration).count();
  const auto s = changed(test::made_study(), [&](MadeStudy& m) {
    auto samples = parts.samples;
    for (auto& x : samples) {
      const auto before = begin - x.t_mono_ns;
      x.raw_mw = before >= 100'000'000 && before <= 450'000'000 ? 100'000 : 600'000;
    }
    m.of("primary").telemetry =
        telemetry_parquet(samples, parts.windows, parts.acquisition).value();
  });
  EXPECT_DOUBLE_EQ(arm(s).at("split").at("idle_w").get<double>(), 100);
}

TEST(StudyAnalysis, an_idle_share_that_cannot_be_told_says_why) {
  const auto few = changed(test::made_study(), [](MadeStudy& m) {
    const auto& parts = test::study_contrast_parts();
    auto samples = parts.samples;
    const auto& warm_up = parts.acquisition.warm_up;
    const auto begin = warm_up.blocks.back().end_ns - to_nanos(warm_up.duration).count();
    std::erase_if(samples, [&](auto& s) { return s.t_mono_ns < begin - 150'000'000; });
    m.of("primary").telemetry =
        telemetry_parquet(samples, parts.windows, parts.acquisition).value();
  });
  EXPECT_TRUE(has(arm(few).at("split").at("unavailable"), "samples before the first launch, 5"))
      << arm(few).dump();
  const auto low = changed(test::made_study(), [](MadeStudy& m) {
    m.of("primary").analysis["arms"]["A"]["power_w"] = 80;
  });
  EXPECT_TRUE(has(arm(low).at("split").at("unavailable"), "the arm 80.0 W"));
  EXPECT_FALSE(arm(low, "B").at("split").contains("unavailable"));
}

TEST(StudyAnalysis, clocks_and_limits_are_those_of_the_arms_accepted_windows) {
  const auto s = changed(test::made_study(), [](MadeStudy& m) {
    int number = 0;
    for (auto& w : m.of("primary").windows) {
      const bool a = w["arm"] == "A";
      for (const char* edge : {"begin", "end"}) {
        w[edge]["sm_clock_mhz"] = a ? (edge == std::string("begin") ? "1700" : "1800") : "1980";
        for (const char* side : {"before_ns", "after_ns"}) // one second from read to read
          w[edge][side] = edge == std::string("begin") ? 1'000'000'000 : 2'000'000'000;
        w[edge]["memory_clock_mhz"] = Json{{"unavailable", "test"}};
      }
      w["end"]["power_cap_ns"] =
          w["begin"]["power_cap_ns"].get<std::int64_t>() + (a ? 980'000'000 : 120'000'000);
      if (!a) w["end"]["thermal_ns"] = 250'000'000;
      if (a) w["end"]["sync_ns"] = Json{{"unavailable", "test"}};
      if (number++ < 2) { // a pair that failed counts for nothing
        w["pair_accepted"] = false;
        w["begin"]["sm_clock_mhz"] = 1;
        w["end"]["power_cap_ns"] = 0;
      }
    }
  });
  EXPECT_EQ(arm(s).at("sm_clock_mhz"), 1750);
  EXPECT_EQ(arm(s, "B").at("sm_clock_mhz"), 1980);
  EXPECT_TRUE(arm(s).at("memory_clock_mhz").is_null());
  EXPECT_NEAR(arm(s).at("power_capped_ratio").get<double>(), 0.98, 1e-9);
  EXPECT_NEAR(arm(s, "B").at("power_capped_ratio").get<double>(), 0.12, 1e-9);
  EXPECT_TRUE(arm(s).at("throttled_ratio").is_null()) << "one of its counters was never read";
  EXPECT_NEAR(arm(s, "B").at("throttled_ratio").get<double>(), 0.25, 1e-9);
  const auto words = joined(s.at("contrasts")[0].at("words"));
  EXPECT_TRUE(has(words, "at its power limit for 98 % of baseline's time and 12 % of hoisted's"))
      << words;
  EXPECT_TRUE(has(words, "held down for another reason for 0 % of baseline's time and 25 %"))
      << words;
}

TEST(StudyAnalysis, the_floor_is_a_copy_of_the_same_bytes) {
  const auto a = arm(simulated());
  const auto& f = a.at("floor");
  const auto& copy = simulated().at("floor");
  EXPECT_NEAR(copy.at("bytes").get<double>(), 1e8, 2); // as many as the kernels have to move
  EXPECT_EQ(f.at("provenance"), "simulated");
  EXPECT_EQ(f.at("floor_energy_j"), copy.at("energy_per_launch_j"));
  EXPECT_DOUBLE_EQ(f.at("energy_ratio").get<double>(),
                   a.at("energy_per_launch_j").get<double>() /
                       copy.at("energy_per_launch_j").get<double>());
  EXPECT_DOUBLE_EQ(f.at("time_ratio").get<double>(),
                   a.at("latency_s").get<double>() / copy.at("latency_s").get<double>());
  EXPECT_TRUE(has(f.at("how"), "job floor's arm A, vector_add")) << f.dump();
  EXPECT_EQ(arm(measured()).at("floor").at("provenance"), "measured");
}

TEST(StudyAnalysis, a_copy_of_other_bytes_is_scaled_from_the_control_and_called_estimated) {
  const auto& control = test::study_control_parts().analysis.json.at("arms").at("A");
  // Counted at a launch of an eighth of the programs: eight times 1e8 bytes have to move here.
  const auto s = changed(test::as_measured(), [](MadeStudy& m) {
    auto& bytes = m.of("primary").plan["subject"]["mechanism"]["bytes"];
    bytes["counted_at"] = {{"m", 256}};
    bytes["programs"] = 2048;
    bytes["programs_counted"] = 256;
  });
  const auto f = arm(s).at("floor");
  EXPECT_EQ(f.at("provenance"), "estimated");
  EXPECT_NEAR(f.at("floor_energy_j").get<double>(),
              control.at("energy_per_launch_j").get<double>() * 4, 1e-9);
  EXPECT_TRUE(has(f.at("how"), "the control's arm A, ")) << f.dump();
  EXPECT_TRUE(has(f.at("how"), "scaled by bytes: linear only where both exceed the L2"));
  EXPECT_TRUE(has(f.at("how"), "scaled by its programs"));
  EXPECT_EQ(arm(s, "B").at("floor").at("provenance"), "measured");
  EXPECT_TRUE(has(joined(s.at("contrasts")[0].at("words")), "scaled from a smaller launch"));
  const auto none = changed(test::made_study(), [](MadeStudy& m) {
    m.drop("control");
    m.drop("floor");
    m.study["calibration"] = nullptr;
  });
  EXPECT_TRUE(has(arm(none).at("floor").at("unavailable"), "neither a floor job nor a control"));
  EXPECT_TRUE(none.at("floor").is_null());
}

TEST(StudyAnalysis, bytes_that_nobody_counted_are_those_declared) {
  const auto s = changed(test::made_study(), [](MadeStudy& m) {
    m.of("primary").plan["subject"]["mechanism"]["bytes"] = nullptr;
    m.of("primary").plan["subject_b"].erase("mechanism");
  });
  EXPECT_TRUE(has(arm(s).at("floor").at("how"), "bytes that the launch declares"));
  EXPECT_EQ(arm(s, "B").at("floor").at("provenance"), "estimated") << "6 % fewer bytes";
  EXPECT_TRUE(arm(s, "B").at("mechanism").is_null());
  EXPECT_TRUE(has(joined(s.at("contrasts")[0].at("words")), "not in the plan"));
}

// --- words
// ----------------------------------------------------------------------------------------

// A contrast with these effects; its run is the measured primary's.
class StudyWords : public testing::Test {
protected:
  static const StoredRun& run() {
    static const auto stored = [] {
      const test::ScratchFolder folder;
      return read_stored_run(test::as_measured().sealed(DataRoot(folder.path()))[1].second).value();
    }();
    return stored;
  }
  Json contrast = measured().at("contrasts")[0];

  StudyWords() {
    set("energy", "lower", -5.71, -5.77, -5.65);
    set("latency", "lower", -1.4, -1.45, -1.35);
    set("power", "lower", -4.4, -4.5, -4.3);
  }
  void set(const char* quantity, const char* verdict, double effect, double low, double high) {
    auto& e = contrast[quantity];
    e["verdict"] = verdict;
    e["effect_percent"] = effect;
    e["low_percent"] = low;
    e["high_percent"] = high;
    if (quantity == std::string("energy")) contrast["verdict"] = verdict;
  }
  void capped(Json a, Json b) {
    contrast["arms"]["A"]["power_capped_ratio"] = std::move(a);
    contrast["arms"]["B"]["power_capped_ratio"] = std::move(b);
  }
  std::vector<std::string> words() const { return study_words(contrast, run()); }
  std::string text() const { return joined(Json(words())); }
};

TEST_F(StudyWords, an_effect_has_its_numbers_and_its_interval) {
  EXPECT_EQ(words()[0],
            "hoisted costs 5.710 % less energy a launch than baseline (5.650 to 5.770 % less, "
            "95 % interval) and takes 1.4 % less time; power falls by 4.4 %.");
  set("energy", "higher", 123.4, 120, 130);
  set("latency", "higher", 0.5, 0.4, 0.6);
  set("power", "equivalent", 0.02, -0.1, 0.1);
  EXPECT_EQ(words()[0],
            "hoisted costs 123.4 % more energy a launch than baseline (120.0 to 130.0 % more, 95 % "
            "interval) and takes 0.5 % more time; power is the same within 0.5 % (+0.02 %).");
}

TEST_F(StudyWords, what_is_not_decided_is_not_told_as_an_effect) {
  set("energy", "inconclusive", -0.3, -0.9, 0.2);
  set("latency", "inconclusive", 0.1, -0.5, 0.6);
  set("power", "inconclusive", 0, -1, 1);
  EXPECT_EQ(
      words()[0],
      "Whether hoisted costs more or less energy a launch than baseline is not decided: -0.30 % "
      "(-0.90 to +0.20 %, 95 % interval). It takes a time that is not decided: +0.10 % (-0.50 to "
      "+0.60 %, 95 % interval); power is not decided: +0.0 % (-1.0 to +1.0 %, 95 % interval).");
  EXPECT_FALSE(has(text(), "do not go together"));
  set("energy", "equivalent", 0.02, -0.01, 0.05);
  set("latency", "equivalent", 0.01, -0.01, 0.03);
  EXPECT_EQ(
      words()[0].find("hoisted and baseline cost the same energy a launch within 0.5 %: +0.020 % "
                      "(-0.010 to +0.050 %, 95 % interval). hoisted takes the same time within "
                      "0.25 % (+0.01 %)"),
      0U)
      << words()[0];
  contrast["verdict"] = "invalid";
  contrast["reason"] = "order effect or trend: x";
  EXPECT_EQ(words()[0],
            "Nothing can be said of hoisted against baseline: the run is invalid (order "
            "effect or trend: x).");
}

TEST_F(StudyWords, energy_and_time_that_do_not_go_together_are_told_with_power_and_clocks) {
  contrast["arms"]["A"]["sm_clock_mhz"] = 1755;
  contrast["arms"]["B"]["sm_clock_mhz"] = 1980;
  EXPECT_FALSE(has(text(), "do not go together"));
  const std::tuple<const char*, const char*, const char*> table[] = {
      {"lower", "higher", "energy falls and time rises"},
      {"higher", "lower", "energy rises and time falls"},
      {"lower", "equivalent", "energy falls and time stays"},
      {"equivalent", "higher", "energy stays and time rises"}};
  for (const auto& [energy, latency, said] : table) {
    set("energy", energy, -5, -6, -4);
    set("latency", latency, 3, 2, 4);
    capped(0, 0);
    EXPECT_TRUE(has(text(), said)) << text();
    EXPECT_TRUE(has(text(), "No power cap was seen: power is free to move, and changes by -4.4 %."))
        << text();
    EXPECT_TRUE(has(text(), "SM clock was 1755 MHz under baseline and 1980 MHz under hoisted"));
    capped(nullptr, 0);
    EXPECT_TRUE(has(text(), "at its power limit could not be read")) << text();
    EXPECT_FALSE(has(text(), "No power cap was seen")) << text();
  }
  contrast["arms"]["A"]["sm_clock_mhz"] = nullptr;
  EXPECT_TRUE(has(text(), "The SM clock could not be read."));
}

TEST_F(StudyWords, a_board_at_its_power_limit_is_said_whichever_way_the_effect_goes) {
  capped(0.98, 0.12);
  EXPECT_TRUE(has(text(),
                  "The board was at its power limit for 98 % of baseline's time and 12 % of "
                  "hoisted's: there power is fixed, and energy follows time; below it, power "
                  "is the kernel's own."))
      << text();
  capped(1.02, 0.99); // counters are not read at one instant
  EXPECT_TRUE(has(text(),
                  "for 100 % of baseline's time and 99 % of hoisted's: there power is fixed, "
                  "and energy follows time."))
      << text();
  set("energy", "lower", -5, -6, -4);
  set("latency", "higher", 3, 2, 4);
  EXPECT_FALSE(has(text(), "No power cap was seen")) << text();
}

TEST_F(StudyWords, the_mechanism_and_the_floor_stand_beside_it) {
  EXPECT_TRUE(has(text(),
                  "Beside it, in baseline and hoisted: static global loads 20 and 12 (SASS), "
                  "registers 58 and 93, blocks a multiprocessor 4 and 2, bytes loaded a launch "
                  "167000000 and 100000000."))
      << text();
  EXPECT_TRUE(has(text(), "Against a plain copy of the same bytes, baseline takes ")) << text();
  EXPECT_TRUE(has(text(), " times its time (measured: job floor's arm A, vector_add")) << text();
  EXPECT_FALSE(has(text(), "because"));
  contrast["arms"]["B"]["mechanism"]["loads"]["sass"] = nullptr;
  contrast["arms"]["B"]["mechanism"]["registers"] = nullptr;
  contrast["arms"]["A"]["floor"] = {{"unavailable", "no copy"}};
  EXPECT_TRUE(has(text(), "static global loads 20 and 20 (PTX), registers 58 and unknown"))
      << text();
  EXPECT_TRUE(has(text(), "how far baseline is from it is not known (no copy)")) << text();
}

TEST_F(StudyWords, what_is_no_evidence_says_so_last) {
  EXPECT_EQ(words().back().find("Against a plain copy"), 0U);
  contrast["qualified"] = false;
  EXPECT_EQ(words().back().find("Not qualified"), 0U);
  EXPECT_EQ(simulated().at("contrasts")[0].at("words").back(),
            "A simulated run: it says nothing of a GPU.");
  auto smoke = run();
  smoke.plan["tier"]["is_evidence"] = false;
  EXPECT_EQ(study_words(contrast, smoke).back(),
            "A smoke run: it checks the plumbing and is never evidence.");
}

// --- stored and verified
// --------------------------------------------------------------------------

class StoredStudy : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};
  MadeStudy study = test::made_study();
  std::vector<std::pair<std::string, fs::path>> runs = study.sealed(root);
  Json analysis = study_analysis("spring", study.study, study.record, runs).value();
  fs::path record =
      store_record(root, root.path() / "qualifications" / "kernel", study.record)->file;

  VerifyReport report(const Json& stored) {
    return verify_analysis(root, store_analysis(root, stored)->id).value();
  }
  static std::string problems(const VerifyReport& r) {
    std::string text;
    for (const auto& p : r.problems) text += to_text(p) + "\n";
    return text;
  }
};

TEST_F(StoredStudy, it_is_stored_and_computed_again_from_its_runs) {
  const auto stored = store_analysis(root, analysis).value();
  EXPECT_EQ(load_analysis(root, stored.id).value(), analysis);
  const auto r = report(analysis);
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_EQ(r.passed.back(), "analysis: recomputed from its 5 runs and its qualification");
  EXPECT_EQ(r.not_checked.size(), 1U) << "the campaign's plan";
  auto wrong = analysis;
  wrong.erase("conditions");
  EXPECT_EQ(store_analysis(root, wrong).error().code, RefusalCode::bad_schema);
}

TEST_F(StoredStudy, a_flipped_number_or_word_is_named) {
  const std::pair<const char*, std::function<void(Json&)>> table[] = {
      {"/contrasts[0]/energy/effect_percent",
       [](Json& a) { a["contrasts"][0]["energy"]["effect_percent"] = -6.5; }},
      {"/contrasts[1]/energy_p_holm", [](Json& a) { a["contrasts"][1]["energy_p_holm"] = 0.001; }},
      {"/contrasts[0]/arms/B/split/idle_w",
       [](Json& a) { a["contrasts"][0]["arms"]["B"]["split"]["idle_w"] = 78; }},
      {"/contrasts[0]/words[0]",
       [](Json& a) { a["contrasts"][0]["words"][0] = "hoisted costs nothing."; }},
      {"/study_qualified", [](Json& a) { a["study_qualified"] = true; }},
      {"/conditions[0]/holds", [](Json& a) { a["conditions"][0]["holds"] = true; }},
      {"/conditions",
       [](Json& a) {
         auto& said = a["conditions"][2]["evidence"].get_ref<std::string&>();
         said[said.find_first_of("0123456789")] = 'x';
       }},
      {"/conditions: another evidence",
       [](Json& a) {
         auto& digit = a["conditions"][1]["evidence"].get_ref<std::string&>()[4]; // "all 5 runs"
         digit = '6';
       }},
      {"/floor/energy_per_launch_j", [](Json& a) { a["floor"]["energy_per_launch_j"] = 1; }},
      {"/claim_holds", [](Json& a) { a["claim_holds"] = false; }},
  };
  for (const auto& [where, change] : table) {
    auto forged = analysis;
    change(forged);
    const auto r = report(forged);
    ASSERT_EQ(r.problems.size(), 1U) << where;
    EXPECT_EQ(r.problems[0].code, RefusalCode::analysis_mismatch);
    EXPECT_TRUE(has(r.problems[0].what, where)) << problems(r);
  }
}

TEST_F(StoredStudy, without_a_run_or_the_record_it_is_not_checked_and_says_which) {
  const auto id = store_analysis(root, analysis)->id;
  fs::remove(record);
  auto r = verify_analysis(root, id).value();
  EXPECT_TRUE(r.valid()) << problems(r);
  ASSERT_EQ(r.not_checked.size(), 3U);
  EXPECT_EQ(r.not_checked[0], "qualification record " +
                                  study.study.at("qualification").get<std::string>() +
                                  ": not in this data root");
  EXPECT_TRUE(has(r.not_checked[1], "not recomputed"));
  (void)store_record(root, root.path() / "qualifications" / "kernel", study.record).value();
  fs::remove_all(runs[3].second);
  r = verify_analysis(root, id).value();
  EXPECT_TRUE(r.valid()) << problems(r);
  ASSERT_EQ(r.not_checked.size(), 3U);
  EXPECT_EQ(r.not_checked[0],
            "run " + runs[3].second.filename().string() + ": not in this data root");
}

TEST_F(StoredStudy, a_record_that_was_changed_is_a_problem) {
  auto text = test::bytes_of(record);
  text.replace(text.find("\"qualified\":true"), 16, "\"qualified\":1234");
  test::overwrite(record, text);
  const auto r = report(analysis);
  ASSERT_EQ(r.problems.size(), 1U) << problems(r);
  EXPECT_EQ(r.problems[0].code, RefusalCode::digest_mismatch);
  EXPECT_EQ(r.problems[0].where, record.string());
}

TEST_F(StoredStudy, the_campaigns_plan_says_which_study_it_is) {
  Json jobs = Json::array();
  for (const auto& j : study.study.at("jobs")) jobs.push_back({{"id", j.at("job")}});
  const auto plan = [&](const Json& its_study) {
    fs::create_directories(root.path() / "campaigns/spring");
    test::overwrite(root.path() / "campaigns/spring/plan.json",
                    Json({{"jobs", jobs}, {"study", its_study}}).dump());
    return report(analysis);
  };
  auto r = plan(study.study);
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_EQ(r.passed.back(), "jobs: those of the campaign's plan");
  auto other = study.study;
  other["description"] = "another";
  r = plan(other);
  ASSERT_EQ(r.problems.size(), 1U);
  EXPECT_TRUE(has(r.problems[0].what, "jobs or its study")) << problems(r);
}

} // namespace
} // namespace hebe::evidence
