// Facts about stored qualifications: they hold for one board, driver and boot, and say what ended
// them.
#include "evidence/qualification_store.hpp"

#include "core/files.hpp"
#include "measure/source_qualification.hpp"

#include <gtest/gtest.h>

#include "../data/support/probed_gpu.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
using enum QualificationKind;

QualificationParts parts_of(const measure::Recording& recording) {
  QualificationParts p;
  p.subject = {"hebe", "a board", "SIM-1", "sim:0", "driver 1", "boot 1"};
  p.provenance = "simulated";
  p.recording = recording;
  p.findings = measure::to_json(measure::qualify(recording));
  p.load = {{"case", "test"}};
  return p;
}
const measure::Recording& healthy() {
  static const auto r = test::probed();
  return r;
}
Result<Json> find_again(const measure::Recording& r, const Json&) {
  return measure::to_json(measure::qualify(r));
}

TEST(QualificationStore, what_was_stored_is_loaded_and_its_findings_follow_from_its_readings) {
  const test::ScratchFolder scratch;
  const DataRoot root(scratch.path());
  const auto stored = store_qualification(root, meter, parts_of(healthy())).value();
  EXPECT_FALSE(stored.existed);
  EXPECT_TRUE(store_qualification(root, meter, parts_of(healthy()))->existed);
  const auto loaded = load_qualification(root, meter, stored.id.substr(0, 10)).value();
  EXPECT_EQ(loaded.json, stored.json);
  const auto recording = recording_of(root, loaded).value();
  ASSERT_EQ(recording.sources.size(), healthy().sources.size());
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    EXPECT_EQ(recording.sources[i].readings, healthy().sources[i].readings);
  EXPECT_TRUE(verify_qualification(root, meter, stored.id, find_again)->valid());
}

TEST(QualificationStore, findings_that_do_not_follow_are_named) {
  const test::ScratchFolder scratch;
  const DataRoot root(scratch.path());
  auto parts = parts_of(healthy());
  parts.findings["sources"][0]["findings"]["period_s"]["median"] = 0.019;
  const auto stored = store_qualification(root, meter, parts).value();
  const auto report = verify_qualification(root, meter, stored.id, find_again).value();
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(report.problems[0].code, RefusalCode::analysis_mismatch);
  EXPECT_NE(report.problems[0].what.find("median"), std::string::npos) << report.problems[0].what;
}

TEST(QualificationStore, it_holds_for_this_board_driver_and_boot_alone_and_says_what_changed) {
  const test::ScratchFolder scratch;
  const DataRoot root(scratch.path());
  const auto never = current_qualification(root, meter, "SIM-1", "driver 1", "boot 1");
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, RefusalCode::meter_not_qualified);
  EXPECT_NE(never.error().what.find("never probed"), std::string::npos);
  const auto id = store_qualification(root, meter, parts_of(healthy()))->id;
  EXPECT_EQ(current_qualification(root, meter, "SIM-1", "driver 1", "boot 1")->id, id);
  for (const auto& [uuid, driver, boot, says] :
       {std::tuple("SIM-2", "driver 1", "boot 1", "never probed"),
        {"SIM-1", "driver 2", "boot 1", "driver: \"driver 1\" then, \"driver 2\" now"},
        {"SIM-1", "driver 1", "boot 2", "boot: \"boot 1\" then, \"boot 2\" now"}}) {
    const auto current = current_qualification(root, meter, uuid, driver, boot);
    ASSERT_FALSE(current) << says;
    EXPECT_EQ(current.error().code, RefusalCode::meter_not_qualified);
    EXPECT_NE(current.error().what.find(says), std::string::npos) << current.error().what;
    EXPECT_NE(current.error().next.find("probe-meter"), std::string::npos);
  }
  EXPECT_FALSE(current_qualification(root, response, "SIM-1", "driver 1", "boot 1"));
}

TEST(QualificationStore, a_meter_that_was_found_unfit_does_not_qualify) {
  const test::ScratchFolder scratch;
  const DataRoot root(scratch.path());
  (void)store_qualification(root, meter, parts_of(test::probed(1, {"counter_frozen@0"}))).value();
  const auto current = current_qualification(root, meter, "SIM-1", "driver 1", "boot 1");
  ASSERT_FALSE(current);
  EXPECT_NE(current.error().what.find("no cross-check"), std::string::npos) << current.error().what;
}

TEST(QualificationStore, readings_of_another_record_are_refused) {
  const test::ScratchFolder scratch;
  const DataRoot root(scratch.path());
  const auto a = store_qualification(root, meter, parts_of(healthy())).value();
  const auto b = store_qualification(root, meter, parts_of(test::probed(2))).value();
  const auto file = [&](const StoredQualification& s) {
    return root.path() / s.json.at("readings").at("path").get<std::string>();
  };
  ASSERT_TRUE(write_file_whole(file(a), read_file(file(b)).value()));
  EXPECT_EQ(recording_of(root, a).error().code, RefusalCode::digest_mismatch);
}

} // namespace
} // namespace hebe::evidence
