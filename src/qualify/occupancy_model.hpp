// How many blocks of a kernel fit on one multiprocessor, by arithmetic. In: registers a thread,
// warps and shared memory a block, the architecture; out: blocks, warps, their share of what the
// multiprocessor can hold, and what limits them. Invariant: computed, and says so: the driver's own
// answer is another field where there is a GPU.
#pragma once

#include "core/json.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hebe::qualify {

struct BlockResources {
  int arch = 90;                  ///< compute capability x 10
  std::uint32_t registers = 0;    ///< a thread
  std::uint32_t warps = 4;        ///< a block
  std::uint64_t shared_bytes = 0; ///< a block, static and dynamic
};

struct ComputedOccupancy {
  std::uint32_t blocks = 0; ///< of one multiprocessor; 0: a block does not fit
  std::uint32_t warps = 0, most_warps = 0;
  std::uint32_t by_warps = 0, by_blocks = 0, by_registers = 0, by_shared = 0; ///< blocks
  std::vector<std::string> limits; ///< which of these is the least: "registers", …
  [[nodiscard]] double share() const {
    return most_warps == 0 ? 0 : static_cast<double>(warps) / most_warps;
  }
};

/// unsupported: the architecture is not in sm_limits.def; bad_argument: no warps.
[[nodiscard]] Result<ComputedOccupancy> computed_occupancy(const BlockResources& block);
[[nodiscard]] Json to_json(const ComputedOccupancy& occupancy);

} // namespace hebe::qualify
