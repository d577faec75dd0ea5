// Facts about profiles: what may be recorded, written and read.
#include "core/files.hpp"
#include "tune_rows.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace hebe::tune {
namespace {
namespace fs = std::filesystem;
using test::profile_of;
using test::sound_row;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class ProfileFile : public testing::Test {
protected:
  ProfileFile() { fs::create_directories(folder_); }
  ~ProfileFile() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / ("hebe_profile_" + std::to_string(::getpid()));
  fs::path file_ = folder_ / "profile.json";
};

// What each change to a sound row is refused for.
struct Unsound {
  const char* reason;
  void (*change)(ProfileRow&);
};
const Unsound kUnsound[] = {
    {"energy_nj is 0: nothing costs that", [](ProfileRow& r) { r.energy_nj.value = 0; }},
    {"energy_nj is 0",
     [](ProfileRow& r) {
       r.energy_nj = {0, 0, 0};
     }},
    {"energy_nj is 0",
     [](ProfileRow& r) {
       r.energy_nj = {0, 0.1, 0.4};
     }},
    {"energy_nj is -5",
     [](ProfileRow& r) {
       r.energy_nj = {-5, -6, -4};
     }},
    {"time_ns is 0", [](ProfileRow& r) { r.time_ns.value = 0; }},
    {"energy_nj has the interval", [](ProfileRow& r) { r.energy_nj.low = kNan; }},
    {"energy_nj has the interval", [](ProfileRow& r) { r.energy_nj.high = kInfinity; }},
    {"energy_nj has the interval", [](ProfileRow& r) { r.energy_nj.low = 0; }},
    {"outside its interval", [](ProfileRow& r) { r.energy_nj.value = 5; }},
    {"outside its interval", [](ProfileRow& r) { r.time_ns.high = 1; }},
    {"not exact in JSON", [](ProfileRow& r) { r.energy_nj.value = std::int64_t{1} << 53; }},
    {"the baseline's energy_nj is 0", [](ProfileRow& r) { r.baseline->energy_nj.value = 0; }},
    {"its meter is not believed", [](ProfileRow& r) { r.meter.status = "frozen"; }},
    {"names no study or run",
     [](ProfileRow& r) {
       r.study.reset();
       r.runs.clear();
     }},
    {"says measured and was downgraded", [](ProfileRow& r) { r.downgraded = {"old"}; }},
    {"a verdict and no baseline", [](ProfileRow& r) { r.baseline.reset(); }},
    {"no verdict \"better\"", [](ProfileRow& r) { r.verdict = "better"; }},
    {"no UTC date", [](ProfileRow& r) { r.date = "2026-02-30T00:00:00Z"; }},
    {"no UTC date", [](ProfileRow& r) { r.date = "yesterday"; }},
    {"is no dimension of a shape", [](ProfileRow& r) { r.key.shape = "m<=255"; }},
    {"is empty", [](ProfileRow& r) { r.platform.driver.clear(); }},
    {"the implementation has no name", [](ProfileRow& r) { r.implementation.name.clear(); }},
    {"no JSON object", [](ProfileRow& r) { r.implementation.configuration = 3; }},
};

TEST(Profile, records_no_zero_and_nothing_else_that_is_unsound) {
  for (const auto& [reason, change] : kUnsound) {
    auto row = sound_row();
    change(row);
    Profile profile;
    const auto taken = profile.record(row, "p.json");
    ASSERT_FALSE(taken) << reason;
    EXPECT_EQ(taken.error().code, RefusalCode::bad_schema);
    EXPECT_THAT(taken.error().what, HasSubstr(reason));
    EXPECT_THAT(taken.error().what,
                HasSubstr("meter nvml.samples.total_power: " + row.meter.status));
    EXPECT_EQ(taken.error().not_written, "p.json");
    EXPECT_TRUE(profile.rows().empty());
  }
}

TEST(Profile, refuses_a_second_row_of_one_key) {
  auto profile = profile_of({sound_row()});
  auto again = sound_row();
  again.energy_nj.value += 1;
  const auto taken = profile.record(again, "p.json");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, RefusalCode::already_exists);
  EXPECT_THAT(taken.error().what, HasSubstr("matmul m<=256,n=4096,k=4096 bf16 on NVIDIA H200"));
  EXPECT_EQ(profile.find(sound_row().key)->energy_nj.value, 12'655'000);
}

TEST_F(ProfileFile, comes_back_as_it_was_and_in_the_same_bytes) {
  auto plain = sound_row("m<=1,n=4096,k=4096");
  plain.baseline.reset();
  plain.verdict.reset();
  plain.platform.triton.reset();
  plain.platform.board_uuid.reset();
  plain.implementation.artifact_sha256.reset();
  plain.meter.provenance = Provenance::simulated;
  const auto profile = profile_of({sound_row(), plain});
  ASSERT_TRUE(write_profile(file_, profile));
  EXPECT_EQ(read_profile(file_).value(), profile);
  const auto bytes = read_file(file_).value();
  ASSERT_TRUE(write_profile(file_, profile_of({plain, sound_row()})));
  EXPECT_EQ(read_file(file_).value(), bytes);
}

TEST_F(ProfileFile, without_rows_is_not_written) {
  const auto written = write_profile(file_, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, RefusalCode::gate_failed);
  EXPECT_EQ(written.error().not_written, file_.string());
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ProfileFile, that_nobody_would_read_is_not_written) {
  const auto profile = profile_of({sound_row()});
  ASSERT_TRUE(write_profile(file_, profile));
  const auto size = fs::file_size(file_);
  EXPECT_TRUE(write_profile(file_, profile, size));
  const auto written = write_profile(folder_ / "larger.json", profile, size - 1);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, RefusalCode::bad_argument);
  EXPECT_EQ(written.error().not_written, (folder_ / "larger.json").string());
  EXPECT_THAT(written.error().what, HasSubstr(std::to_string(size) + " bytes"));
  EXPECT_FALSE(fs::exists(folder_ / "larger.json"));
}

TEST_F(ProfileFile, is_whole_or_stays_as_it_was) {
  ASSERT_TRUE(write_profile(file_, profile_of({sound_row()})));
  const auto before = read_file(file_).value();
  EXPECT_FALSE(write_profile(file_, {}));
  EXPECT_EQ(read_file(file_).value(), before);
  auto bad = sound_row();
  bad.implementation.configuration = {{"scale", kNan}}; // JSON has no such number
  const auto written = write_profile(file_, profile_of({bad}));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().not_written, file_.string());
  EXPECT_EQ(read_file(file_).value(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(ProfileFile, that_was_edited_is_refused_with_its_place) {
  const auto refused = [&](const Json& json) {
    std::ofstream(file_) << json;
    const auto got = read_profile(file_);
    EXPECT_FALSE(got) << json;
    if (got) return std::string();
    EXPECT_EQ(got.error().code, RefusalCode::bad_schema) << got.error().what;
    EXPECT_EQ(got.error().where.substr(0, file_.string().size()), file_.string());
    return got.error().what;
  };
  const Json sound = json_of(profile_of({sound_row()}));
  auto edited = sound;
  edited["rows"].push_back(edited["rows"][0]);
  EXPECT_THAT(refused(edited), HasSubstr("is there twice"));
  for (const auto& [pointer, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"/rows/0/energy_nj/value", 0},
                                                           {"/rows/0/energy_nj/value", 1.5},
                                                           {"/rows/0/energy_nj/low", 0},
                                                           {"/rows/0/time_ns/value", -1},
                                                           {"/rows/0/meter/status", "frozen"},
                                                           {"/rows/0/provenance", "guessed"},
                                                           {"/rows/0/shape", "m<=255"},
                                                           {"/rows/0/shape", "m<=256,m=3"},
                                                           {"/rows/0/date", "2026-13-01T00:00:00Z"},
                                                           {"/rows/0/downgraded", {"x"}},
                                                           {"/rows", Json::array()},
                                                           {"/schema", "hebe.profile/2"}}) {
    edited = sound;
    edited[Json::json_pointer(pointer)] = value;
    refused(edited);
  }
  edited = sound;
  edited["rows"][0].erase("idle");
  refused(edited);
  EXPECT_EQ(read_profile(folder_ / "none.json").error().code, RefusalCode::not_found);
}

TEST(ProfileDate, counts_seconds_and_knows_the_calendar) {
  EXPECT_EQ(seconds_of_date("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(seconds_of_date("2026-11-30T04:20:00Z"), 1796012400);
  EXPECT_TRUE(seconds_of_date("2024-02-29T23:59:59Z"));
  for (const char* bad : {"2023-02-29T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z",
                          "2024-01-01 00:00:00Z", "2024-01-01T00:00:00", ""})
    EXPECT_FALSE(seconds_of_date(bad)) << bad;
}

} // namespace
} // namespace hebe::tune
