// How the windows were taken: everything beside the windows that the analysis depends on, as it was
// seen. In: a raw run; out: the first line of windows.jsonl, and back. Invariant: plan +
// acquisition + windows + samples determine the analysis.
#pragma once

#include "measure/experiment.hpp"

namespace hebe::measure {

struct Acquisition {
  Provenance provenance = Provenance::simulated;
  meter::SourceIdentity samples, counter;
  WarmUp warm_up;
  std::vector<Hold> holds;
  MeterBehaviour behaviour;
  Reference reference;
  std::vector<std::int64_t> clock_jumps_ns;
  std::int64_t drains = 0, largest_offset_change_ns = 0, largest_sample_age_ns = 0,
               clock_offset_ns = 0;
  std::optional<double> sampler_cpu_share; ///< of one core; absent on a virtual clock
  Seconds wall{0};
  Json check;     ///< of outputs, inputs and canaries, before the warm-up
  Json occupancy; ///< per arm, or unavailable
  Json errors;    ///< whether ECC, Xid and foreign processes could be watched
};

[[nodiscard]] Acquisition acquisition_of(const RawRun& run, const meter::BoardMeter& meter,
                                         bool virtual_clock);
[[nodiscard]] Json to_json(const Acquisition& acquisition); ///< schema hebe.run.acquisition/1
[[nodiscard]] Result<Acquisition> acquisition_from(const Json& json, std::string_view where);

} // namespace hebe::measure
