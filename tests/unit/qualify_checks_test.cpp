// Facts about checks without a compiler: what a contract, a launch, a cubin's resources must be,
// and what makes a kernel qualified.
#include "qualify/record.hpp"
#include "qualify/static_checks.hpp"
#include "qualify/trial.hpp"

#include <gtest/gtest.h>

#include "../data/support/launch_json.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::qualify {
namespace {

using Outcome = Check::Outcome;

kernel::CompiledCase compiled(std::int64_t elements = 1024) {
  kernel::CompiledCase out;
  out.launch = kernel::LaunchSpec::from_json(test::vector_launch(elements), "test").value();
  out.artifacts = {{"ttgir", "a"}, {"llir", "b"}, {"ptx", "c"}, {"sass", "d"}, {"cubin", "e"}};
  out.provenance = Json::object();
  return out;
}

// out = x + y; `mask`, `offset` and `store` make it wrong in ways of their own.
std::string add(const std::string& mask = "slt", int end = 1024, bool stores = true) {
  return "module {\n  tt.func public @add_kernel(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %out: "
         "!tt.ptr<f32>, %n: i32) {\n"
         "    %i = tt.make_range {end = " +
         std::to_string(end) + " : i32, start = " + std::to_string(end - 1024) +
         " : i32} : tensor<1024xi32>\n"
         "    %l = tt.splat %n : i32 -> tensor<1024xi32>\n"
         "    %m = arith.cmpi " +
         mask +
         ", %i, %l : tensor<1024xi32>\n"
         "    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>\n"
         "    %xp = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>\n"
         "    %a = tt.load %xp, %m : tensor<1024x!tt.ptr<f32>>\n"
         "    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>\n"
         "    %yp = tt.addptr %ys, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>\n"
         "    %b = tt.load %yp, %m : tensor<1024x!tt.ptr<f32>>\n"
         "    %s = arith.addf %a, %b : tensor<1024xf32>\n" +
         std::string(stores
                         ? "    %os = tt.splat %out : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>\n"
                           "    %op = tt.addptr %os, %i : tensor<1024x!tt.ptr<f32>>, "
                           "tensor<1024xi32>\n"
                           "    tt.store %op, %s, %m : tensor<1024x!tt.ptr<f32>>\n"
                         : "") +
         "    tt.return\n  }\n}\n";
}

struct Interpreted {
  explicit Interpreted(std::string text, std::int64_t elements = 1024)
      : subject(compiled(elements)) {
    subject.ttgir = std::move(text);
    // The oracle: what the right kernel gives.
    auto right = subject;
    right.ttgir = add();
    ExpectedOutputs any;
    test::overwrite(folder / "any", std::string(static_cast<std::size_t>(4 * elements), '\0'));
    any["out_ptr"] = {folder / "any", kernel::DType::fp32};
    const auto made = try_in_interpreter(right, any, 2);
    const auto& bytes = made.bytes.at("out_ptr");
    test::overwrite(folder / "right",
                    std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    expected["out_ptr"] = {folder / "right", kernel::DType::fp32};
    trial = try_in_interpreter(subject, expected, 2);
  }
  const Check& check(std::string_view name) const {
    for (const auto& c : trial.checks)
      if (c.name == name) return c;
    throw std::runtime_error("there is no check " + std::string(name));
  }
  test::ScratchFolder folder;
  kernel::CompiledCase subject;
  ExpectedOutputs expected;
  Trial trial;
};

TEST(Trial, a_right_kernel_passes_every_check) {
  const Interpreted k(add());
  for (const auto& c : k.trial.checks)
    EXPECT_EQ(c.outcome, Outcome::passed) << c.name << c.evidence;
  EXPECT_EQ(k.trial.checks.size(), 11U);
  ASSERT_TRUE(k.trial.counts);
  EXPECT_EQ(k.trial.counts->arguments[0].loaded, 4096U);
}

TEST(Trial, one_element_past_the_buffer_is_out_of_bounds_and_nothing_further_is_said) {
  const Interpreted k(add("sle", 1025));
  EXPECT_EQ(k.check("accesses_in_bounds").outcome, Outcome::failed);
  EXPECT_NE(k.check("accesses_in_bounds").evidence.find("x_ptr"), std::string::npos);
  EXPECT_EQ(k.check("outputs_right").outcome, Outcome::not_run);
  EXPECT_FALSE(k.trial.passed());
}

TEST(Trial, an_element_that_is_not_written_is_found_by_its_number) {
  const Interpreted k(add("ult"), 1023); // as many lanes, one element less: all are written
  EXPECT_EQ(k.check("outputs_written").outcome, Outcome::passed);
  const Interpreted none(add("slt", 1024, false));
  EXPECT_EQ(none.check("outputs_written").outcome, Outcome::failed);
  EXPECT_NE(none.check("outputs_written").evidence.find("1024 of 1024 elements of \"out_ptr\""),
            std::string::npos);
  EXPECT_EQ(none.check("outputs_right").outcome, Outcome::failed);
}

TEST(Trial, bits_are_compared_element_by_element) {
  const Interpreted right(add()), wrong(add("slt", 1024, false));
  const auto& launch = right.subject.launch;
  EXPECT_EQ(compare_bits(launch, right.trial, right.trial, "here").outcome, Outcome::passed);
  const auto found = compare_bits(launch, right.trial, wrong.trial, "here");
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_NE(found.evidence.find("1024 of 1024 elements differ, the first is 0"), std::string::npos);
  EXPECT_EQ(compare_bits(launch, right.trial, Trial{}, "here").outcome, Outcome::not_run);
}

TEST(Trial, a_nan_among_the_inputs_stops_it) {
  auto json = test::vector_launch();
  json["arguments"][0]["init"] = {{"kind", "constant"}, {"value", "nan"}};
  kernel::CompiledCase k;
  k.launch = kernel::LaunchSpec::from_json(json, "test").value();
  k.ttgir = add();
  const auto trial = try_in_interpreter(k, {}, 2);
  EXPECT_EQ(trial.checks.front().name, "inputs_are_numbers");
  EXPECT_EQ(trial.checks.front().outcome, Outcome::failed);
}

TEST(Trial, what_a_gpu_would_have_checked_is_listed_without_one) {
  for (const auto& c : no_gpu_trial("there is none")) {
    EXPECT_EQ(c.outcome, Outcome::not_run);
    EXPECT_EQ(c.by, "GPU");
    EXPECT_EQ(c.evidence, "there is none");
  }
}

TEST(StaticChecks, a_contract_holds_for_the_launch_it_names_only) {
  const auto k = compiled();
  rewrite::Account account;
  const auto facts = facts_of(k.launch);
  EXPECT_EQ(facts.scalars.at("n"), 1024);
  account.assume_scalar(facts, "n", "a loop runs once");
  account.assume_grid("a mask cuts nothing");
  EXPECT_EQ(contracts_hold(account, k.launch, k.launch).outcome, Outcome::passed);
  const auto other = contracts_hold(account, k.launch, compiled(2048).launch);
  EXPECT_EQ(other.outcome, Outcome::failed);
  EXPECT_NE(other.evidence.find("n = 1024"), std::string::npos);
  EXPECT_NE(other.evidence.find("grid"), std::string::npos);
}

TEST(StaticChecks, spills_are_counted_with_what_is_allowed) {
  auto k = compiled();
  k.resources = {{"unavailable", "no cuobjdump"}};
  EXPECT_EQ(no_spills(k, 0).outcome, Outcome::not_run);
  k.resources = {{"registers", 64},
                 {"stack_bytes", 0},
                 {"local_bytes", 0},
                 {"local_loads", 0},
                 {"local_stores", 0}};
  EXPECT_EQ(no_spills(k, 0).outcome, Outcome::passed);
  k.resources["stack_bytes"] = 8;
  EXPECT_EQ(no_spills(k, 0).outcome, Outcome::failed);
  EXPECT_EQ(no_spills(k, 8).outcome, Outcome::passed);
  k.resources["stack_bytes"] = 0;
  k.resources["local_loads"] = 1; // no bytes are said, and yet local memory is read
  EXPECT_EQ(no_spills(k, 0).outcome, Outcome::failed);
}

TEST(StaticChecks, an_artifact_that_is_the_baselines_or_is_missing_fails_or_is_not_run) {
  const auto base = compiled();
  auto k = compiled();
  k.ttgir = add();
  k.resources = {{"registers", 1},
                 {"stack_bytes", 0},
                 {"local_bytes", 0},
                 {"local_loads", 0},
                 {"local_stores", 0}};
  Candidate spec;
  spec.ttgir = "x.ttgir";
  spec.distinct = {"ttgir", "sass"};
  const auto outcome = [&](std::string_view name) {
    for (const auto& c : static_checks(base, k, spec, nullptr))
      if (c.name == name) return c.outcome;
    throw std::runtime_error("there is no such check");
  };
  EXPECT_EQ(outcome("artifacts_distinct"), Outcome::failed);
  k.artifacts["ttgir"] = "another";
  EXPECT_EQ(outcome("artifacts_distinct"), Outcome::failed); // sass
  k.artifacts["sass"] = "another";
  EXPECT_EQ(outcome("artifacts_distinct"), Outcome::passed);
  k.artifacts.erase("sass");
  EXPECT_EQ(outcome("artifacts_distinct"), Outcome::not_run);
  EXPECT_EQ(outcome("same_abi"), Outcome::passed);
  k.launch.num_warps = 8;
  EXPECT_EQ(outcome("same_abi"), Outcome::failed);
}

Variant variant(std::string name, std::vector<Check> checks) {
  Variant out;
  out.name = std::move(name);
  out.compiled = compiled();
  out.checks = std::move(checks);
  return out;
}

TEST(Record, a_kernel_is_qualified_only_where_every_check_passed) {
  const Check good{"a", Outcome::passed, "static", "seen"},
      bad{"b", Outcome::failed, "static", "no"},
      absent{"c", Outcome::not_run, "GPU", "there is no GPU here"},
      kept{"d", Outcome::not_run, "an H200", "not launched"};
  EXPECT_TRUE(variant("v", {good}).qualified(true));
  EXPECT_FALSE(variant("v", {}).qualified(true));
  EXPECT_FALSE(variant("v", {good, bad}).qualified(false));
  EXPECT_TRUE(variant("v", {good, absent}).qualified(false));
  EXPECT_FALSE(variant("v", {good, absent}).qualified(true));
  EXPECT_FALSE(variant("v", {good, kept}).qualified(true));
  auto unbuilt = variant("v", {good});
  unbuilt.compiled.reset();
  EXPECT_FALSE(unbuilt.qualified(true));
}

TEST(Record, the_primary_contrast_decides_and_what_keeps_a_pair_out_is_said) {
  QualificationSpec spec;
  spec.contrasts = {{"baseline", "good"}, {"baseline", "bad"}};
  Candidate good, bad;
  good.name = "good";
  bad.name = "bad";
  bad.points = {"p"};
  spec.candidates = {good, bad};
  const Check passed{"a", Outcome::passed, "static", "seen"},
      failed{"no_spills", Outcome::failed, "static", "40 bytes"};
  PointResult p;
  p.name = "p";
  p.primary = true;
  p.baseline = variant("baseline", {passed});
  p.candidates = {variant("good", {passed}), variant("bad", {passed, failed})};
  Findings findings;
  findings.points.push_back(std::move(p));
  findings.cases = measurement_cases(spec, findings.points, true);
  ASSERT_EQ(findings.cases.size(), 2U);
  EXPECT_TRUE(findings.cases[0].primary);
  EXPECT_TRUE(findings.cases[0].why_not.empty());
  EXPECT_FALSE(findings.cases[1].primary);
  EXPECT_EQ(findings.cases[1].why_not, "bad: no_spills: 40 bytes");
  EXPECT_TRUE(findings.qualified());
  std::swap(spec.contrasts[0], spec.contrasts[1]);
  findings.cases = measurement_cases(spec, findings.points, true);
  EXPECT_FALSE(findings.qualified());
}

} // namespace
} // namespace hebe::qualify
