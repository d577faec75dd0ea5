// Facts about profiles over time: merged, compared, expired.
#include "tune/profile_diff.hpp"
#include "tune/profile_expiry.hpp"
#include "tune/profile_merge.hpp"
#include "tune_rows.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hebe::tune {
namespace {
using test::profile_of;
using test::sound_row;
using testing::ElementsAre;
using testing::HasSubstr;

ProfileRow row_of(const char* name, Provenance provenance, const char* date,
                  const char* shape = "m<=256") {
  auto row = sound_row(shape);
  row.implementation.name = name;
  row.meter.provenance = provenance;
  row.date = date;
  return row;
}

std::string kept(const MergedProfile& merged) {
  return merged.profile.find(sound_row("m<=256").key)->implementation.name;
}

TEST(ProfileMerge, keeps_the_newest_measured_and_says_what_it_dropped) {
  const std::vector<NamedProfile> files = {
      {"old.json", profile_of({row_of("old", Provenance::measured, "2026-01-01T00:00:00Z")})},
      {"new.json",
       profile_of({row_of("new", Provenance::measured, "2026-02-01T00:00:00Z"),
                   row_of("only", Provenance::measured, "2026-01-01T00:00:00Z", "m<=1")})}};
  const auto merged = merge_profiles(files).value();
  EXPECT_EQ(kept(merged), "new");
  EXPECT_EQ(merged.profile.rows().size(), 2);
  ASSERT_EQ(merged.conflicts.size(), 1);
  const auto& conflict = merged.conflicts[0];
  EXPECT_EQ(conflict.kept_from, "new.json");
  EXPECT_EQ(conflict.dropped_from, "old.json");
  EXPECT_EQ(conflict.dropped.implementation.name, "old");
  EXPECT_EQ(conflict.reason, "2026-02-01T00:00:00Z is newer than 2026-01-01T00:00:00Z");
}

TEST(ProfileMerge, never_replaces_a_measured_row_by_an_estimated_or_simulated_one) {
  for (const auto other : {Provenance::estimated, Provenance::simulated}) {
    auto cheaper = row_of("other", other, "2030-01-01T00:00:00Z");
    cheaper.energy_nj = {1, 0.9, 1.1};
    const std::vector<NamedProfile> files = {
        {"a", profile_of({cheaper})},
        {"b", profile_of({row_of("measured", Provenance::measured, "2020-01-01T00:00:00Z")})}};
    const auto merged = merge_profiles(files).value();
    EXPECT_EQ(kept(merged), "measured");
    EXPECT_THAT(merged.conflicts.at(0).reason, HasSubstr("measured is kept before"));
  }
}

TEST(ProfileMerge, never_replaces_a_qualified_row_by_a_newer_one_that_is_not) {
  auto strong = row_of("strong", Provenance::measured, "2026-01-01T00:00:00Z");
  strong.qualified = true;
  for (const auto& said : {std::optional<bool>(), std::optional(false)}) {
    auto smoke = row_of("smoke", Provenance::measured, "2026-02-01T00:00:00Z");
    smoke.qualified = said;
    const auto merged = merge_profiles(std::vector<NamedProfile>{{"a", profile_of({smoke})},
                                                                 {"b", profile_of({strong})}})
                            .value();
    EXPECT_EQ(kept(merged), "strong");
    EXPECT_THAT(merged.conflicts.at(0).reason, HasSubstr("qualified run"));
  }
  auto simulated = row_of("simulated", Provenance::simulated, "2026-02-01T00:00:00Z");
  simulated.qualified = true; // of a simulation
  strong.qualified = false;
  EXPECT_EQ(kept(merge_profiles(std::vector<NamedProfile>{{"a", profile_of({simulated})},
                                                          {"b", profile_of({strong})}})
                     .value()),
            "strong");
}

TEST(ProfileMerge, does_not_depend_on_the_order_of_the_files_nor_choose_the_cheaper) {
  auto cheap = row_of("z", Provenance::measured, "2026-01-01T00:00:00Z");
  cheap.energy_nj = {1, 0.9, 1.1};
  std::vector<NamedProfile> files = {
      {"a", profile_of({cheap})},
      {"b", profile_of({row_of("m", Provenance::measured, "2026-01-01T00:00:00Z")})},
      {"c", profile_of({row_of("e", Provenance::estimated, "2027-01-01T00:00:00Z")})}};
  const auto first = json_of(merge_profiles(files).value());
  do EXPECT_EQ(json_of(merge_profiles(files).value()), first);
  while (std::next_permutation(files.begin(), files.end(),
                               [](const auto& a, const auto& b) { return a.name < b.name; }));
  EXPECT_THAT(first.at("conflicts").at(0).at("reason").get<std::string>(),
              HasSubstr("never the cheaper"));
}

TEST(ProfileMerge, of_equal_rows_has_no_conflict_and_of_nothing_is_refused) {
  const auto profile = profile_of({sound_row()});
  const auto merged =
      merge_profiles(std::vector<NamedProfile>{{"a", profile}, {"b", profile}}).value();
  EXPECT_EQ(merged.profile, profile);
  EXPECT_TRUE(merged.conflicts.empty());
  EXPECT_FALSE(merge_profiles({}));
}

TEST(ProfileDiff, names_what_differs_and_by_how_much) {
  auto now = sound_row("m<=1");
  now.energy_nj = {25'310'000, 25'300'000, 25'320'000};
  const auto got = diff_profiles(profile_of({sound_row("m<=1"), sound_row("m<=2")}),
                                 profile_of({now, sound_row("m<=4")}));
  ASSERT_EQ(got.size(), 3);
  EXPECT_EQ(got[0].kind, "changed");
  ASSERT_EQ(got[0].members.size(), 1);
  EXPECT_THAT(got[0].members[0], HasSubstr("energy_nj: "));
  EXPECT_DOUBLE_EQ(got[0].energy_ratio.value(), 2);
  EXPECT_TRUE(got[0].intervals_apart.value());
  EXPECT_EQ(got[1].kind, "removed");
  EXPECT_EQ(got[1].key.shape, "m<=2");
  EXPECT_EQ(got[2].kind, "added");
  EXPECT_TRUE(diff_profiles(profile_of({now}), profile_of({now})).empty());
}

TEST(ProfileDiff, has_no_ratio_of_a_measured_and_a_simulated_cost) {
  auto simulated = sound_row();
  simulated.meter.provenance = Provenance::simulated;
  simulated.energy_nj = {1, 1, 1};
  const auto got = diff_profiles(profile_of({sound_row()}), profile_of({simulated}));
  EXPECT_FALSE(got.at(0).energy_ratio);
  EXPECT_FALSE(got.at(0).intervals_apart);
}

Present at(const char* date) {
  Present p;
  p.date = date;
  return p;
}

Present here() {
  Present p;
  p.board = "NVIDIA H200";
  p.board_uuid = "GPU-1";
  p.driver = "580.159.04";
  p.os = "Debian 12";
  p.hebe = "0.1.0";
  p.triton = "3.5.1";
  p.meters.emplace()["nvml.samples.total_power"] = "primary";
  p.date = "2026-12-10T04:20:00Z";
  p.most_days = 10;
  return p;
}

TEST(ProfileExpiry, changes_nothing_where_everything_holds) {
  const auto profile = profile_of({sound_row()});
  for (const auto& present : {here(), at("2036-11-30T04:20:00Z")}) {
    const auto got = expire_profile(profile, present).value();
    EXPECT_EQ(got.profile, profile);
    EXPECT_TRUE(got.rows.empty());
  }
}

TEST(ProfileExpiry, downgrades_or_rejects_by_name_with_the_reason) {
  struct Case {
    void (*change)(Present&);
    bool rejected;
    const char* reason;
  };
  const Case cases[] = {
      {[](Present& p) { p.board = "NVIDIA H100"; }, true,
       "board was NVIDIA H200 and is NVIDIA H100"},
      {[](Present& p) { p.board_uuid = "GPU-2"; }, false, "board_uuid was GPU-1 and is GPU-2"},
      {[](Present& p) { p.driver = "581"; }, false, "driver was 580.159.04 and is 581"},
      {[](Present& p) { p.os = "Debian 13"; }, false, "os was Debian 12 and is Debian 13"},
      {[](Present& p) { p.hebe = "0.2.0"; }, false, "hebe was 0.1.0 and is 0.2.0"},
      {[](Present& p) { p.triton = "3.6"; }, false, "triton was 3.5.1 and is 3.6"},
      {[](Present& p) { p.meters->begin()->second = "frozen"; }, true,
       "meter nvml.samples.total_power was primary and is frozen"},
      {[](Present& p) { p.meters->begin()->second = "usable"; }, false,
       "was primary and is usable"},
      {[](Present& p) { p.meters->clear(); }, false, "meter nvml.samples.total_power is not here"},
      {[](Present& p) {
         p.date = "2026-12-10T04:20:01Z";
         p.most_days = 9;
       },
       false, "it is 10 days old, more than 9"},
      {[](Present& p) { p.date = "2026-11-30T04:19:59Z"; }, true,
       "its date 2026-11-30T04:20:00Z is after 2026-11-30T04:19:59Z"},
  };
  for (const auto& [change, rejected, reason] : cases) {
    auto present = here();
    change(present);
    const auto got = expire_profile(profile_of({sound_row()}), present).value();
    ASSERT_EQ(got.rows.size(), 1) << reason;
    EXPECT_EQ(got.rows[0].rejected, rejected) << reason;
    EXPECT_EQ(got.rows[0].key, sound_row().key);
    EXPECT_THAT(got.rows[0].reasons, ElementsAre(HasSubstr(reason)));
    const auto* row = got.profile.find(sound_row().key);
    ASSERT_EQ(row == nullptr, rejected) << reason;
    if (row == nullptr) continue;
    EXPECT_EQ(row->meter.provenance, Provenance::estimated);
    EXPECT_EQ(row->downgraded, got.rows[0].reasons);
    EXPECT_EQ(expire_profile(got.profile, present).value().profile, got.profile); // once
  }
}

TEST(ProfileExpiry, raises_nothing_and_a_simulated_row_stays_simulated) {
  auto simulated = sound_row();
  simulated.meter.provenance = Provenance::simulated;
  auto present = here();
  present.driver = "581";
  const auto got = expire_profile(profile_of({simulated}), present).value();
  EXPECT_EQ(got.profile.find(simulated.key)->meter.provenance, Provenance::simulated);
  EXPECT_FALSE(expire_profile(profile_of({simulated}), at("today")));
  present.most_days = -1;
  EXPECT_FALSE(expire_profile(profile_of({simulated}), present));
}

} // namespace
} // namespace hebe::tune
