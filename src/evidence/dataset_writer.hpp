// A dataset while it is written. In: stored runs in their fixed order; out: a directory named after
// the digest of its manifest. Invariant: nothing is under the final name before everything is
// synced; what was half-written is removed, or has a name of its own.
#pragma once

#include "evidence/data_root.hpp"
#include "evidence/dataset_parquet.hpp"

#include <functional>
#include <map>

namespace hebe::evidence {

inline constexpr std::string_view kDatasetPrefix = "dataset_sha256_";

struct StoredDataset {
  std::filesystem::path directory;
  std::string id; ///< dataset_sha256_<hex>
  std::size_t runs = 0;
  std::map<DatasetTable, std::int64_t> rows;
  std::uint64_t bytes = 0;
  bool existed = false; ///< the same dataset had been taken before
};

/// What the manifest says beside runs and files.
struct DatasetOrigin {
  std::string campaign;  ///< empty: not of one campaign
  std::string synthetic; ///< why rows are not what a run gave; empty: they are
  std::vector<std::pair<std::string, std::string>>
      same_content; ///< run id and seal of left-out runs
};

class DatasetWriter {
public:
  DatasetWriter(const DataRoot& root, DatasetOrigin origin, PartBounds bounds = {});
  /// Removes what finish() did not name.
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;
  /// Runs come sorted by provenance, kind and run id; internal otherwise. The number of telemetry
  /// rows that were added.
  [[nodiscard]] Result<std::int64_t> add(const StoredRun& run);
  [[nodiscard]] Result<StoredDataset> finish();

private:
  [[nodiscard]] Status begin();
  [[nodiscard]] Status close_partition();
  [[nodiscard]] Result<std::string> manifest() const;
  [[nodiscard]] Status name_it(StoredDataset& dataset);

  std::filesystem::path datasets_, temporary_;
  DatasetOrigin origin_;
  PartBounds bounds_;
  std::vector<PartWriter> writers_; ///< one a table, of the partition that is open
  std::vector<std::string> last_;   ///< provenance, kind and run id of the last run
  std::vector<DatasetFile> files_;
  Json runs_ = Json::array();
  std::map<DatasetTable, std::int64_t> rows_;
};

} // namespace hebe::evidence
