// A stored trace as a BoardMeter: what a real board's meters once said, at the same relative times.
// In: CSV files; out: those readings. Invariant: nothing is interpolated; a field the trace lacks
// is unsupported, and the readings are the trace's, so they are not measurements of this machine.
#pragma once

#include "meter/board_meter.hpp"

#include <filesystem>
#include <memory>

namespace hebe::meter {

class ReplayMeter final : public BoardMeter {
public:
  /// `samples_csv`: wall_us,power_mw rows, no header. `poll_csv`: header
  /// t,tag,avg_mw,inst_mw,usage_mw, energy_mj, t in seconds. Both start at the clock's present
  /// instant. bad_schema names file and line.
  [[nodiscard]] static Result<std::unique_ptr<ReplayMeter>>
  open(const std::filesystem::path& samples_csv, const std::filesystem::path& poll_csv,
       Clock& clock);

  [[nodiscard]] const BoardIdentity& board() const override { return identity_; }
  [[nodiscard]] SourceIdentity samples_source() const override;
  [[nodiscard]] SourceIdentity counter_source() const override;
  [[nodiscard]] Result<std::vector<PowerSample>>
  read_power_samples(std::int64_t since_wall_us) override;
  [[nodiscard]] Result<Boundary> read_boundary() override;
  [[nodiscard]] Result<std::vector<GpuProcess>> processes() override {
    return std::vector<GpuProcess>{};
  }
  [[nodiscard]] Result<Watts> power_limit() override;
  [[nodiscard]] Result<bool> mig_enabled() override { return false; }
  [[nodiscard]] Result<std::int64_t> uncorrected_errors() override;
  [[nodiscard]] Result<std::vector<std::int64_t>> new_xid_events() override {
    return std::vector<std::int64_t>{};
  }
  /// The polled columns: average, instant and usage power, and the counter.
  [[nodiscard]] std::vector<Discovered> sources() override;
  [[nodiscard]] std::vector<Fact> facts() override { return {}; }

  /// The trace's own marks (idle, load, …): tag and the half-open span of instants it covers.
  struct Mark {
    std::string tag;
    Instant from, to;
  };
  [[nodiscard]] const std::vector<Mark>& marks() const { return marks_; }

private:
  explicit ReplayMeter(Clock& clock) : clock_(clock) {}
  struct Poll {
    Instant at;
    std::int64_t average_mw, instant_mw, usage_mw, energy_mj;
  };
  class Column;
  [[nodiscard]] const Poll* poll_at(Instant t) const;
  Clock& clock_;
  BoardIdentity identity_{"replay",   "stored trace", "REPLAY",
                          "replay:0", "as recorded",  Provenance::simulated};
  std::vector<PowerSample> samples_;
  std::vector<Poll> polls_;
  std::vector<Mark> marks_;
};

} // namespace hebe::meter
