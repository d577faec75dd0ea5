// Facts about what a measurement asks of the board's meters before it begins.
#include "campaign/job.hpp"
#include "campaign/probe_session.hpp"

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::campaign {
namespace {

measure::Tier tier(const char* name) { return measure::tier_named(name).value(); }

Result<evidence::StoredQualification> none() {
  return refuse(RefusalCode::meter_not_qualified, "it is of another boot", "probe", "GPU-1");
}

TEST(MeterQualification, evidence_is_refused_without_one_and_the_refusal_says_how_to_get_it) {
  const auto fact = qualification_fact(none(), tier("confirmation-v1"));
  ASSERT_FALSE(fact);
  EXPECT_EQ(fact.error().code, RefusalCode::meter_not_qualified);
  EXPECT_EQ(fact.error().what, "it is of another boot");
  EXPECT_NE(fact.error().next.find("hebe probe-meter"), std::string::npos);
}

TEST(MeterQualification, a_smoke_run_goes_on_without_and_its_record_says_why) {
  const auto fact = qualification_fact(none(), tier("smoke-v1"));
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->name, "meter.qualification");
  EXPECT_EQ(fact->unavailable, "it is of another boot");
}

TEST(MeterQualification, where_there_is_one_the_record_names_it) {
  for (const char* name : {"confirmation-v1", "smoke-v1"}) {
    const auto fact = qualification_fact(
        evidence::StoredQualification{"file", "0011", nullptr, false}, tier(name));
    ASSERT_TRUE(fact);
    EXPECT_EQ(fact->value, "0011");
  }
}

TEST(MeterQualification, the_simulated_board_needs_none) {
  const test::ScratchFolder folder;
  MachineRequest request;
  request.selector = "sim";
  const auto machine = Machine::open(request).value();
  const auto fact =
      qualified_meter(evidence::DataRoot(folder.path()), *machine, tier("confirmation-v1"));
  ASSERT_TRUE(fact);
  EXPECT_NE(fact->unavailable.find("simulated"), std::string::npos);
}

// --- response records
// ------------------------------------------------------------------------------

// A record of this machine's response, as probe-response stores it.
std::string store_response(const evidence::DataRoot& root, const Machine& machine, double minimum,
                           const std::string& primary = "sim.samples.total_power",
                           const std::string& boot = {}) {
  evidence::QualificationParts p;
  p.subject = qualification_subject(machine).value();
  if (!boot.empty()) p.subject.boot = boot;
  p.provenance = "simulated";
  p.findings = {{"sources", Json::array()},   {"primary", primary}, {"qualified", true},
                {"refusal", nullptr},         {"lag_s", 0.042},     {"pre_roll_s", 0.21},
                {"minimum_window_s", minimum}};
  p.load = {{"case", "test"}};
  return evidence::store_qualification(root, evidence::QualificationKind::response, p).value().id;
}

// Files of runs and what they name; the folders themselves are made with the data root.
int files_of_runs(const std::filesystem::path& root) {
  int n = 0;
  std::error_code ec;
  for (const char* folder : {"runs", "artifacts"})
    for (const auto& e : std::filesystem::recursive_directory_iterator(root / folder, ec))
      n += e.is_regular_file() && e.path().extension() != ".parquet" ? 1 : 0; // a probe's readings
  return n;
}

std::unique_ptr<Machine> sim() {
  MachineRequest request;
  request.selector = "sim";
  return Machine::open(request).value();
}

TEST(KnownResponse, the_boards_present_record_is_followed_and_named) {
  const test::ScratchFolder folder;
  const evidence::DataRoot root(folder.path());
  const auto machine = sim();
  const auto id = store_response(root, *machine, 4.9);
  const auto r = known_response(root, *machine, tier("confirmation-v1"), Seconds(5)).value();
  ASSERT_TRUE(r.record);
  EXPECT_EQ(r.record->id, id);
  EXPECT_DOUBLE_EQ(r.record->lag.value(), 0.042);
  EXPECT_DOUBLE_EQ(r.record->pre_roll.value(), 0.21);
}

TEST(KnownResponse, without_one_of_this_board_boot_and_source_the_reason_is_kept) {
  const test::ScratchFolder folder;
  const evidence::DataRoot root(folder.path());
  const auto machine = sim();
  const auto why = [&] {
    const auto r = known_response(root, *machine, tier("confirmation-v1"), Seconds(5)).value();
    EXPECT_FALSE(r.record);
    return r.why_not;
  };
  EXPECT_NE(why().find("never probed"), std::string::npos) << why();
  store_response(root, *machine, 1, "sim.samples.total_power", "another boot");
  EXPECT_NE(why().find("expired"), std::string::npos) << why();
  store_response(root, *machine, 1, "sim.field.power_instant");
  EXPECT_NE(why().find("runs are measured with sim.samples.total_power"), std::string::npos)
      << why();
}

TEST(KnownResponse, evidence_with_shorter_windows_is_refused_with_the_minimum_and_smoke_is_not) {
  const test::ScratchFolder folder;
  const evidence::DataRoot root(folder.path());
  const auto machine = sim();
  const auto id = store_response(root, *machine, 5.1234);
  const auto r = known_response(root, *machine, tier("confirmation-v1"), Seconds(5));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, RefusalCode::below_tier_minimum);
  EXPECT_EQ(exit_code_of(r.error().code), ExitCode::usage);
  EXPECT_NE(r.error().what.find(id), std::string::npos) << r.error().what;
  EXPECT_EQ(r.error().next, "raise --batch-seconds to 5.13 or more");
  EXPECT_TRUE(known_response(root, *machine, tier("confirmation-v1"), Seconds(5.13)));
  EXPECT_TRUE(known_response(root, *machine, tier("smoke-v1"), Seconds(0.5))->record);
}

TEST(KnownResponse, a_job_is_refused_for_its_window_before_anything_is_written) {
  const test::ScratchFolder folder;
  const evidence::DataRoot root(folder.path());
  store_response(root, *sim(), 6);
  JobRequest request;
  request.tier = tier("confirmation-v1");
  request.window = Seconds(5), request.warm_up = Seconds(30), request.pairs = 12;
  request.machine.selector = "sim";
  for (const bool preview : {false, true}) {
    const auto refusal =
        preview ? preview_job(root, request, {}).error() : run_job(root, request, {}).error();
    EXPECT_EQ(refusal.code, RefusalCode::below_tier_minimum) << refusal.what;
    EXPECT_EQ(files_of_runs(folder.path()), 0);
  }
}

} // namespace
} // namespace hebe::campaign
