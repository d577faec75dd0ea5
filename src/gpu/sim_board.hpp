// The simulated board: power, heat and time of enqueued work. In: work with a price; out: its
// duration and the board's true power at any past instant. Invariant: true energy is the exact
// integral of true power, so what a meter or an estimator makes of it can be compared with the
// truth.
#pragma once

#include "core/clock.hpp"
#include "core/philox.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hebe::gpu {

/// Constants of the model. Defaults resemble an H200 as measured with driver 580.159.04: 78 W with
/// no context, 125 W with one, 4.28 TB/s, 612 W for a copy kernel that moves 4.14 TB/s, a 700 W
/// limit, 1980 MHz.
struct BoardModel {
  Watts idle{78}, context_idle{125}, power_limit{700};
  double bandwidth = 4.28e12;       ///< bytes/s
  double flops = 60e12;             ///< fp32 operations/s
  double joules_per_byte = 118e-12; ///< (612 - 125) W / 4.14 TB/s
  double joules_per_operation = 1.5e-12;
  Seconds launch_overhead{1.1e-6};    ///< between launches inside a graph
  double leakage_per_kelvin = 0.0006; ///< of static power, around 45 C
  Celsius ambient{30};
  /// Cooling that others share: the room's temperature swings by this about ambient, as a sine.
  Celsius ambient_swing{0};
  Seconds ambient_swing_period{240};
  double kelvin_per_watt = 0.055;
  Seconds thermal_time_constant{12};
  Hertz clock{1.98e9};
  // Fluctuations: what makes two equal windows differ. Floors of the real board: pairs of 5 s
  // windows differ by about 0.05 %, their latencies by 0.001 - 0.005 %.
  double power_wander = 0.0004;  ///< relative sd of a slow AR(1) in dynamic power
  Seconds wander_time{2.0};      ///< its correlation time
  double latency_noise = 0.0004; ///< relative sd of one graph replay
  /// At the power limit the board's control moves the SM clock about its mean, by up to this: as
  /// read from an H200 (docs/protocol.md). Arithmetic follows it.
  double capped_clock_wander = 0.03;
  /// Where the limit lets go, the clock comes back with about this time constant: of replays of 24
  /// ms after an arm at the limit an H200's first took 13 to 23 % longer, the second 7 to 12, the
  /// fourth 1 to 3 (evidence/h200-tunes-prefill).
  Seconds capped_clock_recovery{0.05};
  /// The control acts late: a load that begins on an idle board runs at its full clock for
  /// `limit_delay`, then its power swings about the limit by this share of what is above the idle
  /// board's, once a `limit_swing_period`, dying away with `limit_swing_time`. An H200 of 700 W
  /// went 784, 507, 778, 567, 760, 614, 751, 640 W in 4.2 s and was within 30 W of it after 8
  /// (evidence/h200-tunes-widths, 224958Z: its telemetry), which 0.48 resembles; 0: it holds at
  /// once.
  double limit_swing = 0;
  Seconds limit_delay{0.7}, limit_swing_period{1.02}, limit_swing_time{2.6};
};

/// The price of one launch.
struct Work {
  double bytes = 0, operations = 0;
  double time_scale = 1, energy_scale = 1; ///< for shifted studies with a known truth
};

/// Everything that can be made to go wrong, each at a given time after the start.
enum class FaultKind {
  counter_frozen,      ///< the energy counter stops advancing
  counter_backwards,   ///< it loses 5 kJ
  counter_reset,       ///< it restarts from 0
  counter_unsupported, ///< the driver answers NOT_SUPPORTED
  samples_frozen,      ///< the sample buffer repeats one value
  samples_empty,       ///< the sample buffer returns none
  samples_gap,         ///< one second of samples is missing
  samples_implausible, ///< a union member read as the wrong type: 4.99e18 mW
  samples_unsupported,
  counter_wraps,         ///< it restarts at 0 after 2^32 mJ, a width that nobody declared
  samples_zero,          ///< the sample buffer holds zeros
  samples_foreign_clock, ///< samples are stamped with another clock than the host's
  field_frozen,          ///< the instant power field stops moving
  field_stale,           ///< it moves every 3 s only
  field_lies,            ///< it reads 30 % high
  field_wrong_unit,      ///< it answers in µW where mW are documented
  field_implausible,     ///< a union member read as the wrong type: 4.99e18 mW
  field_denied,          ///< the driver answers NO_PERMISSION
  temperature_unsupported,
  meter_lies,      ///< the counter runs 30 % fast
  nvml_lost,       ///< every call answers GPU_IS_LOST
  foreign_process, ///< another process opens the GPU
  context_stays,   ///< a library keeps the context: our process stays listed after its device is
                   ///< closed
  thermal_throttle,
  power_brake,
  power_drift,    ///< power rises slowly over the whole run
  ambient_rise,   ///< the room warms by 8 K
  latency_jitter, ///< launches become 50 times noisier
  clock_jump,     ///< the host's wall clock steps by 2 s
  ecc_error,
  mig,           ///< MIG is on
  wrong_output,  ///< the kernel's output is wrong in one element
  lease_removed, ///< somebody deletes the lease file
  reboot,        ///< identity: the machine was started again
  driver_update, ///< identity: another driver
  board_swap,    ///< identity: another board of another model in its place
};
/// Such a fault changes who the board is, not how it behaves: it is no part of a plan.
[[nodiscard]] constexpr bool changes_identity(FaultKind kind) {
  return kind == FaultKind::reboot || kind == FaultKind::driver_update ||
         kind == FaultKind::board_swap;
}

struct Fault {
  FaultKind kind;
  Seconds after{0}; ///< since the board was made
};

/// "samples_gap@60" -> a fault; refuses unknown names, listing them.
[[nodiscard]] Result<Fault> fault_from(std::string_view text);
[[nodiscard]] std::string to_string(const Fault& fault);

class SimBoard {
public:
  SimBoard(VirtualClock& clock, BoardModel model, std::uint64_t seed,
           std::vector<Fault> faults = {});

  /// Appends work behind what is already enqueued; returns the instant it will be complete.
  Instant enqueue(const Work& work, std::uint32_t launches);
  /// The instant the enqueued work ends (not before now).
  [[nodiscard]] Instant idle_from() const;
  void open_context();
  [[nodiscard]] bool has_context() const { return has_context_; }

  /// Exact energy of [from, to], to <= now or the end of the enqueued work.
  [[nodiscard]] Joules energy(Instant from, Instant to) const;
  [[nodiscard]] Watts mean_power(Instant from, Instant to) const;
  [[nodiscard]] Celsius temperature(Instant at) const;
  /// Seconds spent stretched by the power cap up to `at`.
  [[nodiscard]] Seconds capped(Instant at) const;
  /// Of the SMs as it is read at `at`: lower and restless where the power cap stretches the work.
  [[nodiscard]] Hertz clock_rate(Instant at) const;

  [[nodiscard]] const BoardModel& model() const { return model_; }
  [[nodiscard]] VirtualClock& clock() const { return clock_; }
  [[nodiscard]] Instant start() const { return start_; }
  /// Whether a fault of this kind is active at `at`; gives the fault.
  [[nodiscard]] std::optional<Fault> active(FaultKind kind, Instant at) const;
  [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

private:
  struct Segment {
    Instant begin, end;
    double watts, celsius_end, joules_before, capped_before;
    double stretch; ///< of the work's time by the power cap; 1: none
    double behind;  ///< at its begin, of the clock after a power cap: relative to a cycle's time
    [[nodiscard]] bool capped() const { return stretch > 1; }
  };
  void append(Instant end, double watts, double stretch) const;
  void idle_until(Instant t) const;
  [[nodiscard]] double static_watts(double celsius) const;
  [[nodiscard]] double capped_wander(Instant at) const; ///< of a cycle's time, relative
  [[nodiscard]] double limit_swing(Instant at) const;   ///< of the power above the idle board's
  [[nodiscard]] double behind(const Segment& segment, Instant at) const;
  [[nodiscard]] const Segment* segment_at(Instant t) const;
  [[nodiscard]] double joules_until(Instant t) const;

  VirtualClock& clock_;
  BoardModel model_;
  std::uint64_t seed_;
  std::vector<Fault> faults_;
  Philox noise_;
  Instant start_;
  mutable std::vector<Segment> segments_; ///< idle time is filled in when somebody looks
  mutable std::size_t last_segment_ = 0;  ///< where the last look-up ended: meters look nearby
  double wander_ = 0;
  std::optional<Instant> busy_since_, busy_until_;
  bool has_context_ = false;
};

} // namespace hebe::gpu
