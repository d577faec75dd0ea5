// Facts about telemetry.parquet: what goes in comes out, and what is no telemetry is refused.
// That pyarrow and DuckDB read it too is in tests/cli.
#include "evidence/telemetry.hpp"

#include <gtest/gtest.h>

#include "../data/support/made_run.hpp"

namespace hebe::evidence {
namespace {

const RunParts& parts() {
  static const auto made = test::made_run(test::smoke_plan(2));
  return made;
}

bool same(const std::vector<meter::AlignedSample>& a, const std::vector<meter::AlignedSample>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) {
    return x.t_mono_ns == y.t_mono_ns && x.t_source_us == y.t_source_us && x.raw_mw == y.raw_mw;
  });
}

TEST(Telemetry, every_sample_comes_back_exactly_and_in_order) {
  const auto bytes =
      telemetry_parquet(parts().samples, parts().windows, parts().acquisition).value();
  EXPECT_TRUE(bytes.starts_with("PAR1") && bytes.ends_with("PAR1"));
  const auto back =
      samples_from_parquet(bytes, parts().acquisition.samples.name, "telemetry.parquet").value();
  EXPECT_GT(back.size(), 200U);
  EXPECT_TRUE(same(back, parts().samples));
}

TEST(Telemetry, extreme_integers_survive) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<meter::AlignedSample> samples = {
      {-kMost, -kMost, -1},
      {0, 0, 0},
      {9'007'199'254'740'993, 1, 4'991'201'436'214'789'335},
      {kMost, kMost, kMost}};
  const auto bytes = telemetry_parquet(samples, {}, parts().acquisition).value();
  EXPECT_TRUE(
      same(samples_from_parquet(bytes, parts().acquisition.samples.name, "x").value(), samples));
}

TEST(Telemetry, equal_samples_are_equal_bytes) {
  EXPECT_EQ(telemetry_parquet(parts().samples, parts().windows, parts().acquisition).value(),
            telemetry_parquet(parts().samples, parts().windows, parts().acquisition).value());
}

TEST(Telemetry, another_source_has_no_samples_here) {
  const auto bytes =
      telemetry_parquet(parts().samples, parts().windows, parts().acquisition).value();
  EXPECT_TRUE(samples_from_parquet(bytes, "nvml.samples.total_power", "x")->empty());
  // The counter's rows are there too, two a window, without power: as the primary they are refused.
  EXPECT_EQ(samples_from_parquet(bytes, parts().acquisition.counter.name, "x").error().code,
            RefusalCode::bad_schema);
}

TEST(Telemetry, an_unavailable_counter_is_null_and_not_zero) {
  auto windows = parts().windows;
  for (auto& w : windows) w.reading.begin.energy_mj = refuse(RefusalCode::meter_unsupported, "no");
  EXPECT_TRUE(telemetry_parquet(parts().samples, windows, parts().acquisition));
}

TEST(Telemetry, what_is_no_telemetry_is_refused_with_its_place) {
  auto bytes = telemetry_parquet(parts().samples, {}, parts().acquisition).value();
  auto flipped = bytes;
  flipped[bytes.size() / 3] = static_cast<char>(flipped[bytes.size() / 3] ^ 0x40);
  const std::pair<const char*, std::string> table[] = {
      {"empty", ""},
      {"text", "t,power\n1,2\n"},
      {"cut", bytes.substr(0, bytes.size() / 2)},
      {"no footer", bytes.substr(0, bytes.size() - 8)},
      {"magic only", "PAR1PAR1"},
  };
  for (const auto& [name, bad] : table) {
    const auto samples = samples_from_parquet(bad, "sim.samples.total_power", "telemetry.parquet");
    ASSERT_FALSE(samples) << name;
    EXPECT_EQ(samples.error().code, RefusalCode::bad_schema) << name;
    EXPECT_EQ(samples.error().where, "telemetry.parquet");
  }
}

} // namespace
} // namespace hebe::evidence
