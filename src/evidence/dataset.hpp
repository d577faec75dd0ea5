// Datasets: frozen snapshots of sealed runs (docs/formats.md). In: runs by name, a campaign, or
// all; out: one immutable directory. Invariant: every run verifies before anything is written, and
// the same runs give the same id.
#pragma once

#include "evidence/dataset_writer.hpp"

#include <optional>

namespace hebe::evidence {

/// Exactly one of the three.
struct DatasetRequest {
  std::vector<std::string> runs; ///< directories, run ids, or unique parts of one
  std::string campaign;
  bool all = false;
  unsigned threads = 0; ///< 0: all cores
};

struct DatasetPlan {
  struct Run {
    std::filesystem::path directory;
    std::string run_id, seal, provenance, kind;
  };
  std::vector<Run> runs; ///< sorted as they are written
  DatasetOrigin origin;
};

/// Finds the runs and verifies each. Refuses, naming the run: bad_argument, not_found,
/// half_written, digest_mismatch, bad_schema, analysis_mismatch. Writes nothing.
[[nodiscard]] Result<DatasetPlan> plan_dataset(const DataRoot& root, const DatasetRequest& request);

/// Writes what was planned; a dataset that exists already is checked and left as it is.
[[nodiscard]] Result<StoredDataset> take_dataset(const DataRoot& root, const DatasetPlan& plan,
                                                 PartBounds bounds = {});

/// A dataset by directory, by id, or by a unique part of one; empty: the newest.
[[nodiscard]] Result<std::filesystem::path> find_dataset(const DataRoot& root,
                                                         const std::string& name);

} // namespace hebe::evidence
