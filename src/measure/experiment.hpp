// The run loop: warm up, pairs, retries. In: a frozen plan, two loaded arms, a board's meter, the
// gate that says whether we still may; out: every window that was attempted, with its samples.
// Invariant: nothing is written here, and nothing is dropped for its value.
#pragma once

#include "measure/arms.hpp"
#include "measure/gates.hpp"
#include "measure/holding.hpp"
#include "measure/plan.hpp"
#include "measure/settling.hpp"
#include "meter/power_sampler.hpp"

#include <functional>
#include <set>
#include <span>

namespace hebe::measure {

struct Progress {
  std::string stage; ///< "warm-up", "pairs"
  double done = 0;   ///< 0..1 of the whole job
  Seconds left{0};   ///< estimate
  std::string text;  ///< what just happened, for a log line; often empty
};

/// What the run loop may not decide by itself.
struct Supervision {
  std::function<Status()> may_continue; ///< before every window: lease held, not interrupted
  std::function<void(const Progress&)> progress;
  std::set<std::int64_t>
      own_pids;             ///< our own process, as the board's meter lists it; empty: it does not
  KnownResponse response{}; ///< what sets the pre-roll, if there is a record
};

struct WarmUp {
  Seconds duration{0};
  bool stable = false;
  std::vector<WarmUpBlock> blocks;
};

/// Everything a job gathered; a pure function of it gives the analysis.
struct RawRun {
  WarmUp warm_up;
  MeterBehaviour behaviour;
  Reference reference;
  std::array<std::uint32_t, 2> launches_per_replay{};
  std::array<std::int64_t, 2> replays_per_window{};
  std::vector<Window> windows;
  std::vector<Hold> holds;
  meter::SamplerRecord sampler;
  Json errors; ///< what was watched during the run: {"ecc", "xid", "processes"}: "none seen" or
               ///< unavailable
  Seconds wall{0};
};

/// Refuses (and then nothing may be recorded) when the meter, the board or the machine is unfit:
/// meter_*, gpu_busy, throttled, not_stable, device_error, interrupted, lease_lost…
[[nodiscard]] Result<RawRun> run_experiment(const Plan& plan, gpu::Device& device, Arms& arms,
                                            meter::BoardMeter& meter,
                                            const Supervision& supervision);

} // namespace hebe::measure
