// The table of passes. A pass is one file with one function, and one row here.
#include "rewrite/pass.hpp"

namespace hebe::rewrite {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> table{};
  return table;
}

} // namespace hebe::rewrite
