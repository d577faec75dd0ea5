// Facts about the calibration that a study's control was predicted from: the same board, boot and
// kernel, before it, at the fractions that the prediction names; anything else is named.
#include "evidence/study_agreement.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace hebe::evidence {
namespace {

Json subject(const char* bytes_read) {
  return {{"artifacts", {{"source", "s1"}, {"cubin", "c1"}}},
          {"launch", {{"work", {{"bytes_read", bytes_read}, {"bytes_written", 1000}}}}}};
}

StoredRun run(const char* started) {
  StoredRun r;
  r.environment = {{"facts",
                    {{{"name", "device.uuid"}, {"value", "u1"}},
                     {{"name", "host.boot_id"}, {"value", "b1"}},
                     {{"name", "run.started"}, {"value", started}}}}};
  return r;
}

// A calibration at 0.25 and 0.75 of 4000 plain bytes, and the control after it.
struct Pair {
  StoredRun calibration = run("2026-11-30T06:49:54Z"), control = run("2026-11-30T06:58:26Z");
  Pair() {
    calibration.plan = {{"subject", subject("4000")}, {"subject_b", subject("6000")}};
    control.plan = {{"subject", subject("3000")},
                    {"subject_b", subject("7000")},
                    {"prediction",
                     {{"calibration",
                       {{"plain_bytes", 4000},
                        {"low", {{"fraction", 0.25}}},
                        {"high", {{"fraction", 0.75}}}}}}}};
  }
};

TEST(CalibrationFaults, none_where_it_is_the_controls) {
  const Pair p;
  EXPECT_EQ(calibration_faults(p.calibration, p.control), std::vector<std::string>());
}

TEST(CalibrationFaults, what_a_simulated_study_does_not_know_is_no_difference) {
  Pair p;
  for (auto* r : {&p.calibration, &p.control})
    for (auto& fact : r->environment["facts"]) fact["value"] = nullptr;
  EXPECT_EQ(calibration_faults(p.calibration, p.control), std::vector<std::string>());
}

TEST(CalibrationFaults, each_alone_is_named) {
  const auto fact = [](StoredRun& r, std::size_t i) -> Json& {
    return r.environment["facts"][i]["value"];
  };
  const std::pair<const char*, std::function<void(Pair&)>> table[] = {
      {R"(device.uuid is "u2", the control's "u1")",
       [&](Pair& p) { fact(p.calibration, 0) = "u2"; }},
      {R"(host.boot_id is "b2", the control's "b1")",
       [&](Pair& p) { fact(p.calibration, 1) = "b2"; }},
      {R"(host.boot_id is null, the control's "b1")",
       [&](Pair& p) { fact(p.calibration, 1) = nullptr; }},
      {"it started at \"2026-11-30T06:58:27Z\", the control at",
       [&](Pair& p) { fact(p.calibration, 2) = "2026-11-30T06:58:27Z"; }},
      {"it started at null", [&](Pair& p) { fact(p.calibration, 2) = nullptr; }},
      {R"(its kernel is of source "s2", the control's "s1")",
       [](Pair& p) { p.calibration.plan["subject"]["artifacts"]["source"] = "s2"; }},
      {"arm A declares 0.5 of extra traffic, the prediction names 0.25",
       [](Pair& p) { p.calibration.plan["subject"] = subject("5000"); }},
      {"arm B declares 0.25 of extra traffic, the prediction names 0.75",
       [](Pair& p) { p.calibration.plan["subject_b"] = subject("4000"); }},
      {"arm B declares nan of extra traffic",
       [](Pair& p) { p.calibration.plan["subject_b"]["launch"].erase("work"); }},
      {"the control predicts nothing", [](Pair& p) { p.control.plan["prediction"] = nullptr; }},
  };
  for (const auto& [what, change] : table) {
    Pair p;
    change(p);
    const auto faults = calibration_faults(p.calibration, p.control);
    ASSERT_EQ(faults.size(), 1U) << what;
    EXPECT_NE(faults[0].find(what), std::string::npos) << faults[0];
  }
}

} // namespace
} // namespace hebe::evidence
