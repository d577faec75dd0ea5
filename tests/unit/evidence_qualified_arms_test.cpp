// Facts about arms that a plan says were qualified: a run verifies against the record where it is
// there, and whatever differs from it is named.
#include "evidence/qualified_arms.hpp"

#include "core/files.hpp"
#include "evidence/content_record.hpp"
#include "evidence/sealed_run.hpp"
#include "evidence/verify.hpp"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kPoint = "2048x8192";

const Json& reintegration() {
  static const auto file = std::string(HEBE_SOURCE_DIR) +
                           "/evidence/h200-qualification/qualifications/kernel/"
                           "ef6e8c9c9e233ade570a987a188c93e896768a67d67a860afd7a0ec3f17fbb65.json";
  static const auto json = parse_json(read_file(file).value(), file).value();
  return json;
}

Json& kernel_of(Json& record, const std::string& variant) {
  auto& point =
      *std::ranges::find_if(record["points"], [](Json& p) { return p["name"] == kPoint; });
  if (variant == "baseline") return point["baseline"];
  return *std::ranges::find_if(point["candidates"], [&](Json& v) { return v["name"] == variant; });
}

class QualifiedArmsTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};
  Json record = reintegration();

  Json subject(const std::string& variant) {
    const auto& kernel = kernel_of(record, variant);
    return {{"artifacts", kernel.at("artifacts")}, {"launch", kernel.at("launch")}};
  }

  /// The plan of a study's job, whose record need not be stored.
  measure::Plan plan(const std::string& a = "baseline", const std::string& b = "hoisted") {
    auto out = test::smoke_plan();
    out.kind = a == b ? "aa" : "ab";
    out.subject = subject(a);
    if (a != b) out.subject_b = subject(b);
    out.cubins = {out.subject["artifacts"]["cubin"],
                  measure::subject_of(out, 1)["artifacts"]["cubin"]};
    out.qualification = {{"record", content_id(record).value()},
                         {"name", record["name"]},
                         {"provenance", record["provenance"]},
                         {"point", kPoint},
                         {"a", a},
                         {"b", b},
                         {"equal_bits", true}};
    return out;
  }

  void store() {
    const auto folder_of = kernel_qualification_file(root, "x").parent_path();
    ASSERT_TRUE(store_record(root, folder_of, record));
  }

  VerifyReport sealed(const measure::Plan& p) {
    constexpr std::int64_t kWhen = 1'790'000'123'456'789;
    return verify_run(seal_run(root, test::made_run(p), kWhen).value().directory).value();
  }

  /// What is refused of a plan that was changed after it was made from the record.
  std::string refusal(const std::function<void(measure::Plan&)>& change) {
    auto p = plan();
    change(p);
    const auto found = check_qualified_arms(root, p, "plan.json");
    if (found) return "no refusal";
    EXPECT_EQ(found.error().code, RefusalCode::analysis_mismatch);
    EXPECT_EQ(found.error().where, "plan.json");
    return found.error().what;
  }
};

TEST_F(QualifiedArmsTest, a_run_of_the_qualified_kernels_passes_and_says_so) {
  store();
  for (const char* b : {"hoisted", "baseline"}) {
    const auto report = sealed(plan("baseline", b));
    EXPECT_TRUE(report.valid()) << to_text(report.problems.front());
    EXPECT_THAT(report.passed, Contains("qualification: both cubins are those of record " +
                                        content_id(record).value()));
  }
}

TEST_F(QualifiedArmsTest, without_the_record_nothing_is_compared_and_that_is_said) {
  const auto report = sealed(plan());
  EXPECT_TRUE(report.valid());
  EXPECT_THAT(report.not_checked, Contains(HasSubstr("qualification " + content_id(record).value() +
                                                     ": not in this data root")));
}

TEST_F(QualifiedArmsTest, a_run_without_qualified_arms_says_nothing_of_it) {
  const auto report = sealed(test::smoke_plan());
  for (const auto* lines : {&report.passed, &report.not_checked})
    for (const auto& line : *lines) EXPECT_EQ(line.find("qualification"), std::string::npos);
}

TEST_F(QualifiedArmsTest, a_run_of_another_cubin_does_not_verify) {
  store();
  auto p = plan();
  p.cubins[1] = std::string(64, 'c');
  p.subject_b["artifacts"]["cubin"] = std::string(64, 'c');
  const auto report = sealed(p);
  ASSERT_FALSE(report.valid());
  EXPECT_EQ(report.problems.front().code, RefusalCode::analysis_mismatch);
  EXPECT_THAT(report.problems.front().what, HasSubstr("the measured cubin is cccc"));
}

TEST_F(QualifiedArmsTest, a_damaged_record_is_a_problem) {
  store();
  const auto file = kernel_qualification_file(root, content_id(record).value());
  auto bytes = test::bytes_of(file);
  bytes[bytes.size() / 2] ^= 1;
  test::overwrite(file, bytes);
  EXPECT_EQ(check_qualified_arms(root, plan(), "plan.json").error().code,
            RefusalCode::digest_mismatch);
}

TEST_F(QualifiedArmsTest, whatever_differs_is_named) {
  store();
  using P = measure::Plan;
  const std::string other(64, 'd');
  EXPECT_EQ(refusal([](P&) {}), "no refusal");
  EXPECT_THAT(refusal([&](P& p) { p.cubins[0] = other; }), HasSubstr("arm A is not \"baseline\""));
  for (const char* kind : {"cubin", "ptx", "sass", "ttgir", "source"}) {
    EXPECT_THAT(refusal([&](P& p) { p.subject_b["artifacts"][kind] = other; }),
                HasSubstr(std::string("its ") + kind + " is dddd"));
    EXPECT_THAT(refusal([&](P& p) { p.subject["artifacts"].erase(kind); }),
                HasSubstr(std::string("its ") + kind + " is none"));
  }
  EXPECT_THAT(refusal([&](P& p) { p.subject["artifacts"]["notes"] = other; }),
              HasSubstr("its notes is dddd"));
  EXPECT_THAT(refusal([&](P& p) { p.subject_b["launch"]["num_warps"] = 4; }),
              HasSubstr("launch/num_warps"));
  EXPECT_THAT(refusal([&](P& p) { p.subject_b.erase("launch"); }), HasSubstr("its launch"));
  EXPECT_THAT(refusal([&](P& p) { std::swap(p.subject, p.subject_b); }), HasSubstr("arm A"));
  EXPECT_THAT(refusal([&](P& p) { p.subject_b = nullptr; }), HasSubstr("arm B"));
  EXPECT_THAT(refusal([](P& p) { p.qualification["name"] = "other"; }), HasSubstr("its name is"));
  EXPECT_THAT(refusal([](P& p) { p.qualification["provenance"] = "simulated"; }),
              HasSubstr("its provenance is \"gpu\""));
  EXPECT_THAT(refusal([](P& p) { p.qualification["point"] = "1x1"; }), HasSubstr("at \"1x1\""));
  EXPECT_THAT(refusal([](P& p) { p.qualification["b"] = "hoistd"; }), HasSubstr("\"hoistd\""));
}

TEST_F(QualifiedArmsTest, a_kernel_that_the_record_does_not_call_qualified_is_none) {
  kernel_of(record, "hoisted")["qualified"] = false;
  store();
  EXPECT_THAT(refusal([](measure::Plan&) {}), HasSubstr("does not call it qualified"));
}

TEST_F(QualifiedArmsTest, artifacts_of_a_record_by_point_and_kernel) {
  EXPECT_EQ(qualified_artifacts(record, kPoint, "hoisted"),
            kernel_of(record, "hoisted")["artifacts"]);
  EXPECT_EQ(qualified_artifacts(record, kPoint, "baseline"),
            kernel_of(record, "baseline")["artifacts"]);
  EXPECT_TRUE(qualified_artifacts(record, kPoint, "hoistd").is_null());
  EXPECT_TRUE(qualified_artifacts(record, "1x1", "baseline").is_null());
}

} // namespace
} // namespace hebe::evidence
