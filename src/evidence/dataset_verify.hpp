// Is a dataset what it says? In: a dataset's directory, and the data root its runs may still lie
// in; out: every check with its outcome. Invariant: names and digests first, then schemas and
// counts, then the rows against the runs; every problem names its file.
#pragma once

#include "evidence/data_root.hpp"
#include "evidence/verify.hpp"

namespace hebe::evidence {

struct DatasetVerifyRequest {
  bool recompute = true; ///< rows against the runs that are still there
  unsigned threads = 0;  ///< 0: all cores
};

/// The report's seal is the digest of the manifest; its analysis stays null. Refuses only when
/// there is nothing to verify.
[[nodiscard]] Result<VerifyReport> verify_dataset(const DataRoot& root,
                                                  const std::filesystem::path& directory,
                                                  const DatasetVerifyRequest& request = {});

} // namespace hebe::evidence
