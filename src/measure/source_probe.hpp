// Reads every source while the board is idle and loaded. In: sources, the board's buffer, a device
// with a kernel; out: the recording that qualification needs. Invariant: one thread does all of it,
// on the device's clock, so simulated time gives equal recordings; nothing but replays is done to
// the board.
#pragma once

#include "measure/experiment.hpp"
#include "measure/probe_load.hpp"
#include "meter/discovered.hpp"

namespace hebe::measure {

/// Lengths of the phases.
struct ProbeSchedule {
  Seconds idle{4}, alone{2.2}, quiet{0.8}, half{6}, before{1.6}, full{8}, after{4};
  Seconds signature_slot{0}; ///< above 0: an on/off signature for an external meter, 127 such slots
  [[nodiscard]] Seconds total(std::size_t sources) const {
    return idle + idle + (alone + quiet) * static_cast<double>(sources) + quiet + half + before +
           full + after + signature_slot * 127;
  }
};

/// Reads the buffer and the sources into rows.
class SourceReader {
public:
  SourceReader(meter::BoardMeter& board, std::vector<meter::Discovered> sources, Clock& clock);

  /// Reads what `polled` names, over and over, and drains the buffer often enough, until `end`;
  /// `meanwhile` is called between readings.
  [[nodiscard]] Status read_until(Instant end, const std::string& polled,
                                  const std::function<Status()>& meanwhile);
  void drain(bool whole); ///< the buffer; `whole`: everything in it, seen or not
  [[nodiscard]] std::vector<std::string> pollable() const; ///< names that gave a value so far
  [[nodiscard]] std::vector<SourceRecord> take() { return std::move(records_); }

private:
  void read(std::size_t i);
  meter::BoardMeter& board_;
  std::vector<meter::Discovered> sources_;
  Clock& clock_;
  std::vector<SourceRecord> records_; ///< the buffer first, then the sources in order
  std::vector<std::size_t> failures_; ///< in a row, of each source
  std::int64_t newest_us_ = 0;
  Instant next_drain_;
  bool whole_ = true;
};

/// What a probe may not decide by itself, and what it needs of the caller.
struct ProbeCallbacks {
  std::function<Status()> may_continue;
  std::function<void(const Progress&)> progress;
  /// Opens the device and loads the kernel: called when the phase without a context is over.
  std::function<Result<std::pair<gpu::Device*, gpu::Kernel*>>()> open;
};

/// Refuses when the board is lost or may_continue says so; sources that fail are findings.
[[nodiscard]] Result<Recording> record_sources(meter::BoardMeter& board,
                                               std::vector<meter::Discovered> sources, Clock& clock,
                                               const ProbeSchedule& schedule,
                                               const ProbeCallbacks& callbacks);

} // namespace hebe::measure
