// A finished measurement, before its telemetry is compacted. In: the parts of a run; out: a durable
// directory of plain text, and later the sealed run made of it. Invariant: the raw samples are kept
// until the Parquet made of them has verified; capturing needs no Parquet, so the process that
// measured stays small, and compaction can be done again by any other process after any crash.
#pragma once

#include "evidence/sealed_run.hpp"

namespace hebe::evidence {

/// Writes plan.json, environment.json, windows.jsonl, analysis.json, samples.csv and capture.json.
/// Returns the directory, below the day of `wall_us`.
[[nodiscard]] Result<std::filesystem::path> capture_run(const DataRoot& root, const RunParts& parts,
                                                        std::int64_t wall_us);

/// The record of a captured directory, checked (schema hebe.run.capture/1): whose measurement it
/// is.
[[nodiscard]] Result<Json> capture_record(const std::filesystem::path& captured);

/// Compacts the samples to Parquet, reads them back, verifies the whole run as it lies, seals it,
/// and only then removes the captured directory. Safe to repeat after a crash at any step; a run
/// that was already sealed from this capture is verified and returned. not_found: another process
/// has sealed it meanwhile.
[[nodiscard]] Result<SealedRun> seal_captured(const DataRoot& root,
                                              const std::filesystem::path& captured);

/// Whether this sealed run was made of this capture: the same plan, windows and analysis.
[[nodiscard]] Result<bool> sealed_from(const DataRoot& root, const std::filesystem::path& captured,
                                       const std::filesystem::path& run);

} // namespace hebe::evidence
