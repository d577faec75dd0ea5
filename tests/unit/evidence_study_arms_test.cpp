// Facts about a study's arms: idle share, clocks, limits, distance to a plain copy.
#include "analysed_study.hpp"

namespace hebe::evidence {
namespace {

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

} // namespace
} // namespace hebe::evidence
