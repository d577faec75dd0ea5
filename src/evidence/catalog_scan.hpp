// What the catalog says of one run. In: a run directory; out: a row, or the problem that keeps it
// out. Invariant: nothing is believed that the seal does not cover; a value that is not known is
// absent, never 0; a run with a problem is no row.
#pragma once

#include "evidence/data_root.hpp"
#include "evidence/run_tree.hpp"
#include "evidence/sqlite_database.hpp"

#include <variant>

namespace hebe::evidence {

/// An effect and the interval shown with it, in percent.
struct CatalogEffect {
  std::optional<double> percent, low_percent, high_percent;
};

struct CatalogRun {
  std::string run_id;
  std::string directory; ///< relative to the data root
  std::string seal, plan_id, kind, provenance;
  std::optional<std::string> tier, campaign, job, case_name, verdict;
  std::optional<bool> qualified;
  CatalogEffect energy, latency;
  std::optional<double> energy_per_launch_a_j, latency_a_s; ///< of arm A
  std::optional<std::string> device_uuid, device_name, driver, started;
  std::int64_t bytes = 0; ///< of all files
};

/// Every column of the table `runs` in order: f(name, field). The first is the primary key.
template <class Run, class F> void for_each_column(Run& r, F&& f) {
  f("run_id", r.run_id), f("directory", r.directory), f("seal", r.seal), f("plan_id", r.plan_id);
  f("kind", r.kind), f("provenance", r.provenance), f("tier", r.tier);
  f("campaign", r.campaign), f("job", r.job), f("case_name", r.case_name);
  f("verdict", r.verdict), f("qualified", r.qualified);
  f("energy_effect_percent", r.energy.percent), f("energy_low_percent", r.energy.low_percent);
  f("energy_high_percent", r.energy.high_percent), f("latency_effect_percent", r.latency.percent);
  f("latency_low_percent", r.latency.low_percent);
  f("latency_high_percent", r.latency.high_percent);
  f("energy_per_launch_a_j", r.energy_per_launch_a_j), f("latency_a_s", r.latency_a_s);
  f("device_uuid", r.device_uuid), f("device_name", r.device_name), f("driver", r.driver);
  f("started", r.started), f("bytes", r.bytes);
}

/// Something below the data root that is no sound record.
struct CatalogProblem {
  std::string path; ///< relative to the data root; bytes that are not UTF-8 are shown as \xNN
  std::string kind; ///< half_written, not_compacted, foreign, symbolic_link, unreadable, seal,
                    ///< digest, schema, misplaced
  std::string what;
};

using ScannedRun = std::variant<CatalogRun, CatalogProblem>;

/// Reads and checks manifest, plan, environment and analysis, and the names and sizes of the rest.
[[nodiscard]] ScannedRun scan_run(const DataRoot& root, const std::filesystem::path& run);

/// What list_run_tree found beside runs.
[[nodiscard]] CatalogProblem problem_of(const DataRoot& root, const TreeEntry& entry);

/// Relative to the root, in UTF-8.
[[nodiscard]] std::string shown_path(const DataRoot& root, const std::filesystem::path& path);

} // namespace hebe::evidence
