// Facts about plans, consistency and analysis of jobs whose arms are two launches.
#include "measure/consistency.hpp"
#include "measure/prediction.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "../data/support/made_run.hpp"

namespace hebe::measure {
namespace {

Json subject(double bytes, char cubin) {
  return {{"launch", test::vector_launch(1024, bytes)},
          {"artifacts", {{"cubin", std::string(64, cubin)}}}};
}

Plan ab_plan(double bytes_b = 2e8) {
  auto p = test::smoke_plan(8);
  p.kind = "ab";
  p.subject = subject(1e8, 'a');
  p.subject_b = subject(bytes_b, 'b');
  p.cubins = {std::string(64, 'a'), std::string(64, 'b')};
  return p;
}

double bytes_of(const Json& s) {
  const auto& work = s.at("launch").at("work");
  return work.at("bytes_read").get<double>() + work.at("bytes_written").get<double>();
}

evidence::RunParts made(const Plan& plan) {
  test::SimGpu sim(plan.seed, {}, {}, {bytes_of(plan.subject), bytes_of(subject_of(plan, 1))});
  auto raw = sim.run(plan).value();
  evidence::RunParts parts;
  parts.plan = plan;
  parts.plan_id = content_id(to_json(plan)).value();
  parts.acquisition = acquisition_of(raw, sim.meter, true);
  parts.windows = std::move(raw.windows);
  parts.samples = std::move(raw.sampler.samples);
  (void)judge_windows(parts.windows, parts.samples, plan, parts.acquisition).value();
  parts.analysis = analyse(plan, parts.plan_id, parts.acquisition, parts.windows).value();
  return parts;
}

// A control of 100 % whose calibration was measured at a quarter and three quarters.
Plan control_plan() {
  auto calibration = ab_plan(1.75e8);
  calibration.subject = subject(1.25e8, 'a');
  calibration.seed = 99;
  (void)complete_plan(calibration).value();
  auto plan = ab_plan();
  plan.kind = "positive_control";
  auto c = calibration_of(made(calibration).analysis.json, 0.25, 0.75);
  c.plain_bytes = bytes_of(plan.subject);
  c.declared_fraction = bytes_of(plan.subject_b) / c.plain_bytes - 1;
  c.run_id = "r";
  c.seal = std::string(64, 'a');
  plan.prediction = predict(1, c).value();
  return plan;
}

const evidence::RunParts& control() {
  static const auto parts = made(control_plan());
  return parts;
}

Status checked(const evidence::RunParts& p) {
  return check_consistency(p.plan, p.acquisition, p.windows);
}

TEST(TwoArms, a_plan_comes_back_with_both_subjects_and_its_prediction) {
  for (const auto& plan : {ab_plan(), control().plan}) {
    const auto json = to_json(plan);
    const auto back = plan_from(json, "plan.json");
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(to_json(*back), json);
    EXPECT_EQ(subject_of(*back, 1), plan.subject_b);
  }
  EXPECT_FALSE(to_json(test::smoke_plan()).contains("subject_b")) << "aa plans are what they were";
  EXPECT_FALSE(to_json(test::smoke_plan()).contains("prediction"));
}

TEST(TwoArms, kinds_and_members_that_do_not_belong_together_are_refused) {
  const auto ab = to_json(ab_plan()), aa = to_json(test::smoke_plan()),
             pc = to_json(control().plan);
  auto one = ab, two = aa, none = pc, extra = ab;
  one.erase("subject_b");
  two["subject_b"] = two.at("subject");
  none.erase("prediction");
  extra["prediction"] = pc.at("prediction");
  for (const auto& json : {one, two, none, extra})
    EXPECT_EQ(plan_from(json, "plan.json").error().code, RefusalCode::bad_schema);
}

TEST(TwoArms, each_contradiction_is_named) {
  ASSERT_TRUE(checked(control()));
  const std::pair<const char*, std::function<void(Plan&)>> table[] = {
      {"arm B's cubin", [](Plan& p) { p.cubins[1] = std::string(64, 'c'); }},
      {"arm A's cubin", [](Plan& p) { p.cubins[0] = std::string(64, 'c'); }},
      {"does not follow from its calibration",
       [](Plan& p) { p.prediction["energy"]["high_percent"] = 1e3; }},
      {"traffic that the plan's arms declare", [](Plan& p) { p.subject_b = subject(3e8, 'b'); }},
      {"traffic that the plan's arms declare", [](Plan& p) { p.subject = subject(0.5e8, 'a'); }},
  };
  for (const auto& [what, change] : table) {
    auto parts = control();
    change(parts.plan);
    const auto status = checked(parts);
    ASSERT_FALSE(status) << what;
    EXPECT_NE(status.error().what.find(what), std::string::npos) << status.error().what;
  }
}

TEST(TwoArms, a_contrasts_claim_is_that_it_has_a_verdict) {
  const auto higher = made(ab_plan()).analysis, lower = made(ab_plan(0.5e8)).analysis,
             same = made(ab_plan(1e8)).analysis;
  EXPECT_EQ(higher.verdict, Verdict::higher);
  EXPECT_EQ(lower.verdict, Verdict::lower);
  EXPECT_EQ(same.verdict, Verdict::equivalent);
  for (const auto* a : {&higher, &lower, &same}) {
    EXPECT_TRUE(a->claim_holds);
    EXPECT_FALSE(a->qualified);
    EXPECT_FALSE(a->json.contains("control"));
  }
}

TEST(TwoArms, a_control_that_is_there_is_seen_and_one_that_is_not_is_not) {
  EXPECT_TRUE(control().analysis.claim_holds) << control().analysis.reason;
  EXPECT_TRUE(control().analysis.json.at("control").at("seen"));
  auto plan = control().plan;
  plan.subject_b = subject(1e8, 'b'); // declared, predicted, and not there
  const auto absent = made(plan).analysis;
  EXPECT_FALSE(absent.claim_holds);
  EXPECT_NE(absent.reason.find("energy within the predicted range fails"), std::string::npos)
      << absent.reason;
  EXPECT_EQ(absent.verdict, Verdict::equivalent);
}

TEST(TwoArms, a_calibration_that_is_not_its_runs_is_named) {
  auto calibration = ab_plan(1.75e8);
  const auto json = made(calibration).analysis.json;
  auto stored = control().plan.prediction.at("calibration");
  EXPECT_NE(calibration_fault(stored, json), "") << "another run";
  auto c = calibration_of(json, 0.25, 0.75);
  c.plain_bytes = 1e8;
  stored = predict(1, c).value().at("calibration");
  EXPECT_EQ(calibration_fault(stored, json), "");
  stored["pairs"] = 3;
  EXPECT_EQ(calibration_fault(stored, json), "pairs");
}

} // namespace
} // namespace hebe::measure
