// How often each operation runs, without running the kernel. In: a function, the values of its
// scalar arguments, a grid; out: executions over all programs, by operation. Invariant: what cannot
// be known from scalars alone is never guessed: it is counted as if it ran (a branch) or ran once
// (a loop), and listed.
#pragma once

#include "core/result.hpp"
#include "ttgir/ir.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace hebe::ttgir {

struct ScalarLaunch {
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::unordered_map<std::string, std::int64_t>
      scalars{}; ///< integer arguments by name; the others are not known
  std::uint64_t budget =
      50'000'000; ///< operations looked at; loops beyond it are taken as their first iteration's
};

struct Doubt {
  std::uint32_t line = 0;
  std::string what; ///< "the trip count of scf.for depends on %n", …
};

struct Executions {
  std::unordered_map<const Operation*, double> of;
  std::vector<Doubt> doubts; ///< one a place; empty: exact
  [[nodiscard]] double count(const Operation& op) const {
    const auto found = of.find(&op);
    return found == of.end() ? 0 : found->second;
  }
};

/// Refuses (bad_spec) a scalar that is no integer argument of the function.
[[nodiscard]] Result<Executions> executions_of(const Module& module, Operation& function,
                                               const ScalarLaunch& launch);

} // namespace hebe::ttgir
