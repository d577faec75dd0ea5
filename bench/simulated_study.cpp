#include "simulated_study.hpp"

#include "core/philox.hpp"
#include "gpu/sim_device.hpp"
#include "measure/arms.hpp"

#include <algorithm>
#include <cmath>

namespace hebe::bench {
namespace {

// An arm's launch is bound by memory: operations cost energy but no time, unless the power cap
// holds. A has some, so that B can have fewer.
constexpr double kOperationsPerByte = 1.4;
constexpr double kElementwiseBytes = 12.0 * (1 << 25); // vector addition of 2^25 floats, 94 us
constexpr std::uint64_t kFaultStream = 0xfa17;
constexpr int kTruthOrders = 8; // and their mirror images

kernel::LaunchSpec launch_of(double bytes, double operations) {
  kernel::LaunchSpec spec;
  spec.name = "bench";
  spec.work =
      kernel::DeclaredWork{{static_cast<std::uint64_t>(bytes)}, {0}, {{"fp32_add", operations}}};
  return spec;
}

/// A plan as `hebe run-aa` makes it: confirmation-v1 at its minimum.
Result<measure::Plan> plan_for(const Scenario& s, std::uint64_t seed) {
  measure::Plan plan;
  HEBE_TRY(plan.tier, measure::tier_named("confirmation-v1"));
  plan.pairs = plan.tier.min_pairs;
  plan.window = plan.tier.min_window;
  plan.warm_up = plan.tier.min_warm_up;
  plan.seed = seed;
  plan.cubins = {"A", s.effect == 0 ? "A" : "B"};
  HEBE_CHECK(measure::complete_plan(plan));
  return plan;
}

/// A board with its meter, and the two arms loaded.
struct Bench {
  VirtualClock clock;
  gpu::SimBoard board;
  gpu::SimDevice device;
  meter::SimMeter meter;

  Bench(const Scenario& s, const gpu::BoardModel& model, std::uint64_t seed)
      : board(clock, model, seed,
              s.condition.faults ? s.condition.faults(seed) : std::vector<gpu::Fault>{}),
        device(board, gpu::sim_device_info()), meter(board, device.info(), s.condition.meter) {}

  Result<measure::RawRun> run(const Scenario& s, const measure::Plan& plan) {
    const double bytes = s.condition.launch_bytes, operations = kOperationsPerByte * bytes;
    const std::array specs = {launch_of(bytes, operations),
                              launch_of(bytes, operations + s.extra_operations)};
    std::array<std::unique_ptr<gpu::Kernel>, 2> kernels;
    for (std::size_t a = 0; a < 2; ++a) {
      HEBE_TRY(kernels[a], device.load({&specs[a], {}, {}, {}}, {}));
    }
    HEBE_TRY(auto arms, measure::prepare_arms(device, {kernels[0].get(), kernels[1].get()},
                                              plan.cubins[0] == plan.cubins[1]));
    measure::Supervision supervision;
    supervision.may_continue = [] { return Status{}; };
    HEBE_TRY(const auto processes, meter.processes()); // before any fault: only ours
    for (const auto& p : processes) supervision.own_pids.insert(p.pid);
    return measure::run_experiment(plan, device, arms, meter, supervision);
  }

  /// Mean over accepted pairs, from the integral of true power over each window.
  double exact_effect(const std::vector<measure::Window>& windows) const {
    double sum = 0, pairs = 0;
    for (std::size_t i = 0; i + 1 < windows.size(); i += 2) {
      if (!windows[i].pair_accepted || !windows[i + 1].pair_accepted) continue;
      for (const auto& w : {windows[i], windows[i + 1]}) {
        const auto& r = w.reading;
        const auto energy = board.energy(Instant(Nanos(r.begin_ns)), Instant(Nanos(r.end_ns)));
        const double log = std::log(energy.value() / static_cast<double>(r.launches()));
        sum += r.arm == 1 ? log : -log;
      }
      pairs += 1;
    }
    return sum / pairs;
  }
};

Result<Outcome> try_study(const Scenario& s, std::uint64_t seed) {
  HEBE_TRY(const auto plan, plan_for(s, seed));
  Bench bench(s, s.condition.board, seed);
  HEBE_TRY(auto raw, bench.run(s, plan));
  const auto acquisition = measure::acquisition_of(raw, bench.meter, true);
  HEBE_CHECK(measure::judge_windows(raw.windows, raw.sampler.samples, plan, acquisition));
  Outcome o;
  HEBE_TRY(o.analysis, measure::analyse(plan, "bench", acquisition, raw.windows));
  o.exact_effect = bench.exact_effect(raw.windows);
  o.retries = static_cast<int>(raw.windows.size() / 2) - plan.pairs;
  o.warm_up = raw.warm_up.duration;
  return o;
}

Result<double> quiet_effect(const Scenario& s, std::uint64_t seed, bool mirrored) {
  HEBE_TRY(auto plan, plan_for(s, seed));
  if (mirrored)
    for (auto& o : plan.order)
      o = o == measure::PairOrder::ab ? measure::PairOrder::ba : measure::PairOrder::ab;
  auto quiet = s.condition.board;
  quiet.power_wander = quiet.latency_noise = 0;
  Bench bench(s, quiet, seed);
  HEBE_TRY(const auto raw, bench.run(s, plan));
  return bench.exact_effect(raw.windows);
}

/// `count` times in [from, to), latest first: SimBoard::active reports the first fault that has
/// begun.
std::vector<gpu::Fault> at_random(gpu::FaultKind kind, std::uint64_t seed, int count, double from,
                                  double to) {
  Philox random(seed, kFaultStream);
  std::vector<gpu::Fault> faults;
  for (int i = 0; i < count; ++i)
    faults.push_back({kind, Seconds(from + (to - from) * random.uniform())});
  std::ranges::sort(faults, std::greater{}, [](const gpu::Fault& f) { return f.after; });
  return faults;
}

} // namespace

std::vector<Condition> all_conditions() {
  using enum gpu::FaultKind;
  Condition plain;
  plain.name = "plain";
  plain.text = "the board as found";
  plain.launch_bytes = kElementwiseBytes;

  auto drift = plain;
  drift.name = "power_drift";
  drift.text =
      "dynamic power rises by 0.01 % of its start a second, from the first launch to the last";
  drift.faults = [](std::uint64_t) { return std::vector<gpu::Fault>{{power_drift, Seconds(0)}}; };

  auto ambient = plain;
  ambient.name = "ambient_rise";
  ambient.text = "the room warms by 8 K, at a random time of the warm-up's first 30 s";
  ambient.faults = [](std::uint64_t seed) { return at_random(ambient_rise, seed, 1, 0, 30); };

  auto heating = plain;
  heating.name = "slow_heating";
  heating.text = "thermal time constant 30 s: the board still warms when the pairs begin";
  heating.board.thermal_time_constant = Seconds(30);

  auto locked = plain;
  locked.name = "phase_lock";
  locked.text =
      "a replay lasts exactly one sample period (20 ms), a window 50 counter updates; no jitter";
  locked.board.latency_noise = 0;
  locked.meter.sample_jitter = Nanos(0);
  locked.launch_bytes =
      std::round((to_seconds(locked.meter.sample_period) - locked.board.launch_overhead).value() *
                 locked.board.bandwidth);

  auto capped = plain;
  capped.name = "power_cap";
  capped.text =
      "a limit of 400 W, far under what the arms would draw: the clocks fall, time stretches";
  capped.board.power_limit = Watts(400);

  auto gaps = plain;
  gaps.name = "sample_gaps";
  gaps.text = "three gaps of 1 s in the samples at random times: the pairs they hit are repeated";
  gaps.faults = [](std::uint64_t seed) { return at_random(samples_gap, seed, 3, 35, 165); };

  return {plain, drift, ambient, heating, locked, capped, gaps};
}

Outcome simulate(const Scenario& scenario, std::uint64_t seed) {
  auto outcome = try_study(scenario, seed);
  if (outcome) return *std::move(outcome);
  Outcome refused;
  refused.refusal = std::move(outcome).error();
  return refused;
}

Result<double> true_effect(const Scenario& scenario) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < kTruthOrders; ++seed)
    for (const bool mirrored : {false, true}) {
      HEBE_TRY(const double effect, quiet_effect(scenario, seed, mirrored));
      sum += effect;
    }
  return sum / (2 * kTruthOrders);
}

Result<Scenario> with_operations(Scenario s) {
  s.extra_operations = s.truth = 0;
  if (s.effect == 0) return s; // equal arms: 0 by symmetry
  // Secant method; the energy of a launch is almost linear in its operations.
  constexpr double kTolerance = 2e-7;
  const auto& m = s.condition.board;
  const double bytes = s.condition.launch_bytes;
  const double launch_joules =
      bytes * (m.joules_per_byte + kOperationsPerByte * m.joules_per_operation +
               m.context_idle.value() / m.bandwidth);
  double slope = 1 / launch_joules * m.joules_per_operation;
  for (int round = 0; round < 8; ++round) {
    const double step = (s.effect - s.truth) / slope;
    const double before = s.truth;
    s.extra_operations += step;
    HEBE_TRY(s.truth, true_effect(s));
    if (std::abs(s.truth - s.effect) < kTolerance) return s;
    slope = (s.truth - before) / step;
  }
  return refuse(RefusalCode::internal, "no work of B has the wanted effect in " + s.name());
}

} // namespace hebe::bench
