// Facts about a study's analysis: what it says follows from its runs and its qualification.
#include "measure/multiplicity.hpp"

#include "analysed_study.hpp"

namespace hebe::evidence {
namespace {

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

} // namespace
} // namespace hebe::evidence
