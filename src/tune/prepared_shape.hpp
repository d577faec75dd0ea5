// Everything that a tune will measure, compiled before anything is measured. In: a specification,
// its backends, a device; out: for each shape its baseline and its candidates, the baseline first.
// Invariant: no candidate stands there twice; what cannot run has its reason; a random search draws
// before it compiles.
#pragma once

#include "tune/host_search.hpp"
#include "tune/tune_spec.hpp"

namespace hebe::tune {

struct PreparedShape {
  const ShapeSpec* spec = nullptr;
  std::vector<TriedCandidate> candidates; ///< the first is the baseline
  bool baseline_is_offered = false;       ///< a backend's space has it too
  [[nodiscard]] const campaign::PreparedCase& baseline() const {
    return *std::get<DeviceCode>(candidates.front().prepared->code);
  }
};

using Backends = std::vector<std::unique_ptr<Backend>>;
/// One a backend of the specification, in its order; bad_spec. Host code is offered where `host`
/// opens a meter.
[[nodiscard]] Result<Backends> backends_of(const TuneSpec& spec,
                                           const HostMetering& host = rapl_metering());

/// What a shape's backends offer, the baseline first; nothing is compiled.
[[nodiscard]] Result<PreparedShape> offered(const TuneSpec& spec, const ShapeSpec& shape,
                                            const Backends& backends, const Bench& bench,
                                            std::uint64_t seed);
/// Refuses where the baseline cannot run, or is not of the specification's dtype.
/// `go_on` is asked before each.
[[nodiscard]] Status prepare(PreparedShape& shape, const TuneSpec& spec, const Backends& backends,
                             const Bench& bench, const std::function<Status()>& go_on);

} // namespace hebe::tune
