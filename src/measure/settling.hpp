// Whether a warm-up has brought the board to rest. In: blocks of one arm each, with mean power and
// temperature; out: yes, or what still moves, with its figure. Invariant: a pure function of the
// blocks and the tier; temperatures are whole degrees, and flicker.
#pragma once

#include "measure/tier.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hebe::measure {

struct WarmUpBlock {
  int arm = 0;
  std::int64_t end_ns = 0;
  Seconds latency{0};
  std::optional<Watts> power;
  std::optional<std::int64_t> temperature_c;
  std::optional<bool> capped; ///< at its end the power limit held the clock down, by NVML's reasons
};

/// Empty once the board has settled; else what keeps it from it: "arm A's power moved by 0.9 %
/// in 20 s (limit 0.6 %)". Power of each arm and temperature within the tier's ranges over its span
/// at the end of the warm-up; at the power limit the power may be within steady_power for
/// steady_span, if the energy of a launch (power times latency) has no trend in it;
/// where the tier judges drift over minutes, the temperature stood still
/// for still_span, or stayed for steady_span within settle_temperature or, without a trend, within
/// steady_temperature: of both arms together or, with settle_by_arm,
/// of each where their powers differ by more than 5 %.
[[nodiscard]] std::string what_moves(std::span<const WarmUpBlock> blocks, const Tier& tier);

[[nodiscard]] inline bool has_settled(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  return what_moves(blocks, tier).empty();
}

/// What moved how often, as the blocks came in from the one numbered `from` on: "of 210 looks arm
/// B's power moved at 160, the temperature at 50", each by itself. For a board that never settled:
/// the last look alone does not say what to mend.
[[nodiscard]] std::string what_moved(std::span<const WarmUpBlock> blocks, std::size_t from,
                                     const Tier& tier);

/// What the job's temperature drift is counted from, C. Where it may flicker, the median over
/// steady_span, because a degree more or less of one reading is the sensor's (of two arms that
/// settle each by itself the mean of their medians); else the last block's.
[[nodiscard]] std::optional<double> settled_temperature(std::span<const WarmUpBlock> blocks,
                                                        const Tier& tier);

} // namespace hebe::measure
