// Facts about the page of a study: it says everything that the analysis says, invents nothing, and
// shows names as text.
#include "report/study_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <vector>

namespace hebe::report {
namespace {
using testing::HasSubstr;
using testing::Not;

Json made_study() {
  std::ifstream file(std::string(HEBE_TEST_DATA) + "/study/analysis.json");
  return Json::parse(file);
}

std::vector<std::pair<std::string, Json>> leaves_of(const Json& json) {
  const auto flat = json.flatten(); // its paths as JSON pointers
  std::vector<std::pair<std::string, Json>> out;
  for (const auto& [path, value] : flat.items()) out.emplace_back(path, value);
  return out;
}

// Tags and the text between them, in order. std::regex takes minutes for what follows.
struct Piece {
  std::string text;
  bool tag = false;
};
std::vector<Piece> pieces(const std::string& markup) {
  std::vector<Piece> out;
  std::size_t at = 0;
  while (at < markup.size()) {
    const auto open = std::min(markup.find('<', at), markup.size());
    if (open > at) out.push_back({markup.substr(at, open - at), false});
    if (open == markup.size()) break;
    const auto close = std::min(markup.find('>', open), markup.size() - 1);
    out.push_back({markup.substr(open, close + 1 - open), true});
    at = close + 1;
  }
  return out;
}

// As a reader sees it: no tags, no style, plain blanks.
std::string page_words(const Json& study) {
  std::string out;
  bool style = false;
  for (auto& p : pieces(study_page(study))) {
    if (p.tag) style = p.text.starts_with("<style");
    for (std::size_t at; !p.tag && (at = p.text.find("\u00a0")) != std::string::npos;)
      p.text.replace(at, 2, " ");
    for (const char c : p.tag || style ? std::string(" ") : p.text)
      if (c != '\n' && !(c == ' ' && out.ends_with(' '))) out += c;
  }
  return out;
}

// The first thing that keeps it from being XML; empty where nothing does.
std::string imbalance(const std::string& markup) {
  std::vector<std::string> open;
  for (const auto& p : pieces(markup)) {
    const bool style = !open.empty() && open.back() == "style";
    if (!p.tag && !style && p.text.find('>') != std::string::npos) return "a bracket in " + p.text;
    if (!p.tag || p.text.starts_with("<!DOCTYPE") || p.text.ends_with("/>")) continue;
    if (p.text.find('<', 1) != std::string::npos || !p.text.ends_with('>')) return p.text;
    if (std::count(p.text.begin(), p.text.end(), '"') % 2 != 0) return "quotes of " + p.text;
    const bool closes = p.text[1] == '/';
    const auto name = p.text.substr(closes ? 2 : 1, p.text.find_first_of(" >") - (closes ? 2 : 1));
    if (!closes)
      open.push_back(name);
    else if (open.empty() || open.back() != name)
      return "unexpected " + p.text;
    else
      open.pop_back();
  }
  return open.empty() ? "" : "left open: " + open.back();
}

TEST(StudyPage, it_begins_with_the_answer_and_whether_it_is_qualified) {
  const auto words = page_words(made_study());
  EXPECT_THAT(words,
              HasSubstr("At 2048x8192, hoisted takes 5.712 % less energy a launch than "
                        "baseline, 95 % interval [−5.793, −5.638] % , in 1.405 % less time."));
  EXPECT_THAT(words, HasSubstr("qualified : each of 11 conditions holds."));
  EXPECT_THAT(words, Not(HasSubstr("never evidence")));
}

TEST(StudyPage, numbers_are_shown_with_sign_unit_and_as_many_digits_as_the_interval_bears) {
  const auto words = page_words(made_study());
  for (const char* shown : {"−5.712 % [−5.793, −5.638] BCa ±0.078 % 0.166 % lower 1.9e-06 7.6e-06",
                            "−1.405 % [−1.409, −1.401]",
                            "−22.13 % [−22.32, −21.96]",
                            "+19.77 % [+19.49, +20.03]",
                            "−34.987 % [−34.993, −34.982]",
                            "−0.0021 % [−0.0131, +0.0080]",
                            "+0.0001 % [−0.0006, +0.0009]",
                            "+103.54 % [+103.50, +103.57]",
                            "predicted +102.17 %, +86.53 % to +117.82 %",
                            "13.784 mJ 12.997 mJ",
                            "23.987 µs 23.650 µs",
                            "574.64 W",
                            "1978.4 MHz",
                            "time under the power cap 1.27 % 0 %",
                            "1.480 × the floor (measured)",

                            "(estimated)",
                            "5 / 20 / 20 3 / 12 / 12",
                            "58 93",
                            "50.00 % 25.00 %",
                            "167,772,160 (167.77 MB) 100,663,296 (100.66 MB)",
                            "9.3127 mJ",
                            "67,108,864 bytes",
                            "2,048 programs at M = 2048, N = 8192; this launch has 16,384"})
    EXPECT_THAT(words, HasSubstr(shown));
}

// The strongest form of "every member is on the page": change any of them and the page changes.
TEST(StudyPage, no_member_of_the_analysis_is_left_out) {
  const auto study = made_study();
  const auto page = study_page(study);
  int leaves = 0;
  for (const auto& [path, value] : leaves_of(study)) {
    auto changed = study;
    auto& leaf = changed[Json::json_pointer(path)];
    if (leaf.is_number())
      leaf = leaf.get<double>() * 1.37 + 3;
    else if (leaf.is_boolean())
      leaf = !leaf.get<bool>();
    else if (leaf.is_string())
      leaf = leaf.get<std::string>() + " changed";
    else
      continue;
    ++leaves;
    EXPECT_TRUE(study_page(changed) != page) << path;
  }
  EXPECT_GT(leaves, 500);
}

TEST(StudyPage, a_missing_member_is_not_known_and_never_a_number) {
  const auto study = made_study();
  const auto whole = study_page(study);
  for (const auto& [path, value] : leaves_of(study)) {
    auto without = study;
    without[Json::json_pointer(path)] = nullptr;
    const auto page = study_page(without);
    EXPECT_EQ(imbalance(page), "") << path;
    const bool says_nothing = path.ends_with("/reason");
    const bool follows = path.ends_with("/half_width_percent"); // from the interval's ends
    // Optional by the format, or within the specification, which is shown as it is.
    if (!value.is_null() && !says_nothing && !follows && path.find("/spec/") == std::string::npos &&
        path != "/study/description") {
      EXPECT_TRUE(page != whole) << path;
    }
  }
  auto bare = study;
  for (const char* path :
       {"/contrasts/0/arms/A/energy_per_launch_j", "/contrasts/0/arms/A/mechanism",
        "/contrasts/0/energy/low_percent", "/platform/board"})
    bare[Json::json_pointer(path)] = nullptr;
  const auto words = page_words(bare);
  EXPECT_THAT(words, HasSubstr("energy a launch not known (not in the analysis) 12.997 mJ"));
  EXPECT_THAT(words, HasSubstr("registers a thread not known (the qualification found none) 93"));
  EXPECT_THAT(words, HasSubstr("There is no answer for hoisted against baseline at 2048x8192: its "
                               "energy is not known."));
}

TEST(StudyPage, what_is_unavailable_says_why) {
  const auto words = page_words(made_study());
  EXPECT_THAT(words, HasSubstr("not known (the board did not idle between the warm-up"));
  EXPECT_THAT(words, HasSubstr("not known (no copy of these bytes was measured or simulated"));
  EXPECT_THAT(words, HasSubstr("memory clock not known (unread)"));
  EXPECT_THAT(words, HasSubstr("not known (there was no SASS to count)"));
  EXPECT_THAT(words, HasSubstr("not known (nothing was counted)"));
}

TEST(StudyPage, names_are_text_whatever_stands_in_them) {
  auto study = made_study();
  const std::string name = "</title></style></pre>\"'><script>alert(1)</script>&amp;\x01";
  for (const auto& [path, value] : leaves_of(study))
    if (value.is_string() && !path.ends_with("/role")) study[Json::json_pointer(path)] = name;
  study["study"]["spec"] = {{name, name}};
  study["platform"][name] = name;
  study["contrasts"][2]["arms"]["A"]["mechanism"]["bytes"]["counted_at"] = {{name, name}};
  for (const auto& markup : {study_page(study), study_svg(study)}) {
    EXPECT_EQ(markup.find("<script"), std::string::npos);
    EXPECT_EQ(markup.find('\x01'), std::string::npos);
    EXPECT_THAT(markup, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;"));
    EXPECT_EQ(imbalance(markup), "");
  }
}

TEST(StudyPage, it_refers_to_nothing_outside_itself) {
  auto page = study_page(made_study());
  for (std::string_view own : {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"})
    for (auto at = page.find(own); at != std::string::npos; at = page.find(own))
      page.erase(at, own.size());
  for (const char* out : {"http", "src=", "href", "url(", "@import", "<script", "<link", "onload"})
    EXPECT_EQ(page.find(out), std::string::npos) << out;
}

TEST(StudyPage, simulated_and_smoke_stand_above_everything) {
  auto study = made_study();
  study["provenance"] = "simulated";
  study["label"] = "smoke: checks the plumbing, never evidence";
  const auto words = page_words(study);
  EXPECT_LT(words.find("simulated: never evidence"), words.find("takes 5.712 %"));
  EXPECT_LT(words.find("smoke: checks the plumbing, never evidence"), words.find("takes 5.712 %"));
  study["provenance"] = nullptr;
  study["label"] = "research";
  EXPECT_THAT(page_words(study), HasSubstr("provenance not known: not evidence"));
  study["provenance"] = "measured";
  study["tier"] = "smoke-v1";
  EXPECT_THAT(page_words(study), HasSubstr("smoke: checks the plumbing, never evidence"));
}

TEST(StudyPage, a_condition_that_fails_is_counted_and_named) {
  auto study = made_study();
  study["study_qualified"] = false;
  study["conditions"][3]["holds"] = false;
  const auto words = page_words(study);
  EXPECT_THAT(words, HasSubstr("not qualified : 1 of 11 conditions do not hold."));
  EXPECT_THAT(words, HasSubstr("control seen ✗ no energy +103.54 %"));
}

TEST(StudyPage, each_verdict_has_its_sentence) {
  auto study = made_study();
  const auto sentence_of = [&](const char* verdict) {
    study["verdict"] = verdict;
    return page_words(study);
  };
  EXPECT_THAT(sentence_of("equivalent"), HasSubstr("takes the same energy a launch as baseline"));
  EXPECT_THAT(sentence_of("inconclusive"), HasSubstr("is not decided: −5.712 %"));
  study["contrasts"][0]["reason"] = "3 pairs failed <their> gates";
  EXPECT_THAT(sentence_of("invalid"),
              HasSubstr("the measurement is invalid, 3 pairs failed &lt;their&gt; gates"));
  study["contrasts"][0]["energy"]["effect_percent"] = 5.71234;
  EXPECT_THAT(sentence_of("higher"), HasSubstr("hoisted takes 5.712 % more energy"));
}

TEST(StudyPage, one_contrast_ten_contrasts_no_control_no_floor_and_nothing_at_all) {
  const auto study = made_study();
  auto one = study;
  one["contrasts"] = Json::array({study["contrasts"][0]});
  EXPECT_THAT(page_words(one), HasSubstr("the analysis has no run of this job"));
  auto ten = study;
  for (int i = 4; i < 10; ++i) {
    ten["contrasts"].push_back(study["contrasts"][1]);
    ten["contrasts"].back()["b"] = "candidate-" + std::to_string(i);
  }
  auto bare = study;
  bare["control"] = bare["floor"] = bare["study"]["calibration"] = nullptr;
  const auto words = page_words(bare);
  EXPECT_THAT(words, HasSubstr("not known (the study has no control)"));
  EXPECT_THAT(words, HasSubstr("not known (the study has no floor job)"));
  EXPECT_THAT(words, HasSubstr("none: the specification has no control"));
  EXPECT_THAT(study_svg(bare), Not(HasSubstr("predicted")));
  for (const auto& s : {study, one, ten, bare, Json::object(), Json(nullptr), Json::array({1})}) {
    EXPECT_EQ(imbalance(study_page(s)), "");
    EXPECT_EQ(imbalance(study_svg(s)), "");
  }
  EXPECT_THAT(page_words(Json::object()), HasSubstr("There is no primary contrast"));
  for (int i = 4; i < 10; ++i)
    EXPECT_THAT(study_svg(ten), HasSubstr("candidate-" + std::to_string(i)));
}

TEST(StudyPage, the_control_has_a_scale_of_its_own) {
  const auto svg = study_svg(made_study());
  const auto control = svg.find("Control; shaded");
  ASSERT_NE(control, std::string::npos);
  EXPECT_LT(svg.find(">−20 %<"), control);
  EXPECT_GT(svg.find(">+100 %<"), control);
  EXPECT_GT(svg.find("class=\"band\""), control);
}

TEST(StudyPage, a_picture_of_equal_zeros_has_finite_coordinates) {
  auto study = made_study();
  for (auto& job : {&study["aa"], &study["control"]})
    for (const char* q : {"energy", "latency"})
      for (auto& [name, value] : (*job)[q].items())
        if (value.is_number()) value = 0;
  study["contrasts"] = Json::array();
  study["control"]["predicted"] = nullptr;
  const auto svg = study_svg(study);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

} // namespace
} // namespace hebe::report
