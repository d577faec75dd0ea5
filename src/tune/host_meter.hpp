// What the host's own work costs, by its energy counters (RAPL). In: the kernel's sources, work
// that can be repeated; out: marginal energy and time of one operation. Invariant: a counter that
// does not advance is refused by its name and measures nothing; both edges of every window lie on
// updates of the counter; nothing is done to the machine but the work.
#pragma once

#include "meter/discovered.hpp"
#include "tune/host_readings.hpp"

#include <functional>

namespace hebe::tune {

class HostMeter {
public:
  /// The counters of all CPU packages, or else of the platform, that advance while `clock` runs.
  /// meter_unsupported: there is none; otherwise why the first of them is not believed
  /// (meter_frozen, no_permission, …), naming it.
  [[nodiscard]] static Result<HostMeter> open(std::vector<meter::Discovered> sources, Clock& clock,
                                              Provenance provenance = Provenance::measured,
                                              const HostWindows& windows = {});
  [[nodiscard]] const MeterIdentity& identity() const { return identity_; }
  [[nodiscard]] const std::string& driver() const { return driver_; }

  /// `work(n)` does n operations and returns when they are done. `not_written` is named in
  /// refusals.
  [[nodiscard]] Result<HostCost> measure(const std::function<Status(std::int64_t)>& work,
                                         const std::function<Status()>& may_continue,
                                         const std::string& not_written,
                                         Objective objective = Objective::energy);

private:
  struct Counter {
    std::unique_ptr<meter::Source> source;
    std::int64_t raw = 0;     ///< as last read
    std::int64_t counted = 0; ///< the same, going on where it wrapped
  };
  struct Edge {
    std::vector<std::int64_t> counts; ///< of each counter
    Instant at;
  };
  HostMeter(Clock& clock, const HostWindows& windows) : clock_(&clock), windows_(windows) {}
  [[nodiscard]] Status advance();
  [[nodiscard]] Result<Edge> next_update();
  [[nodiscard]] Edge edge() const;
  [[nodiscard]] Result<HostStretch> idle();
  [[nodiscard]] Result<HostStretch> busy(const std::function<Status(std::int64_t)>& work,
                                         std::int64_t batch);
  [[nodiscard]] Result<std::int64_t> batch_of(const std::function<Status(std::int64_t)>& work);

  Clock* clock_;
  HostWindows windows_;
  MeterIdentity identity_;
  std::string driver_;
  std::vector<Counter> counters_;
  std::vector<HostCounter> described_; ///< the same counters
  Instant at_;
};

} // namespace hebe::tune
