// What a launch moves and computes, without running it. In: a module, a grid, the scalars that are
// known; out: operations and bytes at most, and whatever could not be known. Invariant: masks are
// taken as all true and branches on data as taken, so that the bytes are an upper bound; each such
// place is listed.
#pragma once

#include "core/json.hpp"
#include "ttgir/counts.hpp"
#include "ttgir/executions.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hebe::ttgir {

struct MovedBytes {
  double loaded = 0, stored = 0;
  std::size_t masked_places = 0; ///< loads and stores with a mask: at most these bytes
};

struct Estimate {
  double programs = 0;
  std::map<std::pair<WorkKind, std::string>, double> operations; ///< as Counts has them
  std::map<std::string, MovedBytes>
      arguments; ///< "x or y" where a pointer may be either; "?" where anything
  double shared_read = 0, shared_written = 0;
  std::vector<Doubt> doubts;
};

/// Refuses (as the interpreter) an operation whose work is not known, by name and line.
[[nodiscard]] Result<Estimate> estimate(const Module& module, std::string_view function,
                                        const ScalarLaunch& launch);
[[nodiscard]] Json to_json(const Estimate& estimate);

} // namespace hebe::ttgir
