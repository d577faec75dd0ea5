// What a shape's host code costs, beside a search of the board. In: candidates made ready, how the
// host is metered; out: each checked against the baseline's outputs, then its marginal cost by the
// host's own meter. Invariant: host code that is wrong is never measured; one that ran and was not
// measured is a refusal of the whole shape; no value of one meter is taken for the other's.
#pragma once

#include "tune/candidate_bench.hpp"
#include "tune/host_meter.hpp"

namespace hebe::tune {

/// How the host is metered. A board that is simulated is compared with a meter that is, and only
/// with such a one.
struct HostMetering {
  Provenance provenance = Provenance::measured; ///< of what `open` opens
  std::function<Result<HostMeter>(const HostWindows&)> open;
};
/// By the kernel's RAPL counters.
[[nodiscard]] HostMetering rapl_metering();

struct HostContender {
  std::size_t candidate = 0; ///< its place in the shape's candidates
  CandidateCost cost;
  IdlePower idle; ///< the host's
  MeterIdentity meter;
  Seconds spent{0};      ///< windows and idle
  HostReadings readings; ///< that cost and idle follow from
};
/// As it follows from readings.
[[nodiscard]] HostContender host_contender(std::size_t candidate, HostCost seen,
                                           MeterIdentity meter);
/// What the host's meter is asked for: in a search, and of the best again, for as many windows as
/// the finalists have pairs.
[[nodiscard]] HostWindows searching_windows(const TuneSpec& spec);
[[nodiscard]] HostWindows confirming_windows(const TuneSpec& spec);

/// wrong_output: its outputs are not the baseline's within the baseline's tolerance, or two runs
/// differ. `who` names it.
[[nodiscard]] Status check_host_code(const HostCode& code, const campaign::PreparedCase& baseline,
                                     const std::string& who);

struct HostSearch {
  HostMetering metering;
  HostWindows windows;
  Objective objective = Objective::energy;
  std::function<Status()> may_continue;
  std::string not_written;
};
/// Of one candidate that is right.
[[nodiscard]] Result<HostContender> measure_host(std::size_t candidate, const TriedCandidate& tried,
                                                 const HostSearch& how);
/// Of all that are host code and ready; marks those that are wrong as failed. Nothing is opened
/// where there are none.
[[nodiscard]] Result<std::vector<HostContender>>
measure_hosts(std::vector<TriedCandidate>& candidates, const campaign::PreparedCase& baseline,
              const HostSearch& how);
/// The one that costs least; null: there is none within the bound.
[[nodiscard]] const HostContender* best_host(std::span<const HostContender> all,
                                             const std::optional<double>& latency_bound_ns);

} // namespace hebe::tune
