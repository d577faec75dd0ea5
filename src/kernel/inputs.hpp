// Input bytes from a counter-based generator. In: an initialiser and an element range; out: bytes.
// Invariant: any range of any buffer has the same bytes on every machine, whatever was made before
// it.
#pragma once

#include "kernel/launch_spec.hpp"

#include <functional>
#include <span>

namespace hebe::kernel {

/// Writes elements [first, first + out.size()/size_of(dtype)) of the buffer. `first` is a multiple
/// of 4.
void generate(const Initialiser& init, DType dtype, std::size_t first, std::span<std::byte> out);

/// Calls `use(offset in bytes, chunk)` over a whole input buffer, a few MiB at a time, so that a
/// large input is never held twice. Stops at the first refusal.
[[nodiscard]] Status
for_each_chunk(const Argument& buffer,
               const std::function<Status(std::size_t, std::span<const std::byte>)>& use);

} // namespace hebe::kernel
