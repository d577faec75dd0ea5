// A simulated GPU with everything around it, for tests of what runs on it. In: a seed, faults, a
// model; out: clock, board, device, meter, two loaded kernels. Invariant: no Python, no files, no
// real time.
#pragma once

#include "gpu/sim_device.hpp"
#include "measure/acquisition.hpp"
#include "measure/analysis.hpp"
#include "measure/arms.hpp"
#include "measure/experiment.hpp"
#include "meter/sim_meter.hpp"

#include "launch_json.hpp"

#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace hebe::test {

inline std::vector<gpu::Fault> faults_from(std::initializer_list<const char*> texts) {
  std::vector<gpu::Fault> faults;
  for (const char* text : texts) faults.push_back(gpu::fault_from(text).value());
  return faults;
}

/// A board on which equal work takes equal time and energy.
inline gpu::BoardModel still_model() {
  gpu::BoardModel m;
  m.power_wander = 0;
  m.latency_noise = 0;
  return m;
}

inline measure::Plan smoke_plan(int pairs = 3, std::uint64_t seed = 1) {
  measure::Plan p;
  p.tier = measure::tier_named("smoke-v1").value();
  p.subject = {{"artifacts", {{"cubin", std::string(64, 'a')}}}};
  p.cubins = {std::string(64, 'a'), std::string(64, 'a')};
  p.inputs = Json::object();
  p.device = {{"provenance", "simulated"}};
  p.pairs = pairs;
  p.window = Seconds(0.5);
  p.warm_up = Seconds(1);
  p.seed = seed;
  p.resamples = 100; // the least that is allowed: these tests are not about the interval
  (void)measure::complete_plan(p).value();
  return p;
}

/// Nobody interrupts; our own process is 1; `told` gets the texts, `progress` everything.
inline measure::Supervision
supervised(std::vector<std::string>* told = nullptr,
           std::function<void(const measure::Progress&)> progress = {}) {
  measure::Supervision s;
  s.may_continue = [] { return Status{}; };
  s.progress = [told, progress](const measure::Progress& p) {
    if (told != nullptr && !p.text.empty()) told->push_back(p.text);
    if (progress) progress(p);
  };
  s.own_pids = {1};
  return s;
}

struct SimGpu {
  explicit SimGpu(std::uint64_t seed = 1, std::vector<gpu::Fault> faults = {},
                  const gpu::BoardModel& model = {}, std::array<double, 2> bytes = {1e8, 1e8})
      : board(clock, model, seed, std::move(faults)), device(board, gpu::sim_device_info()),
        meter(board, device.info()) {
    for (auto& buffer : buffers) buffer = device.allocate({4 * 1024}).value();
    for (std::size_t arm = 0; arm < 2; ++arm) {
      launches[arm] =
          kernel::LaunchSpec::from_json(vector_launch(1024, bytes[arm]), "test").value();
      kernels[arm] = device.load({&launches[arm], {}, {}, {}}, buffers).value();
    }
  }

  Result<measure::RawRun> run(const measure::Plan& plan,
                              const measure::Supervision& supervision = supervised()) {
    HEBE_TRY(arms, measure::prepare_arms(device, {kernels[0].get(), kernels[1].get()},
                                         plan.cubins[0] == plan.cubins[1]));
    return measure::run_experiment(plan, device, arms, meter, supervision);
  }

  VirtualClock clock;
  gpu::SimBoard board;
  gpu::SimDevice device;
  meter::SimMeter meter;
  std::vector<gpu::DevicePointer> buffers{0, 0, 0}; ///< x, y, out
  std::array<kernel::LaunchSpec, 2> launches;
  std::array<std::unique_ptr<gpu::Kernel>, 2> kernels;
  measure::Arms arms;
};

/// A fault by name; "samples_gap@window" is in the middle of the third window of a healthy smoke
/// run (default plan and seed), whenever that is.
inline gpu::Fault fault_named(std::string text) {
  static const double middle = [] {
    SimGpu sim;
    const auto raw = sim.run(smoke_plan()).value();
    const auto& r = raw.windows[2].reading;
    const auto at = Instant(Nanos(r.begin_ns + (r.end_ns - r.begin_ns) / 2)) - sim.board.start();
    return std::round(to_seconds(at).value() * 1e3) * 1e-3;
  }();
  if (const auto at = text.find("@window"); at != std::string::npos)
    text.replace(at, std::string::npos, "@" + ecmascript_number(middle));
  return gpu::fault_from(text).value();
}

} // namespace hebe::test
