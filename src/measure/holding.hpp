// Waiting for a board that has left the temperature at which it settled. In: the last pair's
// windows, or the blocks that ran since; out: whether to wait, and whether it is back. Invariant:
// pure functions of what is recorded, so that a record says itself when a run had to wait.
#pragma once

#include "measure/settling.hpp"
#include "measure/window.hpp"

namespace hebe::measure {

struct Reference;

/// A stretch between two pairs in which A and B alternated as in the warm-up and nothing was
/// measured.
struct Hold {
  std::int64_t after_window = 0; ///< windows that were before it
  std::vector<WarmUpBlock> blocks;
};

/// How far the mean of a pair's windows, at their ends, lies above the settled temperature, C.
[[nodiscard]] std::optional<double> above_reference(const WindowReading& first,
                                                    const WindowReading& second,
                                                    const Reference& reference);

/// A pair begun then would likely end beyond the tier's max_job_drift: the last one ended within
/// half a degree of it, or beyond. Never where the tier does not wait (max_hold).
[[nodiscard]] bool must_hold(const WindowReading& first, const WindowReading& second,
                             const Reference& reference, const Tier& tier);

/// Over the last ten seconds' blocks of both arms the temperature lay within half of max_job_drift.
[[nodiscard]] bool has_come_back(std::span<const WarmUpBlock> blocks, const Reference& reference,
                                 const Tier& tier);

/// From the last window's end to the last block's.
[[nodiscard]] Seconds hold_length(std::span<const WarmUpBlock> blocks, std::int64_t begin_ns);

/// After a block of the other arm than the next window's: the board is back; or, with what the job
/// has waited before (`held`), the tier's max_hold has passed. Then the gates have the word.
[[nodiscard]] bool hold_ends(std::span<const WarmUpBlock> blocks, int next_arm, Seconds held,
                             std::int64_t begin_ns, const Reference& reference, const Tier& tier);

/// What contradicts that each hold, and no other, was where it had to be, of alternating arms,
/// between the windows around it, and until it had to end and no longer; empty: nothing.
[[nodiscard]] std::string hold_fault(std::span<const Hold> holds, std::span<const Window> windows,
                                     const Reference& reference, const Tier& tier);

} // namespace hebe::measure
