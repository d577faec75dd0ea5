// Facts about the stored response of an H200: by the rule it was stored with it is what it was, and
// by the present one the waves in a simple ratio to field 186's updates are locked.
#include "evidence/qualification_store.hpp"
#include "measure/response.hpp"

#include <cmath>
#include <fmt/format.h>

#include <gtest/gtest.h>

namespace hebe::evidence {
namespace {

TEST(StoredResponse, of_an_h200_shows_which_waves_its_fields_lock) {
  const DataRoot root(std::filesystem::path(HEBE_SOURCE_DIR) / "evidence/h200-response");
  const auto stored = load_qualification(root, QualificationKind::response, "").value();
  const auto& findings = stored.json.at("findings");
  ASSERT_EQ(measure::aliasing_rule_of(findings), 1);
  const auto recording = recording_of(root, stored).value();
  using Periods = std::vector<double>;
  std::map<std::string, Periods> locked;
  for (const auto& s : measure::respond(recording).sources)
    for (const auto& a : s.aliasing) {
      if (a.duty != 0.5) continue;
      fmt::print("  {} {} ms: mean {:+.1f} %, standing at {} ({:.2f}), worst phase {:.1f} %, {}\n",
                 s.name, 1e3 * a.period_s, 100 * a.mean_error_ratio, a.standing, a.standing_ratio,
                 100 * a.standing_error_ratio,
                 a.locked    ? "locked"
                 : a.aliases ? "aliases"
                             : "seen");
      if (a.locked) locked[s.name].push_back(a.period_s);
      // What the wave's own phase did to the mean is within what the worst one would.
      if (a.standing_error_ratio > 0.05) {
        EXPECT_LT(std::abs(a.mean_error_ratio), 1.3 * a.standing_error_ratio) << a.period_s;
      }
    }
  EXPECT_EQ(locked["nvml.field.power_instant"],
            (Periods{0.02, 0.025, 0.04, 0.05, 0.1, 0.2, 0.25, 0.5}));
  EXPECT_EQ(locked["nvml.samples.total_power"], (Periods{0.02, 0.04, 0.1}));
  EXPECT_TRUE(locked["nvml.call.power_usage"].empty()); // a second's mean has no such wave in it
}

} // namespace
} // namespace hebe::evidence
