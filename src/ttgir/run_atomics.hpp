// Read-modify-write of one element of global memory. In: a kind, an element's format, its place;
// out: what was there. Invariant: atomic among all threads of a launch; floats are rounded as the
// element's format rounds.
#pragma once

#include "ttgir/run_memory.hpp"

namespace hebe::ttgir {

enum class AtomicKind : std::uint8_t {
  and_,
  or_,
  xor_,
  add,
  max,
  min,
  umax,
  umin,
  exchange,
  inc,
  dec
};
/// "fadd", "umax", …; also the kinds of descriptor and bulk reductions.
[[nodiscard]] std::optional<AtomicKind> atomic_kind(std::string_view text);
/// Floats know add, max, min and exchange; integers all.
[[nodiscard]] bool can_update(AtomicKind kind, Scalar scalar);

/// `value` and `old` point to one lane each; `old` may be null.
void update_atomically(AtomicKind kind, const MemoryFormat& format, std::byte* place,
                       const std::byte* value, std::byte* old);

} // namespace hebe::ttgir
