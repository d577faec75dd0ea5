// Facts about what a study says in words: nothing that its numbers do not.
#include "evidence/study_words.hpp"

#include "analysed_study.hpp"

namespace hebe::evidence {
namespace {

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

} // namespace
} // namespace hebe::evidence
