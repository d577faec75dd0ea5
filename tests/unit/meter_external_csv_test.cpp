// Facts about the log of an external power meter.
#include "meter/external_csv.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::meter {
namespace {
using testing::HasSubstr;

constexpr ExternalCsvLimits kFew{1.0, 2, 1 << 20};

Result<ExternalTrace> trace(const std::string& text, const ExternalCsvLimits& limits = kFew) {
  return external_trace_from(text, "log.csv", limits);
}

TEST(ExternalCsv, plain_seconds_and_watts_are_read_as_written) {
  for (const char* header : {"time_s,power_w", "t,watts", "t,W", "Time (s),Power (W)",
                             "\"Time [s]\", \"Power [W]\"", "seconds,power_w", "elapsed_s,p_w"}) {
    const auto t = trace(std::string(header) + "\n10,100.5\r\n10.25,-0.5\n\n11,3e2\n");
    ASSERT_TRUE(t) << header << ": " << to_text(t.error());
    EXPECT_THAT(t->time_s, testing::ElementsAre(0, 0.25, 1)) << header;
    EXPECT_THAT(t->power_w, testing::ElementsAre(100.5, -0.5, 300)) << header;
    EXPECT_EQ(t->first_s, 10);
    EXPECT_FALSE(t->first_wall_us) << "a plain number says nothing about the wall clock";
  }
}

TEST(ExternalCsv, units_come_from_the_header) {
  EXPECT_THAT(trace("time_ms,power_mW\n0,5000\n500,7000\n")->power_w, testing::ElementsAre(5, 7));
  EXPECT_THAT(trace("time_ms,power_mW\n0,5000\n500,7000\n")->time_s, testing::ElementsAre(0, 0.5));
  EXPECT_THAT(trace("time_us,kW\n0,1\n500000,2\n")->power_w, testing::ElementsAre(1000, 2000));
  EXPECT_THAT(trace("time_ns,milliwatts\n0,1000\n5,2000\n")->power_w, testing::ElementsAre(1, 2));
}

TEST(ExternalCsv, other_columns_are_allowed_and_a_byte_order_mark_too) {
  const auto t = trace("\xEF\xBB\xBFvolts,power_w,amperes,time_s\n12,100,8,0\n12,110,9,0.5\n");
  ASSERT_TRUE(t) << to_text(t.error());
  EXPECT_THAT(t->power_w, testing::ElementsAre(100, 110));
  EXPECT_EQ(t->time_column, "time_s");
  EXPECT_EQ(t->power_column, "power_w");
}

TEST(ExternalCsv, iso_times_are_read_to_the_microsecond_across_midnight) {
  const auto t =
      trace("timestamp,power_w\n2024-02-29T23:59:59.750001Z,1\n2024-03-01T00:00:00.5Z,2\n");
  ASSERT_TRUE(t) << to_text(t.error());
  EXPECT_THAT(t->time_s, testing::ElementsAre(0, testing::DoubleNear(0.749999, 1e-9)));
  EXPECT_EQ(t->first_wall_us, 1709251199750001);
  const auto ahead = trace("time,W\n2024-03-01 01:29:59+01:30,1\n2024-03-01 01:30:00+01:30,2\n");
  ASSERT_TRUE(ahead) << to_text(ahead.error());
  EXPECT_EQ(ahead->first_wall_us, 1709251199000000);
  const auto local = trace("time,W\n2024-03-01T01:00:00,1\n2024-03-01T01:00:01,2\n");
  ASSERT_TRUE(local);
  EXPECT_FALSE(local->first_wall_us) << "a time without a zone is on a clock of its own";
}

struct Wrong {
  const char* name;
  std::string text;
  RefusalCode code;
  const char *where, *says;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }
class ExternalCsvWrong : public testing::TestWithParam<Wrong> {};

TEST_P(ExternalCsvWrong, is_refused_with_its_line) {
  const auto t = trace(GetParam().text);
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, GetParam().code);
  EXPECT_EQ(t.error().where, GetParam().where);
  EXPECT_THAT(t.error().what, HasSubstr(GetParam().says));
  EXPECT_FALSE(t.error().next.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ExternalCsvWrong,
    testing::Values(
        Wrong{"nothing", "", RefusalCode::meter_empty, "log.csv:1", "empty"},
        Wrong{"only_blank_lines", "\n \n", RefusalCode::meter_empty, "log.csv:1", "empty"},
        Wrong{"header_only", "time_s,power_w\n", RefusalCode::meter_empty, "log.csv", "0 rows"},
        Wrong{"too_few", "time_s,power_w\n0,1\n", RefusalCode::meter_empty, "log.csv", "1 rows"},
        Wrong{"no_header", "0,1\n1,2\n", RefusalCode::bad_schema, "log.csv:1", "0 time"},
        Wrong{"no_power", "time_s,volts\n0,1\n", RefusalCode::bad_schema, "log.csv:1", "0 power"},
        Wrong{"two_powers", "time_s,power_w,power_mw\n0,1,1\n", RefusalCode::bad_schema,
              "log.csv:1", "2 power"},
        Wrong{"two_times", "time_s,timestamp,power_w\n0,1,1\n", RefusalCode::bad_schema,
              "log.csv:1", "2 time"},
        Wrong{"semicolons", "time_s;power_w\n0;1\n", RefusalCode::bad_schema, "log.csv:1", ";"},
        Wrong{"megawatts", "time_s,power_MW\n0,1\n", RefusalCode::bad_schema, "log.csv:1",
              "\"MW\""},
        Wrong{"bare_megawatts", "time_s,MW\n0,1\n", RefusalCode::bad_schema, "log.csv:1", "MW"},
        Wrong{"horse_power", "time_s,Power (hp)\n0,1\n", RefusalCode::bad_schema, "log.csv:1",
              "\"hp\""},
        Wrong{"joules", "time_s,power_J\n0,1\n", RefusalCode::bad_schema, "log.csv:1", "\"J\""},
        Wrong{"no_power_unit", "time_s,power\n0,1\n", RefusalCode::bad_schema, "log.csv:1",
              "names no unit"},
        Wrong{"minutes", "time_min,power_w\n0,1\n", RefusalCode::bad_schema, "log.csv:1",
              "\"min\""},
        Wrong{"no_time_unit", "time,power_w\n0,1\n1,1\n", RefusalCode::bad_schema, "log.csv:2",
              "names no unit"},
        Wrong{"nan", "time_s,power_w\n0,1\n0.5,nan\n", RefusalCode::meter_implausible, "log.csv:3",
              "nan"},
        Wrong{"infinite", "time_s,power_w\n0,1\n0.5,inf\n", RefusalCode::meter_implausible,
              "log.csv:3", "inf"},
        Wrong{"nan_time", "time_s,power_w\nnan,1\n", RefusalCode::bad_schema, "log.csv:2", "nan"},
        Wrong{"text", "time_s,power_w\n0,overload\n", RefusalCode::bad_schema, "log.csv:2",
              "overload"},
        Wrong{"no_value", "time_s,power_w\n0,\n", RefusalCode::bad_schema, "log.csv:2",
              "not a number"},
        Wrong{"decimal_comma", "time_s,power_w\n0,1,5\n", RefusalCode::bad_schema, "log.csv:2",
              "3 columns where the header has 2"},
        Wrong{"cut_off", "time_s,power_w\n0,1\n0.5", RefusalCode::bad_schema, "log.csv:3",
              "1 columns"},
        Wrong{"gap", "time_s,power_w\n0,1\n0.5,1\n\n2,1\n", RefusalCode::meter_gap, "log.csv:5",
              "1.5 s after line 3"},
        Wrong{"unsorted", "time_s,power_w\n0,1\n0.5,1\n0.25,1\n", RefusalCode::bad_schema,
              "log.csv:4", "0.25 s before line 3"},
        Wrong{"same_time_twice", "time_s,power_w\n0,1\n0.5,1\n0.5,2\n", RefusalCode::bad_schema,
              "log.csv:4", "same time as line 3"},
        Wrong{"iso_month_13", "time,W\n2024-13-01T00:00:00Z,1\n", RefusalCode::bad_schema,
              "log.csv:2", "ISO 8601"},
        Wrong{"iso_30_february", "time,W\n2024-02-30T00:00:00Z,1\n", RefusalCode::bad_schema,
              "log.csv:2", "ISO 8601"},
        Wrong{"iso_second_60", "time,W\n2024-02-01T00:00:60Z,1\n", RefusalCode::bad_schema,
              "log.csv:2", "ISO 8601"},
        Wrong{"iso_trailing", "time,W\n2024-02-01T00:00:00Zulu,1\n", RefusalCode::bad_schema,
              "log.csv:2", "ISO 8601"},
        Wrong{"zones_mixed", "time,W\n2024-02-01T00:00:00Z,1\n2024-02-01T00:00:01,1\n",
              RefusalCode::bad_schema, "log.csv:3", "zone"}),
    [](const auto& tested) { return tested.param.name; });

TEST(ExternalCsv, a_file_is_read_whole_or_refused) {
  const test::ScratchFolder folder;
  test::overwrite(folder / "log.csv", "time_s,power_w\n0,1\n0.5,2\n");
  EXPECT_EQ(read_external_csv(folder / "log.csv", kFew)->power_w.size(), 2U);
  EXPECT_FALSE(read_external_csv(folder / "log.csv")) << "two rows are too few by default";
  EXPECT_FALSE(read_external_csv(folder / "log.csv", {1.0, 2, 8})) << "over the largest size";
  EXPECT_EQ(read_external_csv(folder / "absent.csv").error().code, RefusalCode::io_failed);
  EXPECT_FALSE(read_external_csv(folder.path()));
  ASSERT_EQ(::mkfifo((folder / "pipe.csv").c_str(), 0600), 0);
  EXPECT_FALSE(read_external_csv(folder / "pipe.csv")) << "a pipe must not be waited for";
}

} // namespace
} // namespace hebe::meter
