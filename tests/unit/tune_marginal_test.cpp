// Facts about marginal energy: what it is, and every way in which it is refused instead of zero.
#include "tune/marginal.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hebe::tune {
namespace {
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const MeterIdentity kMeter{"nvml.counter.total_energy", "primary", Provenance::measured};

// A window of an H200's counter, in mJ.
MeteredWindow counter(std::int64_t first_mj, std::int64_t last_mj, double seconds) {
  CounterWindow w;
  w.first_count = first_mj;
  w.last_count = last_mj;
  w.last_at = to_nanos(Seconds(seconds));
  w.per_count = from_millijoules(1);
  return {kMeter, w};
}

MeteredWindow power(double watts, double error, double seconds) {
  return {kMeter, PowerWindow{Watts(watts), Watts(error), to_nanos(Seconds(seconds))}};
}

MarginalRequest request(MeteredWindow busy, MeteredWindow idle, std::int64_t operations) {
  return {std::move(busy), std::move(idle), Idle::context_open, operations, "profile.json"};
}

// Every refusal says the file, the reason and the meter's status.
void expect_refused(const Result<MarginalCost>& got, RefusalCode code, const std::string& reason,
                    const std::string& status = "primary") {
  ASSERT_FALSE(got) << "a cost of " << got->cost_nj << " nJ";
  EXPECT_EQ(name_of(got.error().code), name_of(code));
  EXPECT_THAT(got.error().what, HasSubstr(reason));
  EXPECT_EQ(got.error().not_written, "profile.json");
  EXPECT_THAT(got.error().what, HasSubstr(": " + status));
  EXPECT_THAT(to_text(got.error()), HasSubstr("profile.json"));
}

TEST(Marginal, is_busy_energy_less_idle_power_for_as_long_by_operation) {
  // 3 156 J in 5 s against 125 W: 2 531 J for 200 000 launches.
  const auto got =
      marginal_cost(request(counter(7, 3'156'007, 5), counter(0, 1'250'000, 10), 200'000));
  ASSERT_TRUE(got) << to_text(got.error());
  EXPECT_EQ(got->cost_nj, 12'655'000);
  EXPECT_DOUBLE_EQ(got->idle.value(), 625);
  EXPECT_DOUBLE_EQ(got->marginal.value(), 2531);
  EXPECT_EQ(got->idle_state, Idle::context_open);
  EXPECT_EQ(got->meter, kMeter);
  EXPECT_DOUBLE_EQ(got->duration.value(), 5);
}

TEST(Marginal, interval_combines_the_errors_of_busy_and_idle) {
  const auto got = marginal_cost(request(power(600, 0.3, 5), power(120, 0.4, 20), 1000));
  ASSERT_TRUE(got) << to_text(got.error());
  EXPECT_NEAR(got->standard_error.value(), 2.5, 1e-12); // 5 s of √(0.3² + 0.4²) W
  EXPECT_NEAR(got->high_nj - got->exact_nj, kNormal95 * 2.5e6, 1);
  EXPECT_NEAR(got->exact_nj - got->low_nj, kNormal95 * 2.5e6, 1);
}

TEST(Marginal, interval_knows_that_a_counter_is_read_in_whole_counts) {
  const auto got = marginal_cost(request(counter(0, 1000, 1), counter(0, 100, 1), 1));
  ASSERT_TRUE(got) << to_text(got.error());
  EXPECT_NEAR(got->standard_error.value(), 1e-3 / std::sqrt(3.0), 1e-12);
}

TEST(Marginal, an_idle_counter_that_holds_is_no_idle_of_0_W) {
  expect_refused(marginal_cost(request(counter(0, 3'000'000, 5), counter(42, 42, 7.5), 10)),
                 RefusalCode::meter_frozen, "the idle window did not advance in 7.5 s (42 to 42)");
  expect_refused(marginal_cost(request(power(600, 1, 5), power(0, 1, 5), 10)),
                 RefusalCode::meter_implausible,
                 "the idle window has a mean power of 0 W over 5 s");
}

TEST(Marginal, a_busy_counter_that_holds_costs_nothing_that_is_known) {
  expect_refused(marginal_cost(request(counter(9, 9, 5), counter(0, 600'000, 5), 10)),
                 RefusalCode::meter_frozen, "the busy window did not advance in 5 s");
}

TEST(Marginal, a_counter_that_goes_backwards_is_refused_in_either_window) {
  expect_refused(marginal_cost(request(counter(10, 9, 5), counter(0, 1, 5), 10)),
                 RefusalCode::meter_backwards, "the busy window has a counter that went backwards");
  expect_refused(marginal_cost(request(counter(0, 9, 5), counter(3, 1, 5), 10)),
                 RefusalCode::meter_backwards, "3 to 1");
}

TEST(Marginal, at_or_below_idle_is_refused_with_both_and_never_clamped) {
  expect_refused(marginal_cost(request(counter(0, 600'000, 5), counter(0, 625'000, 5), 10)),
                 RefusalCode::gate_failed,
                 "at or below idle: 120 W against 125 W (context_open) over 5 s");
  expect_refused(marginal_cost(request(power(125, 1, 5), power(125, 1, 9), 10)),
                 RefusalCode::gate_failed, "125 W against 125 W");
}

TEST(Marginal, what_cannot_be_told_from_idle_is_refused) {
  expect_refused(marginal_cost(request(power(126, 1, 5), power(125, 1, 5), 10)),
                 RefusalCode::gate_failed, "cannot be told from idle");
}

TEST(Marginal, a_cost_that_rounds_to_0_says_its_value_and_how_many_make_a_nanojoule) {
  const auto got =
      marginal_cost(request(counter(0, 2'000, 1), counter(0, 1'000, 1), 4'000'000'000));
  expect_refused(got, RefusalCode::gate_failed, "0.25 nJ an operation (4000000000 operations)");
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().next, HasSubstr("at least 4 of them as one operation"));
  EXPECT_THAT(got.error().next, HasSubstr("room for 1000000000 operations"));
  EXPECT_TRUE(marginal_cost(request(counter(0, 2'000, 1), counter(0, 1'000, 1), 1'000'000'000)));
}

TEST(Marginal, windows_without_time_and_work_without_operations_are_refused) {
  for (const double seconds : {0.0, -1.0}) {
    expect_refused(marginal_cost(request(counter(0, 9, seconds), counter(0, 1, 5), 10)),
                   RefusalCode::bad_argument, "a window takes time");
    expect_refused(marginal_cost(request(counter(0, 9, 1), power(1, 1, seconds), 10)),
                   RefusalCode::bad_argument, "a window takes time");
  }
  for (const std::int64_t operations : {0, -3})
    expect_refused(marginal_cost(request(counter(0, 9, 1), counter(0, 1, 1), operations)),
                   RefusalCode::bad_argument, "operations: there is none to cost");
}

TEST(Marginal, what_is_not_finite_is_refused) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    EXPECT_FALSE(marginal_cost(request(power(bad, 1, 1), power(1, 1, 1), 10))) << bad;
    EXPECT_FALSE(marginal_cost(request(power(9, bad, 1), power(1, 1, 1), 10))) << bad;
    EXPECT_FALSE(marginal_cost(request(power(9, 1, 1), power(bad, 1, 1), 10))) << bad;
    auto odd = counter(0, 5, 1);
    std::get<CounterWindow>(odd.readings).per_count = Joules(bad);
    EXPECT_FALSE(marginal_cost(request(odd, power(1, 1, 1), 10))) << bad;
  }
  expect_refused(marginal_cost(request(power(600, 0, 5), power(125, 1, 5), 10)),
                 RefusalCode::bad_argument, "a mean without an error was not measured");
}

TEST(Marginal, a_backend_that_was_not_measured_is_not_0) {
  auto unmeasured = request(counter(0, 9, 1), counter(0, 1, 1), 10);
  unmeasured.busy.reset();
  expect_refused(marginal_cost(unmeasured), RefusalCode::meter_not_qualified,
                 "the busy window was not measured", "not measured");
  unmeasured = request(counter(0, 9, 1), counter(0, 1, 1), 10);
  unmeasured.idle.reset();
  expect_refused(marginal_cost(unmeasured), RefusalCode::meter_not_qualified,
                 "the idle window was not measured", "not measured");
}

TEST(Marginal, a_meter_that_declined_gives_no_cost_whatever_it_reads) {
  for (const auto& [status, code] :
       {std::pair<const char*, RefusalCode>{"frozen", RefusalCode::meter_frozen},
        {"no_permission", RefusalCode::no_permission},
        {"lies", RefusalCode::meter_not_qualified},
        {"", RefusalCode::meter_not_qualified}}) {
    auto declined = request(counter(0, 9'000, 1), counter(0, 1'000, 1), 10);
    declined.busy->meter =
        declined.idle->meter = {"perf.energy-psys", status, Provenance::measured};
    const auto got = marginal_cost(declined);
    expect_refused(got, code, "perf.energy-psys", status);
  }
}

TEST(Marginal, measured_and_simulated_do_not_mix_nor_two_meters) {
  auto mixed = request(counter(0, 9'000, 1), counter(0, 1'000, 1), 10);
  mixed.idle->meter.provenance = Provenance::simulated;
  expect_refused(marginal_cost(mixed), RefusalCode::bad_argument,
                 "measured and the idle window simulated");
  mixed.busy->meter.provenance = Provenance::simulated;
  EXPECT_EQ(marginal_cost(mixed).value().meter.provenance, Provenance::simulated);
  mixed.idle->meter.name = "another";
  expect_refused(marginal_cost(mixed), RefusalCode::bad_argument, "different meters");
}

TEST(CostRatio, is_undefined_unless_both_are_positive_and_finite) {
  EXPECT_DOUBLE_EQ(cost_ratio({3, kMeter}, {2, kMeter}, "p").value(), 1.5);
  for (const double bad : {0.0, -1.0, kNan, kInfinity})
    for (const auto& [a, b] : {std::pair(bad, 1.0), std::pair(1.0, bad), std::pair(bad, bad)}) {
      const auto got = cost_ratio({a, kMeter}, {b, kMeter}, "placement.json");
      ASSERT_FALSE(got) << a << "/" << b << " = " << *got;
      EXPECT_EQ(got.error().code, RefusalCode::meter_implausible);
      EXPECT_EQ(got.error().not_written, "placement.json");
      EXPECT_THAT(got.error().what, HasSubstr(": primary"));
    }
  EXPECT_FALSE(cost_ratio({1e308, kMeter}, {1e-308, kMeter}, "p"));
  EXPECT_FALSE(cost_ratio({1e-308, kMeter}, {1e308, kMeter}, "p"));
  EXPECT_FALSE(cost_ratio({1, {"m", "frozen", Provenance::measured}}, {1, kMeter}, "p"));
  EXPECT_FALSE(cost_ratio({1, {"m", "usable", Provenance::simulated}}, {1, kMeter}, "p"));
}

} // namespace
} // namespace hebe::tune
