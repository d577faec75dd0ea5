// Drains the driver's sample buffer well inside its length, on the clock's own thread. In: a
// board's buffer; out: samples on the host's monotonic clock, with the offset used for each.
// Invariant: every sample is kept once, in order; an error or a jump of the wall clock is kept too,
// never smoothed over.
#pragma once

#include "meter/board_meter.hpp"

#include <mutex>

namespace hebe::meter {

struct AlignedSample {
  std::int64_t t_mono_ns = 0;   ///< host monotonic time
  std::int64_t t_source_us = 0; ///< the driver's own stamp
  std::int64_t raw_mw = 0;
};

/// One drain of the buffer.
struct Drain {
  std::int64_t t_mono_ns = 0;
  std::int64_t offset_ns = 0; ///< wall minus monotonic clock, as used for its samples
  std::int64_t samples = 0;
  std::int64_t newest_age_ns = 0; ///< now minus the newest sample: bounds the alignment error
};

struct SamplerRecord {
  std::vector<AlignedSample> samples;
  std::vector<Drain> drains;
  std::vector<std::int64_t>
      clock_jumps_ns;             ///< monotonic instants at which the wall clock had stepped
  std::optional<Refusal> failure; ///< the first one; sampling stopped there
  Seconds cpu{0};                 ///< CPU time of the drains
};

class PowerSampler {
public:
  /// A step of the wall clock over this against the monotonic one is a jump, not slewing: the
  /// kernel slews at most 500 ppm, 0.25 ms between drains.
  static constexpr std::int64_t kJumpNs = 2'000'000;

  PowerSampler(BoardMeter& meter, Clock& clock, Nanos period = std::chrono::milliseconds(500));
  ~PowerSampler() { stop(); }
  PowerSampler(const PowerSampler&) = delete;
  PowerSampler& operator=(const PowerSampler&) = delete;
  void start();
  void stop();      ///< one last drain, then none
  void drain_now(); ///< also usable between the periodic ones
  /// A copy of everything gathered so far.
  [[nodiscard]] SamplerRecord record() const;
  /// Samples with t_mono_ns in [from, to], a copy.
  [[nodiscard]] std::vector<AlignedSample> between(std::int64_t from_ns, std::int64_t to_ns) const;
  [[nodiscard]] std::optional<Refusal> failure() const;
  [[nodiscard]] bool jumped_in(std::int64_t from_ns, std::int64_t to_ns) const;

private:
  BoardMeter& meter_;
  Clock& clock_;
  Nanos period_;
  mutable std::mutex mutex_;
  SamplerRecord record_;
  std::int64_t last_wall_us_ = 0, last_mono_ns_ = 0;
  std::optional<std::int64_t> last_offset_ns_;
  std::vector<std::int64_t> distrusted_us_; ///< stamps in the buffer when the wall clock had jumped
  Subscription subscription_;
};

} // namespace hebe::meter
