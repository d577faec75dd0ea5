// What must not happen on a board while it is measured: another process, an ECC or Xid error. In:
// its meter, before and during; out: a refusal by name, and what could be watched at all.
// Invariant: errors from before are not held against the run.
#pragma once

#include "core/json.hpp"
#include "meter/board_meter.hpp"

#include <set>

namespace hebe::measure {

class BoardWatch {
public:
  explicit BoardWatch(meter::BoardMeter& meter) : meter_(meter) {}
  /// Before the first launch. `own_pids` empty: the meter does not list even our own process.
  void remember(const std::set<std::int64_t>& own_pids);
  /// gpu_busy, device_error.
  [[nodiscard]] Status still_fit(const std::set<std::int64_t>& own_pids);
  [[nodiscard]] const std::optional<Watts>& power_limit() const { return power_limit_; }
  /// {"ecc", "xid", "processes"}: "none seen" or unavailable.
  [[nodiscard]] const Json& watched() const { return watched_; }

private:
  meter::BoardMeter& meter_;
  std::optional<Watts> power_limit_;
  std::optional<std::int64_t> errors_before_;
  Json watched_;
};

} // namespace hebe::measure
