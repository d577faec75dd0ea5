// Facts about what a measurement asks of the board's meters before it begins.
#include "campaign/measurement.hpp"

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

} // namespace
} // namespace hebe::campaign
