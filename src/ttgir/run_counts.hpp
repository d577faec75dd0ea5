// From executions of instructions to counts of operations. In: what every thread's programs did;
// out: Counts. Invariant: joining is a sum, a minimum or a maximum, so the order of threads does
// not show.
#pragma once

#include "ttgir/run_plan.hpp"
#include "ttgir/traffic.hpp"

#include <span>
#include <vector>

namespace hebe::ttgir {

/// Sums over the programs that one thread ran.
class ProgramSums {
public:
  explicit ProgramSums(const Plan& plan) : executions(plan.instructions.size()) {}
  /// The program that just ended.
  void add(Program& program);

  std::vector<std::uint64_t> executions; ///< by instruction
  Spread operations, products, bytes;
  std::uint64_t programs = 0;
};

[[nodiscard]] Counts joined(const Plan& plan, const GlobalMemory& memory,
                            const TouchedBytes& touched, std::span<const ProgramSums* const> sums,
                            std::span<const Traffic* const> traffic);

} // namespace hebe::ttgir
