// Facts about the unit types. What must not compile is in tests/compile_fail.
#include "core/units.hpp"

#include <type_traits>

#include <gtest/gtest.h>

namespace hebe {
namespace {

TEST(Units, power_times_time_is_energy_either_way_round) {
  static_assert(std::is_same_v<decltype(Watts(1) * Seconds(1)), Joules>);
  EXPECT_EQ((Watts(446) * Seconds(5)).value(), 2230);
  EXPECT_EQ((Seconds(5) * Watts(446)).value(), 2230);
}

TEST(Units, energy_divides_back_into_power_and_time) {
  EXPECT_EQ((Joules(2230) / Seconds(5)).value(), 446);
  EXPECT_EQ((Joules(2230) / Watts(446)).value(), 5);
}

TEST(Units, a_ratio_of_equal_units_is_a_bare_number) {
  static_assert(std::is_same_v<decltype(Joules(1) / Joules(1)), double>);
  EXPECT_EQ(Watts(900) / Watts(600), 1.5);
}

TEST(Units, sums_differences_and_scaling_keep_the_unit) {
  auto t = Seconds(1.5);
  t += Seconds(1);
  t -= Seconds(0.5);
  EXPECT_EQ(t, Seconds(2));
  EXPECT_EQ(-t + Seconds(3), Seconds(1));
  EXPECT_EQ(2 * t / 4, Seconds(1));
  EXPECT_LT(Seconds(1), Seconds(2));
  EXPECT_EQ(Seconds().value(), 0);
}

TEST(Units, device_integers_convert_in_one_place) {
  EXPECT_DOUBLE_EQ(from_milliwatts(446'162).value(), 446.162);
  EXPECT_DOUBLE_EQ(from_millijoules(2'857'338).value(), 2857.338);
}

TEST(Units, nanoseconds_survive_the_way_through_seconds) {
  for (const std::int64_t ns : {0L, 1L, -1L, 25'000'000L, 5'000'000'001L, 3'600'000'000'007L})
    EXPECT_EQ(to_nanos(to_seconds(Nanos(ns))).count(), ns);
}

TEST(Units, no_unit_is_made_from_a_bare_number_by_accident) {
  static_assert(!std::is_convertible_v<double, Seconds>);
  static_assert(!std::is_convertible_v<Seconds, double>);
  static_assert(!std::is_convertible_v<Joules, Watts>);
}

} // namespace
} // namespace hebe
