// A data root with many sealed runs, quickly. In: a folder, how many; out: runs that verify, no two
// with one seal, spread over a month. Invariant: every file follows from the samples as a job's
// does; only the syncs of a job are left out.
#pragma once

#include "evidence/data_root.hpp"

#include <string>

namespace hebe::bench {

struct CopiesRequest {
  std::size_t runs = 10'000;
  std::string campaign; ///< in every manifest, with a job of its own; empty: none
  unsigned threads = 1;
};

[[nodiscard]] Status make_sealed_copies(const evidence::DataRoot& root,
                                        const CopiesRequest& request);

} // namespace hebe::bench
