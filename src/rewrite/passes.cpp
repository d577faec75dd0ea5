// The table of passes. A pass is one file with one function, and one row here.
#include "rewrite/pass.hpp"

#include "rewrite/access_passes.hpp"

namespace hebe::rewrite {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> table{
      drop_masks(),
      hint(),
      simplify(),
  };
  return table;
}

} // namespace hebe::rewrite
