// Facts about a real board's two meters, from the sealed runs of an H200: with the counter read by
// its own updates they agree far closer than its 100 ms cache would let them. Prints what it finds.
#include "evidence/stored_run.hpp"
#include "evidence/telemetry.hpp"
#include "measure/analysis.hpp"
#include "measure/counter_updates.hpp"

#include <cmath>
#include <fmt/format.h>

#include <gtest/gtest.h>

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

struct Agreement {
  double window_s = 0, before = 0, by_updates = 0; ///< largest disagreement, ratio
  std::size_t windows = 0;
  int doubtful = 0, failed = 0;
  std::optional<measure::CounterUpdates> updates;
};

double largest(const std::vector<measure::Window>& windows) {
  double out = 0;
  for (const auto& w : windows)
    out = std::max(out, std::abs(*w.estimate.counter_power / *w.estimate.mean_power - 1));
  return out;
}

Agreement agreement_of(const fs::path& directory) {
  const auto run = read_stored_run(directory, Telemetry::read).value();
  auto plan = measure::plan_from(run.plan, "plan").value();
  EXPECT_FALSE(plan.counter_by_updates) << "sealed before";
  const auto acquisition = measure::acquisition_from(run.acquisition, "acquisition").value();
  std::vector<measure::Window> windows;
  for (const auto& w : run.windows) windows.push_back(measure::window_from(w, "window").value());
  const auto samples =
      samples_from_parquet(run.telemetry, acquisition.samples.name, "telemetry").value();
  Agreement a;
  a.window_s = plan.window.value();
  a.windows = windows.size();
  (void)measure::judge_windows(windows, samples, plan, acquisition).value();
  a.before = largest(windows);
  plan.counter_by_updates = true;
  (void)measure::judge_windows(windows, samples, plan, acquisition).value();
  a.by_updates = largest(windows);
  a.updates = measure::find_counter_updates(windows, acquisition.behaviour.counter_period);
  for (const auto& w : windows) {
    a.doubtful += w.estimate.doubtful_edges;
    for (const auto& g : w.gates) a.failed += g.name == "meter_disagreement_ratio" && !g.passed;
  }
  return a;
}

TEST(CounterAgreement, a_real_boards_counter_and_samples_agree_within_a_thousandth) {
  int runs = 0, few = 0;
  for (const char* root : {"h200-aa", "h200-meter-and-control"})
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(HEBE_SOURCE_DIR) / "evidence" / root / "runs")) {
      if (entry.path().filename() != "manifest.json") continue;
      const auto run = entry.path().parent_path();
      const auto a = agreement_of(run);
      if (a.windows < 8) { // too few to know the counter's updates by
        EXPECT_FALSE(a.updates);
        EXPECT_EQ(a.by_updates, a.before);
        ++few;
        continue;
      }
      ASSERT_TRUE(a.updates) << run;
      fmt::print("  {}: {} windows of {} s: largest disagreement {:.3f} % by reads, {:.3f} % by "
                 "updates (mean spread {:.4f} %, period {:+.0f} ppm, {} doubtful edges)\n",
                 run.filename().string(), a.windows, a.window_s, 100 * a.before, 100 * a.by_updates,
                 100 * a.updates->spread, 1e6 * (a.updates->period_ns / 1e8 - 1), a.doubtful);
      EXPECT_GT(a.before, 0.01) << run;
      EXPECT_LT(a.by_updates, 0.001) << run;
      EXPECT_EQ(a.failed, 0) << run;
      ++runs;
    }
  EXPECT_EQ(runs, 9);
  EXPECT_EQ(few, 15);
}

} // namespace
} // namespace hebe::evidence
