// What operations do to memory, and to whose. In: operations and pointers; out: reads and writes by
// function argument. Invariant: a pointer whose origin is not certain may reach anything.
#pragma once

#include "ttgir/ir.hpp"

#include <cstdint>
#include <set>
#include <vector>

namespace hebe::ttgir {

/// The function arguments that a pointer may be made of.
struct PointerOrigin {
  std::set<std::uint32_t> arguments; ///< numbers of the function's arguments
  bool anything = false; ///< loaded from memory, made of an integer, or from an op not understood
  void merge(const PointerOrigin& other);
};

/// Follows tt.addptr, splats, layouts, shapes, selects, loop-carried values and branches upwards.
[[nodiscard]] PointerOrigin origin_of(const Value& pointer);

struct MemoryEffects {
  PointerOrigin reads, writes; ///< global memory
  bool reads_global = false, writes_global = false;
  bool shared = false;       ///< shared or tensor memory
  bool synchronises = false; ///< barriers, asynchronous waits
  bool other = false;        ///< messages, assertions
  bool unknown = false;      ///< contains an op that is not understood, or a call
  [[nodiscard]] bool pure() const {
    return !reads_global && !writes_global && !shared && !synchronises && !other && !unknown;
  }
};

/// Of the operation and everything in its regions.
[[nodiscard]] MemoryEffects effects_of(Operation& op);

/// Whether a write of `writes` can change what `reads` reads. `disjoint`: distinct arguments are
/// distinct memory (a launch contract, checked at qualification).
[[nodiscard]] bool may_interfere(const PointerOrigin& reads, const PointerOrigin& writes,
                                 bool disjoint);

} // namespace hebe::ttgir
