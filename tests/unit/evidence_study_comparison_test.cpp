// Facts about comparing studies: what is the same experiment, when two studies repeat each other,
// how often they do by chance, and what cannot be compared.
#include "core/files.hpp"
#include "core/philox.hpp"
#include "evidence/analysis_store.hpp"
#include "evidence/study_comparison.hpp"
#include "measure/intervals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

Json made_study() {
  return parse_json(read_file(std::string(HEBE_TEST_DATA) + "/study/analysis.json").value(), "made")
      .value();
}

void shift(Json& effect, double percent) {
  for (const char* end : {"effect_percent", "low_percent", "high_percent"})
    effect[end] = effect.at(end).get<double>() + percent;
}

// The same kernels measured again: other runs, and energy effects that differ by `percent`.
Json repeated(double percent, const std::string& name = "again") {
  auto study = made_study();
  study["campaign"] = name;
  const auto reseal = [&](Json& job) {
    job["seal"] = name + job.at("seal").get<std::string>().substr(name.size());
  };
  for (const char* job : {"aa", "control", "floor"}) reseal(study[job]);
  for (auto& c : study["contrasts"]) {
    reseal(c);
    shift(c["energy"], percent);
  }
  return study;
}

Result<Json> compared(const std::vector<Json>& studies) {
  std::vector<ComparedStudy> read;
  for (std::size_t i = 0; i < studies.size(); ++i) {
    HEBE_TRY(auto one, compared_study(studies[i], "study-" + std::to_string(i)));
    read.push_back(std::move(one));
  }
  return study_comparison(read);
}

std::string refusal(const std::vector<Json>& studies) {
  const auto done = compared(studies);
  return done ? "it was compared"
              : std::string(name_of(done.error().code)) + ": " + done.error().what;
}

TEST(StudyComparison, a_repeat_within_both_intervals_is_inside) {
  const auto c = compared({made_study(), repeated(0.05)}).value();
  EXPECT_EQ(c.at("result"), "inside") << c.at("reason");
  EXPECT_EQ(c.at("contrasts").size(), 4U);
  const auto& primary = c.at("contrasts")[0];
  EXPECT_TRUE(primary.at("primary"));
  const auto& row = primary.at("quantities").at("energy").at("between")[0];
  EXPECT_TRUE(row.at("first_inside_second"));
  EXPECT_TRUE(row.at("second_inside_first"));
  EXPECT_TRUE(row.at("intervals_overlap"));
}

TEST(StudyComparison, the_difference_has_the_error_of_both_intervals) {
  const auto c = compared({made_study(), repeated(0.12)}).value();
  EXPECT_EQ(c.at("result"), "outside");
  const auto& row = c.at("contrasts")[0].at("quantities").at("energy").at("between")[0];
  const double one = 0.07786 / 2.0930240544; // half width over t of 19 degrees of freedom
  EXPECT_NEAR(row.at("difference_percent"), 0.12, 1e-9);
  EXPECT_NEAR(row.at("standard_error_percent"), one * std::sqrt(2), 1e-9);
  EXPECT_NEAR(row.at("t"), 0.12 / (one * std::sqrt(2)), 1e-6);
  EXPECT_NEAR(row.at("df"), 38, 1e-9);
  EXPECT_NEAR(row.at("p"), measure::t_two_sided_p(0.12 / (one * std::sqrt(2)), 38), 1e-9);
  EXPECT_FALSE(row.at("first_inside_second"));
  EXPECT_TRUE(row.at("intervals_overlap")) << "overlap is the weaker statement";
  EXPECT_GE(row.at("p_holm").get<double>(), row.at("p").get<double>());
}

TEST(StudyComparison, inside_has_to_hold_both_ways) {
  auto wide = repeated(0.12);
  auto& energy = wide["contrasts"][0]["energy"];
  energy["low_percent"] = -7;
  energy["high_percent"] = -4;
  energy["half_width_percent"] = 1.5;
  const auto c = compared({made_study(), wide}).value();
  const auto& row = c.at("contrasts")[0].at("quantities").at("energy").at("between")[0];
  EXPECT_TRUE(row.at("first_inside_second"));
  EXPECT_FALSE(row.at("second_inside_first"));
  EXPECT_EQ(c.at("result"), "outside");
}

TEST(StudyComparison, the_energy_of_primary_contrasts_decides) {
  auto other = repeated(0);
  shift(other["contrasts"][0]["latency"], 1);
  shift(other["contrasts"][1]["energy"], 5);
  EXPECT_EQ(compared({made_study(), other})->at("result"), "inside");
  other["contrasts"][1]["role"] = "primary"; // in one of the studies is enough
  EXPECT_EQ(compared({made_study(), other})->at("result"), "outside");
}

TEST(StudyComparison, the_same_experiment_has_the_same_cubins_whatever_its_job_is_called) {
  auto other = repeated(0);
  std::swap(other["contrasts"][0], other["contrasts"][3]);
  for (auto& c : other["contrasts"]) c["job"] = "x-" + c["job"].get<std::string>();
  other["contrasts"][1]["arms"]["B"]["cubin_sha256"] = std::string(64, 'e');
  const auto c = compared({made_study(), other}).value();
  EXPECT_EQ(c.at("contrasts").size(), 3U);
  EXPECT_EQ(c.at("contrasts")[0].at("jobs")[1].at("job"), "x-primary");
  EXPECT_EQ(c.at("studies")[0].at("only_here"),
            Json({"2048x8192: straight-line against baseline"}));
  EXPECT_EQ(c.at("studies")[1].at("only_here"), c.at("studies")[0].at("only_here"));
}

TEST(StudyComparison, no_common_contrast_is_refused_with_what_each_has) {
  auto other = repeated(0);
  for (auto& c : other["contrasts"]) c["arms"]["A"]["cubin_sha256"] = std::string(64, 'e');
  const auto why = refusal({made_study(), other});
  EXPECT_THAT(why, HasSubstr("bad_argument: no contrast is in two of the studies"));
  EXPECT_THAT(why,
              HasSubstr("study-0 has \"2048x8192: hoisted against baseline\" (cubins e92788aa"));
  EXPECT_THAT(why,
              HasSubstr("study-1 has \"2048x8192: hoisted against baseline\" (cubins eeeeeeee"));
  other["contrasts"] = Json::array();
  EXPECT_THAT(refusal({made_study(), other}), HasSubstr("study-1 has none"));
}

TEST(StudyComparison, one_study_twice_is_no_repetition) {
  EXPECT_THAT(refusal({made_study(), made_study()}), HasSubstr("are the same study"));
  auto reworded = made_study(); // another analysis of the same runs
  reworded["contrasts"][0]["words"] = Json::array();
  EXPECT_THAT(refusal({made_study(), reworded}), HasSubstr("both have the run sealed"));
  auto one_run = repeated(0);
  one_run["control"]["seal"] = made_study()["control"]["seal"];
  EXPECT_THAT(refusal({made_study(), one_run}), HasSubstr("both have the run sealed"));
  EXPECT_THAT(refusal({made_study()}), HasSubstr("bad_argument: 1 study"));
  EXPECT_THAT(refusal({}), HasSubstr("bad_argument: 0 study"));
}

TEST(StudyComparison, measured_and_simulated_are_never_compared) {
  auto simulated = repeated(0);
  simulated["provenance"] = "simulated";
  EXPECT_EQ(refusal({made_study(), simulated}),
            "bad_argument: study-0 is measured, study-1 is simulated");
  auto first = made_study();
  first["provenance"] = "simulated";
  EXPECT_THAT(compared({first, simulated})->at("notes").dump(),
              HasSubstr("simulated: never evidence"));
}

TEST(StudyComparison, what_differs_besides_the_effects_is_said) {
  auto other = repeated(0);
  other["tier"] = "smoke-v1";
  other["label"] = "smoke: checks the plumbing, never evidence";
  other["study_qualified"] = false;
  other["conditions"][0]["holds"] = false;
  other["platform"]["driver"] = "590.44.01";
  other["platform"]["boot_id"] = "sha256:1";
  other["platform"]["device_uuid"] = nullptr;
  const auto c = compared({made_study(), other}).value();
  const auto notes = c.at("notes").dump();
  EXPECT_THAT(notes, HasSubstr("the tiers differ: confirmation-v1, smoke-v1"));
  EXPECT_THAT(notes, HasSubstr("study-1 is smoke: checks the plumbing"));
  EXPECT_THAT(notes, HasSubstr("study-1 is not qualified"));
  EXPECT_THAT(notes, HasSubstr("do not say whether the board is the same"));
  for (const auto& row : c.at("platform"))
    EXPECT_EQ(row.at("equal"), row.at("what") == "driver" || row.at("what") == "boot_id"
                                   ? Json(false)
                               : row.at("what") == "device_uuid" ? Json(nullptr)
                                                                 : Json(true))
        << row;
}

TEST(StudyComparison, without_a_judgeable_primary_it_is_inconclusive) {
  auto first = made_study(), other = repeated(0);
  other["contrasts"][0]["verdict"] = "invalid";
  EXPECT_EQ(compared({first, other})->at("result"), "inconclusive");
  other["contrasts"][0]["verdict"] = "lower";
  other["contrasts"][0]["energy"] = {{"unavailable", "no window passed"}};
  other["contrasts"][0]["arms"]["B"]["energy_per_launch_j"] = nullptr;
  const auto c = compared({first, other}).value();
  EXPECT_EQ(c.at("result"), "inconclusive");
  EXPECT_TRUE(c.at("contrasts")[0].at("arms").at("B").at("spread").is_null());
  first["contrasts"].erase(0); // its primary
  EXPECT_EQ(compared({first, other})->at("reason"),
            "no study's primary contrast is in another study");
}

TEST(StudyComparison, spread_between_studies_stands_beside_what_the_pairs_lead_to_expect) {
  auto third = repeated(-0.3, "third");
  third["contrasts"][0]["arms"]["A"]["energy_per_launch_j"] = 0.0137841 * 1.02;
  shift(third["aa"]["energy"], 0.01);
  const auto c = compared({made_study(), repeated(0.3), third}).value();
  const auto& energy = c.at("contrasts")[0].at("quantities").at("energy");
  EXPECT_EQ(energy.at("between").size(), 3U);
  EXPECT_NEAR(energy.at("spread").at("between_studies_percent"), 0.3, 1e-9);
  EXPECT_NEAR(energy.at("spread").at("expected_from_pairs_percent"), 0.07786 / 2.0930240544, 1e-9);
  EXPECT_NEAR(energy.at("spread").at("ratio"), 0.3 * 2.0930240544 / 0.07786, 1e-6);
  const auto& arm = c.at("contrasts")[0].at("arms").at("A").at("spread");
  EXPECT_NEAR(arm.at("range_percent"), 2, 1e-9);
  EXPECT_NEAR(arm.at("mean_j"), 0.0137841 * (1 + 0.02 / 3), 1e-12);
  EXPECT_NEAR(arm.at("sd_percent"), 100 * 0.02 / std::sqrt(3) / (1 + 0.02 / 3), 1e-9);
  EXPECT_NEAR(c.at("aa").at("energy").at("spread").at("between_studies_percent"),
              0.01 / std::sqrt(3), 1e-9);
  EXPECT_FALSE(c.at("aa").contains("power"));
}

TEST(StudyComparison, intervals_of_width_zero_have_no_test) {
  auto first = made_study(), other = repeated(0);
  for (auto* s : {&first, &other}) {
    auto& e = (*s)["contrasts"][0]["energy"];
    e["low_percent"] = e["high_percent"] = e["effect_percent"];
    e["half_width_percent"] = 0;
  }
  const auto c = compared({first, other}).value();
  const auto& energy = c.at("contrasts")[0].at("quantities").at("energy");
  EXPECT_TRUE(energy.at("between")[0].at("p").is_null());
  EXPECT_TRUE(energy.at("between")[0].at("p_holm").is_null());
  EXPECT_TRUE(energy.at("spread").at("ratio").is_null());
  EXPECT_EQ(c.at("result"), "inside");
}

TEST(StudyComparison, a_wrong_file_is_refused_by_its_member) {
  auto study = made_study();
  while (study["contrasts"].size() > 1) study["contrasts"].erase(1);
  study["conditions"] = Json::array({study["conditions"][0]});
  const auto other = compared_study(repeated(0), "y").value();
  EXPECT_EQ(compared_study(Json::array(), "x").error().code, RefusalCode::bad_schema);
  const auto flat = study.flatten();
  int refused = 0;
  for (const auto& [path, value] : flat.items())
    for (const Json& wrong : {Json(nullptr), Json(value.is_string() ? Json(-1) : Json("text"))}) {
      auto changed = study;
      changed[Json::json_pointer(path)] = wrong;
      if (const auto read = compared_study(changed, "x"); !read) {
        EXPECT_EQ(read.error().code, RefusalCode::bad_schema) << path;
        ++refused;
      } else {
        EXPECT_NO_THROW((void)study_comparison({*read, other})) << path;
      }
    }
  EXPECT_GT(refused, 50);
  auto pairs = study;
  pairs["contrasts"][0]["pairs"] = 1;
  EXPECT_EQ(compared_study(pairs, "x").error().where, "/contrasts/0/pairs");
}

// Where nothing differs, |d| < h must hold, d with sd s sqrt(2) and h = 1.96 s: 2 Phi(1.386) - 1 =
// 83.4 %. From 20 pairs the widths are themselves estimated, and the narrower one decides: 80.8 %.
TEST(StudyComparison, equal_studies_lie_inside_each_other_81_times_in_100) {
  Philox random(7, 1);
  const auto draw = [&](std::size_t number) {
    std::vector<double> x(20);
    double mean = 0;
    for (auto& v : x) mean += (v = random.normal()) / 20;
    const auto ends = measure::t_interval(x).value();
    ComparedStudy s;
    s.given = s.id = std::to_string(number);
    s.seals = {s.id};
    s.label = "research";
    s.platform = Json::object();
    ComparedContrast c;
    c.primary = true;
    c.effects["energy"] = {mean, ends.low, ends.high,
                           (ends.high - ends.low) / 2 / measure::t_exceeded_with(0.025, 19), 20};
    s.contrasts = {c};
    return s;
  };
  int inside = 0, small_p = 0;
  constexpr int kStudies = 4000;
  for (int i = 0; i < kStudies; ++i) {
    const auto c = study_comparison({draw(0), draw(1)}).value();
    inside += c.at("result") == "inside" ? 1 : 0;
    const auto& row = c.at("contrasts")[0].at("quantities").at("energy").at("between")[0];
    small_p += row.at("p").get<double>() < 0.05 ? 1 : 0;
  }
  EXPECT_NEAR(inside / double{kStudies}, 0.808, 0.015) << inside;
  EXPECT_NEAR(small_p / double{kStudies}, 0.05, 0.012) << small_p;
}

class StudyFiles : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};

  fs::path stored(const Json& study, std::string id = {}) {
    if (id.empty()) id = content_id(study).value();
    const auto directory = root.analyses() / (std::string(kAnalysisPrefix) + id);
    fs::create_directories(directory);
    std::ofstream(directory / "analysis.json") << canonical_json(study).value() << "\n";
    return directory;
  }
};

TEST_F(StudyFiles, a_study_is_found_by_id_part_directory_and_file) {
  const auto directory = stored(made_study());
  const auto id = content_id(made_study()).value();
  for (const auto& name : {directory.filename().string(), id.substr(10, 12), directory.string(),
                           (directory / "analysis.json").string()}) {
    const auto found = find_compared_study(root, name);
    ASSERT_TRUE(found) << to_text(found.error());
    EXPECT_EQ(found->id, id);
    EXPECT_EQ(found->given, name);
  }
}

TEST_F(StudyFiles, one_that_is_not_there_or_not_what_its_name_says_is_refused) {
  const auto code = [&](const std::string& name) {
    return find_compared_study(root, name).error().code;
  };
  EXPECT_EQ(code("abc"), RefusalCode::not_found);
  EXPECT_EQ(code(""), RefusalCode::bad_argument);
  EXPECT_EQ(code((folder.path() / "none.json").string()), RefusalCode::not_found);
  const auto forged = stored(repeated(3), std::string(64, 'a'));
  EXPECT_EQ(code("aaaa"), RefusalCode::digest_mismatch);
  EXPECT_EQ(code((forged / "analysis.json").string()), RefusalCode::digest_mismatch);
  const auto file = folder.path() / "point.json";
  std::ofstream(file) << R"({"schema": "hebe.analysis.point/1"})";
  const auto wrong = find_compared_study(root, file.string());
  EXPECT_EQ(wrong.error().code, RefusalCode::bad_schema);
  EXPECT_THAT(wrong.error().what, HasSubstr("found \"hebe.analysis.point/1\""));
  std::ofstream(file) << R"({"schema": )";
  EXPECT_EQ(code(file.string()), RefusalCode::bad_schema);
}

} // namespace
} // namespace hebe::evidence
