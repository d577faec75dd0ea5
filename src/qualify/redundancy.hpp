// Bytes that a launch loads more than once. In: counts of the interpreter, taken with `rereads`;
// out: by argument, what one program loads again (which a rewrite can keep), what other programs
// load too (which is the caches' business), and the pairs of ops that read the same bytes.
// Invariant: the parts sum to the bytes loaded; bytes are those that active lanes ask for,
// whichever memory answers.
#pragma once

#include "core/json.hpp"
#include "core/result.hpp"
#include "ttgir/counts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hebe::qualify {

struct ArgumentRedundancy {
  std::string argument;
  std::uint64_t loaded = 0;
  std::uint64_t unique = 0;            ///< touched at least once in the launch
  std::uint64_t by_other_programs = 0; ///< first in their program, but not in the launch
  std::uint64_t again = 0;             ///< by the same program, not written in between
  std::uint64_t after_own_write = 0;
  std::uint64_t by_other_lanes = 0; ///< several lanes of one execution ask for the same bytes
  bool stored_too = false;          ///< the launch writes this argument (atomics as well)
  /// What moves more than once: loaded − unique.
  [[nodiscard]] std::uint64_t redundant() const { return loaded - unique; }
};

struct Redundancy {
  std::uint64_t programs = 0;
  std::vector<ArgumentRedundancy> arguments; ///< those that are loaded
  std::vector<ttgir::Reread> pairs;          ///< most bytes first
  [[nodiscard]] const ArgumentRedundancy* of(std::string_view argument) const;
};

/// bad_argument: the counts were taken without `rereads`.
[[nodiscard]] Result<Redundancy> redundancy_of(const ttgir::Counts& counts);
[[nodiscard]] Json to_json(const Redundancy& redundancy);

} // namespace hebe::qualify
