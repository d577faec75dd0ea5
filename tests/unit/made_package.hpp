// A CPU package with an energy counter, on a made clock. In: how much it draws, with and without
// work; out: what discovery would find, and work that takes time. Invariant: what it counts follows
// from the clock and the work alone; the counter moves once a millisecond.
#pragma once

#include "meter/called_source.hpp"
#include "tune/host_meter.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace hebe::test {

struct MadePackage {
  VirtualClock clock;
  double unit = 1e-6;                ///< joules of one count
  std::int64_t idle_counts = 20'000; ///< in a millisecond: 20 W
  double work_counts = 30'000;       ///< beyond, in a millisecond of work: 30 W
  Nanos one{2'000'000};              ///< an operation: 60 mJ beyond idle
  Nanos worked{0};
  bool frozen = false;
  std::int64_t fall_at = -1;
  std::int64_t reads = 0;
  std::optional<std::int64_t> wraps_at; ///< the counter restarts at 0 after it
  /// What it draws doing nothing is no longer counted from this millisecond on.
  std::int64_t idle_holds_at = std::numeric_limits<std::int64_t>::max();

  std::int64_t milliseconds() { return clock.now().time_since_epoch().count() / 1'000'000; }

  std::vector<meter::Discovered> sources(const std::string& name = "powercap.intel-rapl.package-0",
                                         const std::string& scope = "cpu-package") {
    meter::SourceDescription d;
    d.identity = {name, "energy_uj", scope, "uJ"};
    d.quantity = meter::Quantity::energy_counter;
    d.si_per_unit = unit;
    d.wraps_at = wraps_at;
    d.driver = "intel-rapl, Linux 6.1";
    std::vector<meter::Discovered> out;
    out.push_back({std::make_unique<meter::CalledSource>(
                       d, clock,
                       [this]() -> Result<std::int64_t> {
                         ++reads;
                         if (frozen) return 4242;
                         if (fall_at >= 0 && reads > fall_at) return 1;
                         const auto idle = std::min(milliseconds(), idle_holds_at);
                         const auto busy = static_cast<double>(worked.count() / 1'000'000);
                         const auto all =
                             idle * idle_counts + static_cast<std::int64_t>(busy * work_counts);
                         return wraps_at ? all % (*wraps_at + 1) : all;
                       }),
                   name,
                   {}});
    return out;
  }
  void work_once() {
    clock.sleep_for(one);
    worked += one;
  }
  Status work(std::int64_t times) {
    clock.sleep_for(one * times);
    worked += one * times;
    return {};
  }
  Result<tune::HostCost> measure(tune::HostMeter& meter) {
    return meter.measure([this](std::int64_t n) { return work(n); }, []() -> Status { return {}; },
                         "placement.json");
  }
};

} // namespace hebe::test
