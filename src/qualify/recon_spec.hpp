// Which kernels to look at (schema hebe.recon.spec/1). In: a TOML or JSON file; out: points.
// Invariant: a name is there once; whether a case exists is found out when it is looked at, since
// its package may not be installed.
#pragma once

#include "qualify/spec.hpp"

namespace hebe::qualify {

struct ReconCase {
  std::string group;
  Point point;
};

struct ReconSpec {
  std::string name;
  std::vector<ReconCase> cases;
  bool candidates = true; ///< also try what the passes make of each
  int launches = 3;       ///< of each kernel on a GPU
  Json json;
};

[[nodiscard]] Result<ReconSpec> read_recon_spec(const std::filesystem::path& file,
                                                const CaseResolver& resolve);

} // namespace hebe::qualify
