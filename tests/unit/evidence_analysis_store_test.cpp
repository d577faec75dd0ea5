// Facts about stored analyses: named by their content, computed again from the runs, and a campaign
// is accounted for job by job.
#include "evidence/analysis_store.hpp"
#include "evidence/dataset.hpp"
#include "evidence/derived_analysis.hpp"

#include "core/files.hpp"
#include "measure/multiplicity.hpp"

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/crash_points.hpp"
#include "../data/support/sealed_runs.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

class AnalysisStoreTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};

  // A run as the campaign's runner seals it.
  fs::path run_of_job(const std::string& job, std::uint64_t seed, int minute) {
    return test::reseal(test::sealed_with_seed(root, seed, minute), [&](Json& m) {
      m["campaign"] = {{"id", "spring"}, {"job", job}};
    });
  }
  std::vector<CampaignJob> three_jobs() {
    return {{"a", run_of_job("a", 1, 0), {}},
            {"b", {}, "refused: gpu_busy"},
            {"c", run_of_job("c", 2, 1), {}}};
  }
  VerifyReport report(const std::string& id) { return verify_analysis(root, id).value(); }
  static std::string problems(const VerifyReport& r) {
    std::string text;
    for (const auto& p : r.problems) text += to_text(p) + "\n";
    return text;
  }
};

TEST_F(AnalysisStoreTest, a_point_analysis_is_what_its_run_says) {
  const auto run = run_of_job("a", 1, 0);
  const auto point = point_analysis(run).value();
  const auto& analysis = test::parts_of_seed(1).analysis.json;
  EXPECT_EQ(point.at("energy"), analysis.at("energy"));
  EXPECT_EQ(point.at("conditions"), analysis.at("conditions"));
  EXPECT_EQ(point.at("campaign"), "spring");
  EXPECT_EQ(point.at("job"), "a");
  EXPECT_EQ(point.at("case"), "vector_add");
  EXPECT_EQ(point.at("computed_from").size(), 5U);
  EXPECT_TRUE(point_analysis(test::sealed_with_seed(root, 2, 1))->at("campaign").is_null());
}

TEST_F(AnalysisStoreTest, it_is_named_by_its_content_and_stored_once) {
  const auto point = point_analysis(test::sealed_with_seed(root, 1)).value();
  const auto stored = store_analysis(root, point).value();
  EXPECT_EQ(stored.id, std::string(kAnalysisPrefix) + content_id(point).value());
  EXPECT_FALSE(stored.existed);
  EXPECT_EQ(load_analysis(root, stored.id).value(), point);
  const auto again = store_analysis(root, point).value();
  EXPECT_TRUE(again.existed);
  EXPECT_EQ(again.directory, stored.directory);
  EXPECT_TRUE(root.unsealed().empty());
  const auto r = report(stored.id);
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_EQ(r.passed.back(), "analysis: recomputed from its run");
}

TEST_F(AnalysisStoreTest, what_is_no_analysis_is_refused_before_anything_exists) {
  const auto point = point_analysis(test::sealed_with_seed(root, 1)).value();
  auto wrong = point;
  wrong.erase("verdict");
  auto other = point;
  other["schema"] = "hebe.analysis.point/2";
  auto nan = point;
  nan["energy"]["effect_percent"] = std::nan("");
  for (const auto& bad : {wrong, other, nan, Json(nullptr), Json::object()})
    EXPECT_FALSE(store_analysis(root, bad)) << bad.dump();
  EXPECT_FALSE(fs::exists(root.analyses()));
}

TEST_F(AnalysisStoreTest, a_damaged_one_is_not_taken_for_the_same_content) {
  const auto point = point_analysis(test::sealed_with_seed(root, 1)).value();
  const auto stored = store_analysis(root, point).value();
  const auto file = stored.directory / "analysis.json";
  auto text = test::bytes_of(file);
  text.replace(text.find("vector_add"), 6, "matrix");
  test::overwrite(file, text);
  for (const auto& code :
       {store_analysis(root, point).error().code, load_analysis(root, stored.id).error().code})
    EXPECT_EQ(code, RefusalCode::digest_mismatch);
  EXPECT_FALSE(report(stored.id).valid());
}

TEST_F(AnalysisStoreTest, a_forged_one_under_its_own_name_does_not_follow_from_the_run) {
  auto point = point_analysis(test::sealed_with_seed(root, 1)).value();
  point["qualified"] = true;
  const auto r = report(store_analysis(root, point)->id);
  ASSERT_FALSE(r.valid());
  EXPECT_EQ(r.problems[0].code, RefusalCode::analysis_mismatch);
  EXPECT_NE(r.problems[0].what.find("/qualified"), std::string::npos);
  EXPECT_NE(r.problems[0].where.find("analysis.json"), std::string::npos);
}

TEST_F(AnalysisStoreTest, a_campaign_accounts_for_every_job) {
  const auto jobs = three_jobs();
  const auto campaign = campaign_analysis("spring", jobs).value();
  const auto& counts = campaign.at("counts");
  EXPECT_EQ(counts.at("jobs"), 3);
  EXPECT_EQ(counts.at("with_a_run"), 2);
  EXPECT_EQ(counts.at("without_a_run"), 1);
  EXPECT_EQ(campaign.at("jobs")[1].at("why_none"), "refused: gpu_busy");
  EXPECT_TRUE(campaign.at("jobs")[1].at("result").is_null());
  EXPECT_EQ(campaign.at("jobs")[0].at("run_id"), jobs[0].run->filename().string());
  const auto id = store_analysis(root, campaign)->id;
  const auto r = report(id);
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_EQ(r.passed.back(), "analysis: 3 of 3 jobs recomputed, and the summary");
}

TEST_F(AnalysisStoreTest, p_values_of_the_jobs_with_a_run_are_adjusted_as_one_family) {
  const auto campaign = campaign_analysis("spring", three_jobs()).value();
  const auto p = [](std::uint64_t seed) {
    return test::parts_of_seed(seed)
        .analysis.json.at("energy")
        .at("sign_flip")
        .at("p")
        .get<double>();
  };
  const auto& m = campaign.at("multiplicity");
  EXPECT_EQ(m.at("jobs"), Json({"a", "c"}));
  EXPECT_EQ(m.at("adjusted_p"), Json(measure::holm(std::vector<double>{p(1), p(2)}).value()));
  EXPECT_EQ(m.at("p_value"), "energy/sign_flip/p");
}

TEST_F(AnalysisStoreTest, equal_designs_but_for_the_seed_are_replicates) {
  const auto campaign = campaign_analysis("spring", three_jobs()).value();
  ASSERT_EQ(campaign.at("replicates").size(), 1U);
  const auto& group = campaign.at("replicates")[0];
  EXPECT_EQ(group.at("jobs"), Json({"a", "c"}));
  const auto effect = [](std::uint64_t seed) { return test::parts_of_seed(seed).analysis.energy; };
  const auto between = std::abs(effect(1).effect - effect(2).effect) / std::sqrt(2);
  EXPECT_NEAR(group.at("energy").at("spread_between_percent"), 100 * between, 1e-9);
  const auto within = [&](std::uint64_t seed) { return std::pow(effect(seed).spread, 2) / 3; };
  EXPECT_NEAR(group.at("energy").at("spread_expected_from_pairs_percent"),
              100 * std::sqrt((within(1) + within(2)) / 2), 1e-9);
  auto different = test::plan_with_subject(3);
  different.margins.energy_percent = 1;
  auto parts = test::made_run(different);
  const auto run = seal_run(root, parts, 1'790'000'999'000'000).value().directory;
  const auto wider =
      campaign_analysis("x", {{"p", test::sealed_with_seed(root, 1, 7), {}}, {"q", run, {}}})
          .value();
  EXPECT_TRUE(wider.at("replicates").empty());
}

TEST_F(AnalysisStoreTest, jobs_that_cannot_be_are_refused) {
  const auto a = run_of_job("a", 1, 0), single = test::sealed_with_seed(root, 2, 1);
  const std::vector<CampaignJob> table[] = {
      {},
      {{"a", {}, ""}},                   // neither run nor reason
      {{"a", a, {}}, {"a", single, {}}}, // one name twice
      {{"x", single, {}}, {"y", single, {}}},
      {{"b", a, {}}}, // another job's
  };
  for (const auto& jobs : table)
    EXPECT_EQ(campaign_analysis("spring", jobs).error().code, RefusalCode::bad_argument);
  EXPECT_EQ(campaign_analysis("autumn", {{"a", a, {}}}).error().code, RefusalCode::bad_argument);
  EXPECT_EQ(campaign_analysis("", {{"a", single, {}}}).error().code, RefusalCode::bad_argument);
  EXPECT_EQ(campaign_analysis("spring", {{"a", folder / "none", {}}}).error().code,
            RefusalCode::not_found);
}

TEST_F(AnalysisStoreTest, a_campaign_forged_in_a_job_or_in_its_summary_is_named) {
  const auto campaign = campaign_analysis("spring", three_jobs()).value();
  auto job = campaign, summary = campaign, dropped = campaign;
  job["jobs"][0]["result"]["claim_holds"] = !job["jobs"][0]["result"]["claim_holds"].get<bool>();
  summary["multiplicity"]["adjusted_p"][0] = 0.001;
  dropped["counts"]["without_a_run"] = 0;
  for (const auto& [forged, where] : {std::pair(job, "/jobs[0]/result/claim_holds"),
                                      std::pair(summary, "/multiplicity/adjusted_p[0]"),
                                      std::pair(dropped, "/counts/without_a_run")}) {
    const auto r = report(store_analysis(root, forged)->id);
    ASSERT_FALSE(r.valid()) << where;
    EXPECT_NE(r.problems[0].what.find(where), std::string::npos) << problems(r);
  }
}

TEST_F(AnalysisStoreTest, without_the_runs_the_summary_is_still_checked_and_the_rest_is_said) {
  const auto jobs = three_jobs();
  const auto campaign = campaign_analysis("spring", jobs).value();
  auto forged = campaign;
  forged["multiplicity"]["adjusted_p"][0] = 0.001;
  const auto good = store_analysis(root, campaign)->id, bad = store_analysis(root, forged)->id;
  for (const auto& j : {jobs[0], jobs[2]}) fs::remove_all(*j.run);
  EXPECT_TRUE(report(good).valid());
  EXPECT_EQ(report(good).not_checked.size(), 3U); // two runs, and the plan
  EXPECT_FALSE(report(bad).valid());
}

TEST_F(AnalysisStoreTest, a_run_that_is_there_and_damaged_is_no_run_that_is_not_there) {
  const auto jobs = three_jobs();
  const auto campaign = store_analysis(root, campaign_analysis("spring", jobs).value())->id;
  const auto point = store_analysis(root, point_analysis(*jobs[0].run).value())->id;
  const auto whole = root.path().parent_path() / "whole";
  for (const char* name : {"telemetry.parquet", "windows.jsonl", "plan.json", "manifest.json"}) {
    fs::remove_all(whole);
    fs::copy(*jobs[0].run, whole, fs::copy_options::recursive);
    const auto file = *jobs[0].run / name;
    for (const bool gone : {false, true}) {
      auto text = test::bytes_of(file);
      text[text.size() / 2] ^= 0x01;
      if (gone)
        fs::remove(file);
      else
        test::overwrite(file, text);
      for (const auto& id : {campaign, point}) {
        const auto r = report(id);
        ASSERT_FALSE(r.valid()) << name << ", " << id;
        EXPECT_NE(r.problems[0].where.find(jobs[0].run->filename().string()), std::string::npos)
            << problems(r);
      }
      fs::remove_all(*jobs[0].run);
      fs::copy(whole, *jobs[0].run, fs::copy_options::recursive);
    }
  }
  EXPECT_TRUE(report(campaign).valid());
}

TEST_F(AnalysisStoreTest, jobs_are_those_of_the_campaigns_plan_where_it_is_there) {
  const auto id = store_analysis(root, campaign_analysis("spring", three_jobs()).value())->id;
  fs::create_directories(root.path() / "campaigns/spring");
  const auto plan = [&](std::initializer_list<const char*> ids) {
    Json list = Json::array();
    for (const char* job : ids) list.push_back({{"id", job}});
    test::overwrite(root.path() / "campaigns/spring/plan.json", Json({{"jobs", list}}).dump());
  };
  plan({"a", "b", "c"});
  EXPECT_TRUE(report(id).valid()) << problems(report(id));
  EXPECT_EQ(report(id).passed.back(), "jobs: those of the campaign's plan");
  plan({"a", "b", "c", "d"});
  EXPECT_FALSE(report(id).valid());
}

TEST_F(AnalysisStoreTest, killed_at_any_step_there_is_none_or_a_whole_one) {
  const auto point = point_analysis(test::sealed_with_seed(root, 1)).value();
  const auto store = [&] { (void)store_analysis(root, point).value(); };
  const auto all = test::crash_points_of(store);
  const auto id = store_analysis(root, point)->id;
  ASSERT_EQ(all.size(), 7U);
  for (std::size_t at = 0; at < all.size(); ++at) {
    fs::remove_all(root.analyses());
    ASSERT_TRUE(test::ends_at_crash_point(at, store)) << all[at];
    const bool there = at == all.size() - 1; // only after the rename
    EXPECT_EQ(load_analysis(root, id).has_value(), there) << all[at];
    EXPECT_EQ(root.unsealed().size(), at >= 2 && !there ? 1U : 0U) << all[at];
    EXPECT_EQ(store_analysis(root, point)->existed, there);
  }
}

TEST_F(AnalysisStoreTest, analyses_are_found_by_part_of_their_id) {
  EXPECT_EQ(find_analysis(root, "").error().code, RefusalCode::not_found);
  const auto one = store_analysis(root, point_analysis(test::sealed_with_seed(root, 1)).value());
  EXPECT_EQ(find_analysis(root, "").value(), one->id);
  EXPECT_EQ(find_analysis(root, one->id.substr(16, 10)).value(), one->id);
  EXPECT_EQ(load_analysis(root, "../runs").error().code, RefusalCode::not_found);
  EXPECT_EQ(verify_analysis(root, "analysis_sha256_").error().code, RefusalCode::not_found);
}

TEST_F(AnalysisStoreTest, a_dataset_of_a_campaign_takes_its_runs_and_no_others) {
  const auto jobs = three_jobs();
  (void)test::sealed_with_seed(root, 3, 9);
  DatasetRequest request;
  request.campaign = "spring";
  const auto plan = plan_dataset(root, request).value();
  ASSERT_EQ(plan.runs.size(), 2U);
  EXPECT_EQ(plan.runs[0].run_id, jobs[0].run->filename().string());
  const auto dataset = take_dataset(root, plan).value();
  const auto manifest = Json::parse(test::bytes_of(dataset.directory / "manifest.json"));
  EXPECT_EQ(manifest.at("campaign"), "spring");
}

} // namespace
} // namespace hebe::evidence
