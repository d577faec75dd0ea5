// Facts about a stored study: computed again from its runs, and what is missing is said.
#include "evidence/analysis_store.hpp"
#include "evidence/content_record.hpp"
#include "measure/multiplicity.hpp"

#include "analysed_study.hpp"

namespace hebe::evidence {
namespace {

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
