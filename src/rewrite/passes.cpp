// The table of passes. A pass is one file with one function, and one row here.
#include "rewrite/access_passes.hpp"
#include "rewrite/loop_passes.hpp"
#include "rewrite/pass.hpp"

namespace hebe::rewrite {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> table{
      inline_single_trip_loops(), unroll_loops(), reuse_loads(), hoist_loads(),  remove_dead(),
      pin_contractions_pass(),    drop_masks(),   hint(),        stage_shared(), simplify(),
  };
  return table;
}

} // namespace hebe::rewrite
