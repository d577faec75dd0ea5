#include "measure/idleness.hpp"

#include "measure/gates.hpp"
#include "measure/replay_stream.hpp"
#include "measure/summary.hpp"

#include <algorithm>
#include <span>

namespace hebe::measure {

SlowerByClock slower_by_clock(const Tier& tier, const meter::Boundary& from,
                              const meter::Boundary& to, Nanos between) {
  if (!tier.max_capped_clock_change) return {};
  SlowerByClock out{capped_share(from, to, between) * *tier.max_capped_clock_change, 0};
  if (at_power_limit(from) && from.sm_clock_mhz && to.sm_clock_mhz && *from.sm_clock_mhz > 0)
    out.recovering = std::max(
        0.0, static_cast<double>(*to.sm_clock_mhz) / static_cast<double>(*from.sm_clock_mhz) - 1);
  return out;
}

void count_idle(Stretch& s, Seconds typical, const SlowerByClock& slower) {
  constexpr std::size_t kNear = 5; // replays: for a median, and around one, itself among them
  const std::span all(s.times), last = all.subspan(s.from);
  const bool enough = all.size() >= kNear;
  const double usual =
      s.fed && last.size() >= kNear ? std::max(typical.value(), median_of(last)) : typical.value();
  const double held = s.ran_dry || !enough ? 0 : typical.value() * (1 + slower.held);
  double coming_back = s.ran_dry ? 0 : typical.value() * (1 + slower.recovering);
  double idle = 0, busy = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double own = std::max(usual, coming_back);
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
