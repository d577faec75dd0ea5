// Facts about facts: a value with its source, or the reason why there is none.
#include "core/fact.hpp"
#include "core/provenance.hpp"

#include <gtest/gtest.h>

namespace hebe {
namespace {

TEST(Fact, has_a_value_or_a_reason_never_both_and_never_neither) {
  const auto yes = to_json(known("board.power_limit_w", 700.0, "NVML")),
             no = to_json(unknown("board.vbios", "NVML", "not supported"));
  EXPECT_EQ(yes, (Json{{"name", "board.power_limit_w"}, {"source", "NVML"}, {"value", 700.0}}));
  EXPECT_EQ(no,
            (Json{{"name", "board.vbios"}, {"source", "NVML"}, {"unavailable", "not supported"}}));
}

TEST(Fact, a_result_becomes_its_value_or_its_refusals_words) {
  EXPECT_EQ(fact_of("a", Result<int>(3), "s").value, 3);
  const auto missing =
      fact_of("a", Result<int>(refuse(RefusalCode::meter_failed, "no sensor")), "s");
  EXPECT_TRUE(missing.value.is_null());
  EXPECT_EQ(missing.unavailable, "no sensor");
}

TEST(Provenance, names_go_out_and_come_back_and_no_other_is_read) {
  for (const auto p : {Provenance::measured, Provenance::estimated, Provenance::simulated})
    EXPECT_EQ(provenance_from(name_of(p)), p);
  for (const char* other : {"", "Measured", "guessed", "measured "})
    EXPECT_FALSE(provenance_from(other)) << other;
}

} // namespace
} // namespace hebe
