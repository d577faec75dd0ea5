// The least time and energy that a launch can take on a named board. In: what it must move and
// compute, and the board's ceilings; out: floors, each with what they rest on. Invariant: an
// estimate, and says so; where the board has no measured energies there is no energy floor, not one
// of zero.
//
// Roofline: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model",
// 2009.
#pragma once

#include "core/json.hpp"
#include "core/result.hpp"
#include "core/units.hpp"
#include "ttgir/counts.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::ttgir {

struct Board {
  std::string_view name;
  double dram_bytes_per_s = 0, l2_bytes = 0;
  double idle_w = 0, j_per_byte = 0, j_per_mac = 0;
  double fp32_mac = 0, fp64_mac = 0, tensor16_mac = 0, tf32_mac = 0,
         tensor8_mac = 0; ///< per second
  std::string_view source;
};

/// The board whose row's name is part of `name`; refuses (not_found) and lists what there is.
[[nodiscard]] Result<const Board*> board_named(std::string_view name);
[[nodiscard]] std::vector<const Board*> boards();

/// What a launch cannot do without.
struct Demand {
  double unique_loaded = 0, unique_stored = 0; ///< bytes touched at least once
  double moved = 0;                            ///< bytes of all accesses
  /// Multiply-adds of dots by type of their inputs ("f16", "tf32", "f8E4M3FN", …).
  std::map<std::string, double> products;
  /// Other floating-point operations by element type.
  std::map<std::string, double> operations;
};

/// Of a counted launch: what every multiply, add and function is on, whatever became of it on the
/// board.
[[nodiscard]] Demand demand_of(const Counts& counts);

struct Bound {
  std::string what; ///< "DRAM", "tensor f16", "fp32"
  Seconds time{0};
};

struct Floor {
  Seconds cold{0}, warm{0};             ///< inputs in DRAM; as much as fits in the L2 already
  std::string limit;                    ///< the bound that `cold` is
  std::vector<Bound> bounds;            ///< all, largest first (cold)
  std::optional<Joules> cold_j, warm_j; ///< absent: the board has no measured energies
  double intensity = 0;                 ///< operations (a multiply-add is two) per unique byte
  double redundancy = 0;                ///< moved bytes per unique byte; 1: everything once
  std::vector<std::string> left_out;    ///< work that no ceiling covers
};

[[nodiscard]] Floor floor_of(const Demand& demand, const Board& board);
[[nodiscard]] Json to_json(const Floor& floor, const Board& board);

} // namespace hebe::ttgir
