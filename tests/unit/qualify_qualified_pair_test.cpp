// Facts about reading a stored qualification for measuring, on the H200's two records: what is
// handed on, what is refused and by which words, and that a record with a label of energy is no
// qualification.
#include "qualify/qualified_pair.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hebe::qualify {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kReintegration =
    "ef6e8c9c9e233ade570a987a188c93e896768a67d67a860afd7a0ec3f17fbb65";
constexpr const char* kRetention =
    "5dbf0ab7a351e789953b8b102fcfdf65552534562c6f0d02ffa947c24c545ceb";

const Json& stored(const char* id) {
  static std::map<std::string, Json> read;
  auto& out = read[id];
  if (out.is_null()) {
    const auto file = std::string(HEBE_SOURCE_DIR) +
                      "/evidence/h200-qualification/qualifications/kernel/" + id + ".json";
    out = parse_json(read_file(file).value(), file).value();
    EXPECT_TRUE(check_schema(out, "hebe.qualification.kernel/1", file));
  }
  return out;
}

Json& point_of(Json& record, const std::string& name) {
  return *std::ranges::find_if(record["points"], [&](Json& p) { return p["name"] == name; });
}

Json& kernel_of(Json& record, const std::string& point, const std::string& name) {
  auto& p = point_of(record, point);
  if (name == "baseline") return p["baseline"];
  return *std::ranges::find_if(p["candidates"], [&](Json& v) { return v["name"] == name; });
}

Json& check_of(Json& kernel, const std::string& name, const std::string& by) {
  return *std::ranges::find_if(kernel["checks"],
                               [&](Json& c) { return c["name"] == name && c["by"] == by; });
}

Result<QualifiedPair> pair(const Json& record, const std::string& b = "hoisted",
                           const std::string& a = "baseline",
                           const std::string& point = "2048x8192") {
  return qualified_pair(record, point, a, b, "the record");
}

std::string refusal(const Result<QualifiedPair>& pair) {
  return pair ? "no refusal" : to_text(pair.error());
}

TEST(QualifiedPair, HasTheArtifactsLaunchesAndInputsOfTheRecord) {
  Json record = stored(kReintegration);
  const auto found = pair(record);
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_EQ(found->point, "2048x8192");
  EXPECT_EQ(found->a, "baseline");
  EXPECT_EQ(found->b, "hoisted");
  EXPECT_TRUE(found->arm_a.baseline);
  EXPECT_FALSE(found->arm_b.baseline);
  EXPECT_EQ(found->arm_b.variant, "hoisted");
  auto& hoisted = kernel_of(record, "2048x8192", "hoisted");
  EXPECT_EQ(found->arm_b.artifacts, hoisted["artifacts"]);
  EXPECT_EQ(found->arm_b.compile, hoisted["compile"]);
  EXPECT_EQ(found->arm_b.resources, hoisted["resources"]);
  EXPECT_EQ(found->arm_b.launch.json, hoisted["launch"]);
  EXPECT_EQ(found->arm_b.launch.programs(), 2048U);
  EXPECT_NE(found->arm_a.artifacts["cubin"], found->arm_b.artifacts["cubin"]);
  EXPECT_EQ(found->inputs, point_of(record, "2048x8192")["inputs"]);
  EXPECT_TRUE(found->equal_bits);
}

TEST(QualifiedPair, TakesEveryEligibleCaseOfBothRecords) {
  for (const char* id : {kReintegration, kRetention})
    for (const auto& each : stored(id)["measurement_cases"]["cases"]) {
      const auto found = pair(stored(id), each["b"], each["a"], each["point"]);
      EXPECT_TRUE(found) << each.dump() << refusal(found);
    }
}

TEST(QualifiedPair, TakesAKernelAgainstItself) {
  const auto found = pair(stored(kReintegration), "hoisted", "hoisted");
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_EQ(found->arm_a.artifacts, found->arm_b.artifacts);
  EXPECT_TRUE(found->equal_bits);
}

TEST(QualifiedPair, OfOneKernelNeedsOnlyThatKernel) {
  Json record = stored(kReintegration);
  record["qualified"] = false;
  EXPECT_TRUE(pair(record, "baseline", "baseline"));
  auto& hoisted = kernel_of(record, "2048x8192", "hoisted");
  check_of(hoisted, "outputs_right", "NVIDIA H200")["outcome"] = "failed";
  EXPECT_TRUE(pair(record, "baseline", "baseline"));
  EXPECT_THAT(refusal(pair(record, "hoisted", "hoisted")), HasSubstr("outputs_right"));
}

TEST(QualifiedPair, ListsThePointsWhereThereIsNoSuchPoint) {
  const auto found = pair(stored(kReintegration), "hoisted", "baseline", "1x1");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, RefusalCode::bad_spec);
  for (const char* part : {"\"1x1\"", "\"2048x8192\"", "\"65536x2048\"", "\"16384x8192\""})
    EXPECT_THAT(refusal(found), HasSubstr(part));
}

TEST(QualifiedPair, ListsTheKernelsWhereThereIsNoSuchKernel) {
  for (const auto& found : {pair(stored(kReintegration), "hoistd"),
                            pair(stored(kReintegration), "hoisted", "hoistd")}) {
    ASSERT_FALSE(found);
    for (const char* part :
         {"\"hoistd\"", "\"baseline\"", "\"hoisted\"", "\"straight-line-hints\""})
      EXPECT_THAT(refusal(found), HasSubstr(part));
  }
}

TEST(QualifiedPair, NamesTheFailedChecksOfBothArmsWithTheirEvidence) {
  Json record = stored(kReintegration);
  auto& in_b = check_of(kernel_of(record, "2048x8192", "hoisted"), "outputs_right", "NVIDIA H200");
  in_b["outcome"] = "failed";
  in_b["evidence"] = "Y[3] is 2, required 1";
  auto& in_a = check_of(kernel_of(record, "2048x8192", "baseline"), "repeatable", "interpreter");
  in_a["outcome"] = "not_run";
  in_a["evidence"] = "nobody ran it";
  const auto text = refusal(pair(record));
  EXPECT_THAT(text,
              HasSubstr("hoisted: outputs_right (NVIDIA H200) failed: Y[3] is 2, required 1"));
  EXPECT_THAT(text, HasSubstr("baseline: repeatable (interpreter) was not run: nobody ran it"));
}

// A verdict against its own checks qualifies nothing, in either direction.
TEST(QualifiedPair, IsRefusedWhereVerdictOrChecksSayNo) {
  Json record = stored(kReintegration);
  auto& kernel = kernel_of(record, "2048x8192", "hoisted");
  kernel["qualified"] = false;
  EXPECT_THAT(refusal(pair(record)), HasSubstr("hoisted: the record calls it not qualified"));
  kernel["qualified"] = true;
  kernel["checks"] = Json::array();
  EXPECT_THAT(refusal(pair(record)), HasSubstr("hoisted: nothing of it was checked"));
  record = stored(kReintegration);
  for (const char* member : {"artifacts", "launch", "compile", "resources"})
    kernel_of(record, "2048x8192", "hoisted")[member] = nullptr;
  EXPECT_THAT(refusal(pair(record)), HasSubstr("hoisted: it was not built"));
}

TEST(QualifiedPair, WithoutAGpuIsQualifiedByWhatNeedsNone) {
  Json record = stored(kReintegration);
  for (auto& point : record["points"]) {
    std::vector<Json*> kernels = {&point["baseline"]};
    for (auto& candidate : point["candidates"]) kernels.push_back(&candidate);
    for (auto* kernel : kernels)
      for (auto& check : (*kernel)["checks"])
        if (check["by"] == "NVIDIA H200") check["by"] = "GPU", check["outcome"] = "not_run";
  }
  EXPECT_THAT(refusal(pair(record)), HasSubstr("was not run")) << "in a record of a GPU";
  record["provenance"] = "simulated";
  const auto found = pair(record);
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_TRUE(found->equal_bits) << "as the interpreter saw";
}

TEST(QualifiedPair, IsRefusedWithTheReasonWhereItsCaseIsNotEligible) {
  Json record = stored(kReintegration);
  for (auto& each : record["measurement_cases"]["cases"])
    if (each["b"] == "hoisted" && each["point"] == "2048x8192") {
      each["eligible"] = false;
      each["why_not"] = "hoisted: no_spills: 12 bytes";
    }
  EXPECT_THAT(refusal(pair(record)), HasSubstr("hoisted: no_spills: 12 bytes"));
  EXPECT_TRUE(pair(record, "straight-line"));
  EXPECT_TRUE(pair(record, "hoisted", "hoisted")) << "one kernel against itself is no case";
}

TEST(QualifiedPair, IsRefusedWhereTheRecordAsAWholeIsNotQualified) {
  Json record = stored(kReintegration);
  record["qualified"] = false;
  EXPECT_THAT(refusal(pair(record)), HasSubstr("as a whole"));
}

TEST(QualifiedPair, MayCompareTwoCandidatesThatAreNoCase) {
  const auto found = pair(stored(kReintegration), "straight-line", "hoisted");
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_TRUE(found->equal_bits);
}

TEST(QualifiedPair, HasEqualBitsOnlyWhereTheyWereSeenAndByNobodyOtherwise) {
  Json record = stored(kReintegration);
  auto& hoisted = kernel_of(record, "2048x8192", "hoisted");
  auto& on_gpu = check_of(hoisted, "bits_equal", "NVIDIA H200");
  on_gpu["evidence"] = "not demanded: Y: 3 elements differ";
  EXPECT_FALSE(pair(record)->equal_bits) << "the interpreter's equal bits are not the GPU's";
  EXPECT_FALSE(pair(record, "straight-line", "hoisted")->equal_bits);
  EXPECT_FALSE(pair(record, "hoisted", "straight-line")->equal_bits);
  EXPECT_FALSE(pair(record, "baseline", "hoisted")->equal_bits);
  EXPECT_TRUE(pair(record, "straight-line")->equal_bits);
  std::erase_if(hoisted["checks"].get_ref<Json::array_t&>(),
                [](const Json& c) { return c["name"] == "bits_equal"; });
  EXPECT_FALSE(pair(record)->equal_bits) << "nobody looked";
  EXPECT_TRUE(pair(record, "hoisted", "hoisted")->equal_bits) << "it repeats its own";
}

TEST(QualifiedPair, IsRefusedWhereALaunchIsNotOne) {
  Json record = stored(kReintegration);
  kernel_of(record, "2048x8192", "hoisted")["launch"]["grid"] = "many";
  EXPECT_FALSE(pair(record));
  record = stored(kReintegration);
  kernel_of(record, "2048x8192", "hoisted")["mechanism"]["by_argument"][0]["ptx"]["loads"] = "many";
  EXPECT_THAT(refusal(pair(record)), HasSubstr("bad_schema"));
}

TEST(MechanismSummary, IsWhatTheRecordFoundOfTheKernel) {
  const auto found = pair(stored(kReintegration));
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_EQ(found->arm_b.mechanism, (Json{{"variant", "hoisted"},
                                          {"loads", {{"ttgir", 3}, {"ptx", 12}, {"sass", 12}}},
                                          {"stores", {{"ttgir", 3}, {"ptx", 6}, {"sass", 6}}},
                                          {"registers", 93},
                                          {"local_bytes", 0},
                                          {"static_shared_bytes", 0},
                                          {"blocks_per_multiprocessor", 2},
                                          {"warps_per_multiprocessor", 16},
                                          {"occupancy_ratio", 0.25},
                                          {"instructions", 752},
                                          {"bytes",
                                           {{"loaded", 100663296},
                                            {"stored", 33570816},
                                            {"unique_loaded", 33587200},
                                            {"unique_stored", 33570816},
                                            {"counted_at", nullptr}}}}));
  EXPECT_EQ(found->arm_a.mechanism["loads"], (Json{{"ttgir", 5}, {"ptx", 20}, {"sass", 20}}));
  EXPECT_EQ(found->arm_a.mechanism["occupancy_ratio"], 0.5);
}

TEST(MechanismSummary, SaysAtWhichSmallerLaunchBytesWereCounted) {
  for (const char* kernel : {"baseline", "hoisted"}) {
    const auto found = pair(stored(kReintegration), kernel, kernel, "16384x8192");
    ASSERT_TRUE(found) << refusal(found);
    const auto& bytes = found->arm_a.mechanism["bytes"];
    EXPECT_EQ(bytes["counted_at"]["m"], 2048);
    EXPECT_EQ(bytes["programs"], 16384);
    EXPECT_EQ(bytes["programs_counted"], 2048);
  }
  Json record = stored(kReintegration);
  for (const char* kernel : {"baseline", "hoisted"})
    kernel_of(record, "16384x8192", kernel)["mechanism"]["redundancy"] = {{"unavailable", "?"}};
  const auto found = pair(record, "hoisted", "baseline", "16384x8192");
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_EQ(found->arm_b.mechanism["bytes"]["programs_counted"], nullptr) << "not invented";
}

// A rewrite for the point's own launch is interpreted there although the point has a smaller one.
TEST(MechanismSummary, TellsACandidateThatWasCountedAtThePointItself) {
  Json record = stored(kReintegration);
  auto& hoisted = kernel_of(record, "16384x8192", "hoisted");
  hoisted["mechanism"]["redundancy"]["programs"] = 16384;
  for (auto& [name, output] : hoisted["outputs"]["interpreter"].items())
    output["elements"] = hoisted["outputs"]["gpu"][name]["elements"];
  const auto found = pair(record, "hoisted", "baseline", "16384x8192");
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_EQ(found->arm_b.mechanism["bytes"]["counted_at"], nullptr);
  EXPECT_EQ(found->arm_a.mechanism["bytes"]["counted_at"]["m"], 2048);
}

// Where the smaller launch has the same grid and outputs, only equal outputs tell which it was.
TEST(MechanismSummary, LeavesOutBytesOfALaunchThatCannotBeTold) {
  Json record = stored(kReintegration);
  auto& point = point_of(record, "2048x8192");
  point["interpreted_at"] = {{"m", 2048}, {"k", 7}};
  auto found = pair(record);
  ASSERT_TRUE(found) << refusal(found);
  EXPECT_EQ(found->arm_b.mechanism["bytes"]["counted_at"]["k"], 7) << "the outputs are the same";
  kernel_of(record, "2048x8192", "hoisted")["outputs"]["interpreter"]["Y"]["sha256"] = "other";
  found = pair(record);
  EXPECT_EQ(found->arm_b.mechanism["bytes"], nullptr);
  EXPECT_EQ(found->arm_a.mechanism["bytes"]["counted_at"]["k"], 7);
}

TEST(MechanismSummary, HasNullForWhatTheRecordDoesNotHold) {
  Json record = stored(kReintegration);
  auto& kernel = kernel_of(record, "2048x8192", "hoisted");
  kernel["mechanism"]["sass"] = {{"unavailable", "no nvdisasm"}};
  for (auto& row : kernel["mechanism"]["by_argument"]) row.erase("sass");
  kernel["resources"] = {{"unavailable", "no cuobjdump"}};
  kernel["bytes"] = nullptr;
  auto found = pair(record)->arm_b.mechanism;
  EXPECT_EQ(found["loads"], (Json{{"ttgir", 3}, {"ptx", 12}, {"sass", nullptr}}));
  EXPECT_EQ(found["instructions"], nullptr);
  EXPECT_EQ(found["bytes"], nullptr);
  EXPECT_EQ(found["registers"], 93) << "the driver's";
  kernel["occupancy"] = nullptr;
  found = pair(record)->arm_b.mechanism;
  EXPECT_EQ(found["registers"], nullptr);
  EXPECT_EQ(found["static_shared_bytes"], nullptr);
  EXPECT_EQ(found["blocks_per_multiprocessor"], 2) << "computed";
  EXPECT_EQ(found["occupancy_ratio"], 0.25);
  kernel["mechanism"]["occupancy"] = {{"unavailable", "?"}};
  found = pair(record)->arm_b.mechanism;
  for (const char* name :
       {"blocks_per_multiprocessor", "warps_per_multiprocessor", "occupancy_ratio"})
    EXPECT_EQ(found[name], nullptr) << name;
  kernel["mechanism"] = nullptr;
  EXPECT_EQ(pair(record)->arm_b.mechanism["loads"]["ttgir"], nullptr);
}

TEST(LabelFree, TheRecordsOfTheH200Are) {
  for (const char* id : {kReintegration, kRetention}) EXPECT_TRUE(label_free(stored(id), id));
}

TEST(LabelFree, NeedsTheConstant) {
  Json record = stored(kReintegration);
  record["energy_labels"] = "all";
  EXPECT_THAT(label_free(record, "r").error().what, HasSubstr("/energy_labels"));
  record.erase("energy_labels");
  EXPECT_FALSE(label_free(record, "r"));
}

TEST(LabelFree, RefusesAMemberOfEnergyPowerOrTimeByItsPath) {
  const std::string hoisted = "/points/0/candidates/0", baseline = "/points/0/baseline";
  for (const std::string& pointer :
       {hoisted + "/mechanism/energy", hoisted + "/mechanism/energy_per_launch_j",
        hoisted + "/resources/powerDraw", hoisted + "/resources/total_mj",
        baseline + "/outputs/board_mW", hoisted + "/launch/work/mean_W",
        baseline + "/occupancy/Joules", hoisted + "/rewrite/changes/0/latency_s",
        hoisted + "/compile/metadata/gpu_seconds",
        baseline + "/mechanism/by_argument/0/launch_time", hoisted + "/bytes/X/average_mw",
        hoisted + "/bytes/energy_j", baseline + "/outputs/gpu/power",
        std::string("/points/0/inputs/watt"),
        std::string("/measurement_cases/cases/0/energy_saved"), std::string("/power")}) {
    Json record = stored(kReintegration);
    record[Json::json_pointer(pointer)] = 3;
    const auto found = label_free(record, "the record");
    ASSERT_FALSE(found) << pointer;
    EXPECT_EQ(found.error().code, RefusalCode::bad_schema);
    EXPECT_EQ(found.error().where, "the record");
    EXPECT_THAT(found.error().what, HasSubstr(pointer));
  }
}

TEST(LabelFree, RefusesACheckOfEnergy) {
  Json record = stored(kReintegration);
  auto& check = record["points"][1]["candidates"][0]["checks"][0];
  check["name"] = "less_energy";
  EXPECT_THAT(label_free(record, "r").error().what,
              HasSubstr("/points/1/candidates/0/checks/0/name (less_energy)"));
}

TEST(LabelFree, LetsUsersNameTheirsAsTheyLike) {
  Json record = stored(kReintegration);
  for (const char* pointer :
       {"/environment/power_limit_w", "/spec/energy", "/points/0/interpreted_at/latency",
        "/points/0/baseline/launch/parameters/power",
        "/points/0/candidates/0/compile/constants/BLOCK_W",
        "/points/0/candidates/0/compile/attributes/energy",
        "/points/0/baseline/compile/signature/watts",
        "/points/0/baseline/compile/helpers/power.py"})
    record[Json::json_pointer(pointer)] = 3;
  record["points"][0]["baseline"]["why"] = "it takes less energy";
  for (auto* kernel : {&record["points"][0]["baseline"], &record["points"][0]["candidates"][0]}) {
    auto& k = *kernel;
    k["launch"]["arguments"][0]["name"] = "power";
    k["mechanism"]["by_argument"][0]["argument"] = "power";
    for (auto* map : {&k["bytes"], &k["outputs"]["gpu"], &k["outputs"]["interpreter"]})
      (*map)["power"] = {{"elements", 3}};
  }
  record["points"][0]["inputs"]["power"] = "digest";
  const auto found = label_free(record, "r");
  EXPECT_TRUE(found) << to_text(found.error());
  // Of another kernel, which has no such argument, it is no name.
  record["points"][0]["candidates"][1]["bytes"]["power"] = {{"loaded", 3}};
  EXPECT_THAT(label_free(record, "r").error().what,
              HasSubstr("/points/0/candidates/1/bytes/power"));
}

} // namespace
} // namespace hebe::qualify
