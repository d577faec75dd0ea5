#include "measure/idleness.hpp"

#include "measure/gates.hpp"
#include "measure/replay_stream.hpp"
#include "measure/summary.hpp"

#include <algorithm>
#include <span>

namespace hebe::measure {

SlowerByClock slower_by_clock(const Tier& tier, const meter::Boundary& from,
                              const meter::Boundary& to, Nanos between, bool after_other_arm) {
  SlowerByClock out;
  // The limit's time goes on being counted for some tenths of a second into another arm.
  if (!(after_other_arm && tier.max_clock_recovery) || at_power_limit(to))
    out.held = capped_share(from, to, between) * tier.max_capped_clock_change.value_or(0);
  if (after_other_arm && at_power_limit(from) && !voiding_reasons(from) && from.sm_clock_mhz &&
      to.sm_clock_mhz && *from.sm_clock_mhz > 0) {
    const double ratio =
        static_cast<double>(*to.sm_clock_mhz) / static_cast<double>(*from.sm_clock_mhz);
    out.recovering = std::clamp(ratio - 1, 0.0, tier.max_clock_recovery.value_or(0));
  }
  return out;
}

void count_idle(Stretch& s, Seconds typical, const SlowerByClock& slower) {
  constexpr std::size_t kNear = 5; // replays: for a median, and around one, itself among them
  const std::span all(s.times), last = all.subspan(s.from);
  const bool enough = all.size() >= kNear;
  const double usual =
      s.fed && last.size() >= kNear ? std::max(typical.value(), median_of(last)) : typical.value();
  const double held = s.ran_dry || !enough ? 0 : typical.value() * (1 + slower.held);
  // Seven recoveries of an H200 took in all `recovering` times 32 to 43 ms, beyond the usual
  // (evidence/h200-tunes-prefill, 194512Z).
  constexpr double kComesBack = 0.05; // s
  double coming_back = s.ran_dry ? 0 : typical.value() * (1 + slower.recovering);
  double left = slower.recovering * kComesBack;
  double idle = 0, busy = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double late = std::clamp(std::min(all[i], coming_back) - usual, 0.0, left);
    left -= late;
    double own = usual + late;
    if (held > usual) {
      const auto first = std::min(i < kNear / 2 ? 0 : i - kNear / 2, all.size() - kNear);
      own = std::max(own, std::min(held, median_of(all.subspan(first, kNear))));
    }
    coming_back = std::min(coming_back, all[i]);
    const double excess = std::max(0.0, all[i] - own);
    idle += excess;
    if (i >= s.from) busy += all[i] - excess;
  }
  s.idle = Seconds(idle);
  s.device = Seconds(busy);
}

} // namespace hebe::measure
