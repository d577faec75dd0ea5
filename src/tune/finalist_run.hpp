// A sealed run against what a tune's record says of it. In: the run as it lies there, the record's
// pair; out: what does not fit, each with both sides, and what its samples give. Invariant: a run
// of other kernels, another protocol, board, driver or seed is never taken for the pair's.
#pragma once

#include "evidence/verify.hpp"
#include "tune/stored_tune.hpp"

namespace hebe::tune {

struct FinalistPair {
  const Json& shape; ///< of the record
  const Json& run;   ///< of the shape's finalists
  const StoredTune& tune;
};

/// Verifies the run and adds to `report`. None: it does not verify, or is not this pair's.
[[nodiscard]] std::optional<campaign::JobOutcome>
check_finalist(evidence::VerifyReport& report, const std::filesystem::path& directory,
               const FinalistPair& pair);

} // namespace hebe::tune
