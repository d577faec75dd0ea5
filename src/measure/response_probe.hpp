// Steps, square waves and duty cycles for a meter to show. In: sources, a device with a kernel;
// out: a recording with the edges of every pulse. Invariant: one thread, on the device's clock;
// nothing but replays is done to the board.
#pragma once

#include "measure/response.hpp"
#include "measure/source_probe.hpp"

namespace hebe::measure {

struct ResponseSchedule {
  int steps = 24;
  Seconds on{0.6}, off{0.85};
  std::vector<double> periods = {0.02, 0.025, 0.033, 0.04, 0.05, 0.08, 0.1,
                                 0.16, 0.2,   0.25,  0.4,  0.5,  1.0}; ///< seconds, half on
  std::vector<double> duties = {0.25, 0.75};                           ///< of 0.1 s
  Seconds square{2}; ///< of each wave, and at least six of its periods
  [[nodiscard]] Seconds total() const;
};

[[nodiscard]] Result<Recording> record_response(meter::BoardMeter& board,
                                                std::vector<meter::Discovered> sources,
                                                Clock& clock, const ResponseSchedule& schedule,
                                                const ProbeCallbacks& callbacks);

} // namespace hebe::measure
