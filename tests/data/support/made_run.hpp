// A whole run as a job makes it, on the simulated GPU and without Python. In: pairs, seed, faults;
// out: the parts that are sealed. Invariant: equal arguments give equal bytes.
#pragma once

#include "evidence/environment.hpp"
#include "evidence/sealed_run.hpp"

#include "sim_gpu.hpp"

namespace hebe::test {

inline evidence::RunParts made_run(const measure::Plan& plan, std::vector<gpu::Fault> faults = {}) {
  SimGpu sim(plan.seed, std::move(faults));
  auto raw = sim.run(plan).value();
  evidence::RunParts parts;
  parts.plan = plan;
  parts.plan_id = content_id(measure::to_json(plan)).value();
  parts.environment =
      evidence::environment_json({known("device.uuid", sim.device.info().uuid, "test"),
                                  unknown("host.load", "test", "virtual time")});
  parts.acquisition = measure::acquisition_of(raw, sim.meter, true);
  parts.acquisition.check = {{"A", "right"}, {"B", "right"}};
  parts.acquisition.occupancy = Json::object();
  parts.windows = std::move(raw.windows);
  parts.samples = std::move(raw.sampler.samples);
  (void)measure::judge_windows(parts.windows, parts.samples, plan, parts.acquisition).value();
  parts.analysis = measure::analyse(plan, parts.plan_id, parts.acquisition, parts.windows).value();
  return parts;
}

} // namespace hebe::test
