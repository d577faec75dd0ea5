// The table of passes. A pass is one file with one function, and one row here.
#include "rewrite/pass.hpp"

#include "rewrite/access_passes.hpp"
#include "rewrite/simplify.hpp"

namespace hebe::rewrite {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> table{
      {"drop-masks", "masks that are all true under the launch's facts, gone", {}, drop_masks},
      {"hint",
       "eviction priorities and cache modifiers, by argument",
       {{"loads", "{argument = {evict = evict_first | evict_last | evict_normal, or cache = …}}"},
        {"stores", "the same, of stores"}},
       hint},
      {"simplify", "redundant layouts, addresses and constants, folded and merged", {}, simplify},
  };
  return table;
}

} // namespace hebe::rewrite
