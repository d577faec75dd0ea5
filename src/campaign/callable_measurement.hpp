// Somebody's own code as an experiment's arms. In: callables that enqueue work onto a stream, a
// machine, a protocol; out: every window with its gates, the analysis, and the board's idle before
// them. Invariant: the windows are those of any job; nothing is written; and no such measurement
// qualifies, for what ran is neither frozen nor checked.
#pragma once

#include "campaign/measurement.hpp"
#include "measure/arms.hpp"

namespace hebe::campaign {

struct CallableRequest {
  MachineRequest machine;
  measure::Tier tier;
  int pairs = 0;
  Seconds window{0}, warm_up{0};
  std::optional<std::uint64_t> seed; ///< none: random when measured, 0 when simulated
  measure::Margins margins;
  std::array<measure::ExternalArm, 2> arms;
  bool same = false; ///< both are one callable: a measurement of it against itself
  Seconds idle{0};   ///< of the idle window before the warm-up; 0: there is none
};

/// What the meters saw of the board with our context open and nothing on it.
struct IdleWindow {
  meter::Boundary begin, end;
  Seconds duration{0};
  std::optional<Watts> power; ///< mean of the samples; none: too few
  Watts standard_error{0};    ///< of the mean, from its tenths
  Seconds longest_repeat{0};  ///< for which the samples showed one value
};

struct CallableOutcome {
  measure::Plan plan;
  measure::Acquisition acquisition;
  std::vector<measure::Window> windows;
  measure::Analysis analysis;
  std::optional<IdleWindow> idle;
  gpu::DeviceInfo device;
  std::string meter_status; ///< of the samples: its verdict on this board; simulated: "usable"
  std::array<std::int64_t, 2> launches_per_window{};
};

/// What of a request is wrong wherever it is measured, known without looking for a GPU: the plan,
/// faults of a board that is not simulated, a simulated board that there is not.
[[nodiscard]] Status check_callables(const CallableRequest& request);

/// Refuses what a job refuses: no_device where `auto` finds no GPU (a callable is never simulated
/// without being asked), gpu_busy, meter_not_qualified whatever the tier, gate_failed… A callable's
/// own refusal passes through.
[[nodiscard]] Result<CallableOutcome> measure_callables(const evidence::DataRoot& root,
                                                        const CallableRequest& request,
                                                        const JobCallbacks& callbacks);

/// A machine that is simulated only where that was asked for: no_device.
[[nodiscard]] Result<std::unique_ptr<Machine>> open_as_asked(const MachineRequest& request);

/// The verdict on the meter that energy is taken from, on this board: "usable" where it is
/// simulated; meter_not_qualified, whatever the tier.
[[nodiscard]] Result<std::string> samples_status(const evidence::DataRoot& root,
                                                 const Machine& machine);

} // namespace hebe::campaign
