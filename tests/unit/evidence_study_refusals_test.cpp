// Facts about what is no study's: it is refused by run and job.
#include "evidence/content_record.hpp"

#include "analysed_study.hpp"

namespace hebe::evidence {
namespace {

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

} // namespace
} // namespace hebe::evidence
