// Is the output right? In: what the kernel wrote and what the oracle says; out: counts and the
// worst element. Invariant: NaN passes only where the oracle says NaN; a size that differs is
// wrong.
#pragma once

#include "kernel/launch_spec.hpp"

#include <span>

namespace hebe::kernel {

struct OutputCheck {
  std::size_t elements = 0, wrong = 0;
  double worst_abs = 0, worst_rel = 0; ///< over finite elements
  std::size_t first_wrong = 0;
  double found = 0, expected = 0; ///< at first_wrong
  [[nodiscard]] bool passed() const { return elements > 0 && wrong == 0; }
};

/// |found - expected| <= atol + rtol * |expected|, element by element. The oracle may be in a wider
/// type.
[[nodiscard]] OutputCheck check_output(std::span<const std::byte> found, DType found_type,
                                       std::span<const std::byte> expected, DType expected_type,
                                       double atol, double rtol);

/// Two checks of consecutive stretches of one output, as one.
[[nodiscard]] OutputCheck joined(const OutputCheck& first, const OutputCheck& second);

/// "12 of 4096 elements are wrong; first at 7: found nan, expected 0.5" for a failed check.
[[nodiscard]] std::string describe(const OutputCheck& check);

} // namespace hebe::kernel
