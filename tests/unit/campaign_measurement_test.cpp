// Facts about what a measurement asks of the board's meters before it begins.
#include "campaign/job.hpp"
#include "campaign/probe_session.hpp"

#include <gtest/gtest.h>

#include "../data/support/found_board.hpp"
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

// --- a board that is not simulated
// -------------------------------------------------------------------

JobRequest evidence_job(const char* tier_name) {
  JobRequest request;
  request.tier = tier(tier_name);
  request.window = Seconds(5), request.warm_up = Seconds(30), request.pairs = 12;
  return request;
}

TEST(MeterQualification, a_real_board_without_one_is_refused_before_anything_is_written) {
  const test::ScratchFolder folder;
  const evidence::DataRoot root(folder.path() / "root");
  auto machine = test::found_board();
  ASSERT_FALSE(machine->simulated());
  const auto fact = qualified_meter(root, *machine, tier("confirmation-v1"));
  ASSERT_FALSE(fact);
  EXPECT_EQ(fact.error().code, RefusalCode::meter_not_qualified);
  EXPECT_EQ(exit_code_of(fact.error().code), ExitCode::unfit_environment);
  EXPECT_FALSE(std::filesystem::exists(root.path()));

  const auto leased = lease_machine(root, evidence_job("confirmation-v1"), std::move(machine), {});
  ASSERT_FALSE(leased);
  EXPECT_EQ(leased.error().code, RefusalCode::meter_not_qualified);
  EXPECT_NE(leased.error().what.find("never probed"), std::string::npos) << leased.error().what;
  EXPECT_EQ(files_of_runs(root.path()), 0);
}

TEST(MeterQualification, a_smoke_job_on_a_real_board_says_that_it_has_neither_record) {
  const test::ScratchFolder folder;
  const evidence::DataRoot root(folder.path() / "root");
  std::vector<std::string> notices;
  JobCallbacks callbacks;
  callbacks.notice = [&](const std::string& text) { notices.push_back(text); };
  const auto leased = lease_machine(root, evidence_job("smoke-v1"), test::found_board(), callbacks);
  ASSERT_TRUE(leased) << leased.error().what;
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("hebe probe-response"), std::string::npos) << notices[0];
}

TEST(MeterQualification, of_another_boot_driver_or_board_it_does_not_hold_on_a_real_board) {
  const auto machine = test::found_board();
  const auto here = qualification_subject(*machine).value();
  const auto fact_with = [&](auto change) {
    const test::ScratchFolder folder;
    const evidence::DataRoot root(folder.path());
    evidence::QualificationParts p;
    p.subject = here;
    change(p);
    p.provenance = "measured";
    p.load = {{"case", "test"}};
    (void)evidence::store_qualification(root, evidence::QualificationKind::meter, p).value();
    return qualified_meter(root, *machine, tier("confirmation-v1"));
  };
  const Json sound{{"sources", Json::array()},  {"reference", nullptr},
                   {"primary", "nvml.samples"}, {"cross_check", "nvml.counter"},
                   {"refusal", nullptr},        {"qualified", true}};
  EXPECT_TRUE(fact_with([&](auto& p) { p.findings = sound; }));
  using Change = std::function<void(evidence::QualificationParts&)>;
  const std::pair<const char*, Change> rows[] = {
      {"expired: boot", [](auto& p) { p.subject.boot = "another"; }},
      {"expired: driver", [](auto& p) { p.subject.driver = "another"; }},
      {"never probed", [](auto& p) { p.subject.uuid = "GPU-another"; }},
      {"not qualified: it lies",
       [](auto& p) { p.findings["qualified"] = false, p.findings["refusal"] = "it lies"; }}};
  for (const auto& [what, change] : rows) {
    const auto fact = fact_with([&](auto& p) { p.findings = sound, change(p); });
    ASSERT_FALSE(fact) << what;
    EXPECT_EQ(fact.error().code, RefusalCode::meter_not_qualified);
    EXPECT_NE(fact.error().what.find(what), std::string::npos) << fact.error().what;
  }
}

} // namespace
} // namespace hebe::campaign
