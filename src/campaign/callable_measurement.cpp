#include "campaign/callable_measurement.hpp"

#include "measure/analysis.hpp"
#include "measure/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hebe::campaign {
namespace {

// After work an H200's power falls for half a second.
constexpr Seconds kSettle{1.0};
constexpr Seconds kSamplesArrive{0.3};
constexpr int kTenths = 10;

std::int64_t ns(Instant t) { return t.time_since_epoch().count(); }

Result<measure::Plan> plan_of(const CallableRequest& request, bool simulated) {
  measure::Plan plan;
  plan.kind = request.same ? "aa" : "ab";
  plan.tier = request.tier;
  plan.pairs = request.pairs;
  plan.window = request.window;
  plan.warm_up = request.warm_up;
  plan.margins = request.margins;
  // Not files: names that say whether the arms are one.
  plan.cubins = {"callable A", request.same ? "callable A" : "callable B"};
  plan.device = {{"provenance", simulated ? "simulated" : "measured"}};
  plan.seed = request.seed.value_or(0);
  if (!request.seed && !simulated) {
    std::random_device entropy;
    plan.seed = (std::uint64_t{entropy()} << 32) | entropy();
  }
  HEBE_CHECK(complete_plan(plan));
  return plan;
}

// A process that holds a context before we open ours is the caller's own, where it hands its stream
// to us: then it is looked for afterwards (our_processes), as one alone.
Status fit_to_open(Machine& machine, const CallableRequest& request) {
  if (!request.machine.stream) return board_is_free(machine);
  HEBE_TRY(const bool mig, machine.meter().mig_enabled());
  if (mig)
    return refuse(
        RefusalCode::mig_enabled, "MIG is on: the board's power is that of all its slices together",
        "measure on a board whose administrator has MIG off", machine.meter().board().uuid);
  return {};
}

void describe_idle(IdleWindow& idle, std::span<const meter::AlignedSample> samples,
                   std::int64_t from_ns, std::int64_t to_ns) {
  if (samples.size() < 2 * kTenths) return;
  std::vector<double> tenths;
  for (int i = 0; i < kTenths; ++i) {
    double sum = 0, n = 0;
    for (const auto& s : samples) {
      const auto tenth = (s.t_mono_ns - from_ns) * kTenths / (to_ns - from_ns);
      if (tenth == i) sum += static_cast<double>(s.raw_mw) * 1e-3, n += 1;
    }
    if (n == 0) return; // a gap: no mean is better than one of what was left
    tenths.push_back(sum / n);
  }
  const auto mean = measure::mean_of(tenths);
  idle.power = Watts(mean);
  idle.standard_error = Watts(measure::sd_of(tenths, mean) / std::sqrt(double{kTenths}));
  for (auto from = samples.begin(), s = from; s != samples.end(); ++s) {
    if (s->raw_mw != from->raw_mw) from = s;
    idle.longest_repeat =
        std::max(idle.longest_repeat, to_seconds(Nanos(s->t_mono_ns - from->t_mono_ns)));
  }
}

Result<IdleWindow> read_idle(Machine& machine, Seconds length) {
  auto& clock = machine.clock();
  meter::PowerSampler sampler(machine.meter(), clock);
  sampler.start();
  clock.sleep_for(to_nanos(kSettle));
  IdleWindow idle;
  HEBE_TRY(idle.begin, machine.meter().read_boundary());
  const auto from = ns(clock.now());
  clock.sleep_for(to_nanos(length));
  const auto to = ns(clock.now());
  HEBE_TRY(idle.end, machine.meter().read_boundary());
  idle.duration = to_seconds(Nanos(to - from));
  clock.sleep_for(to_nanos(kSamplesArrive));
  sampler.stop();
  if (auto failure = sampler.failure()) return std::unexpected(*failure);
  describe_idle(idle, sampler.between(from, to), from, to);
  return idle;
}

// A job's own checks are of kernels that Hebe compiled: of a callable it knows nothing.
void never_qualified(measure::Analysis& analysis) {
  const measure::Condition condition{
      "what ran is frozen and checked", false,
      "a callable: Hebe neither compiled it nor looked at its outputs, so this is a measurement "
      "and no record"};
  analysis.conditions.push_back(condition);
  analysis.qualified = false;
  analysis.json["qualified"] = false;
  analysis.json["conditions"].push_back(
      {{"name", condition.name}, {"holds", false}, {"evidence", condition.evidence}});
}

Result<CallableOutcome> measure_on(Machine& machine, const CallableRequest& request,
                                   measure::KnownResponse response,
                                   const std::function<Status()>& may_continue,
                                   const JobCallbacks& callbacks) {
  CallableOutcome out;
  HEBE_TRY(out.plan, plan_of(request, machine.simulated()));
  HEBE_CHECK(may_continue());
  HEBE_CHECK(fit_to_open(machine, request));
  HEBE_TRY(auto* device, machine.device());
  measure::Supervision supervision{may_continue, callbacks.progress, {}, std::move(response)};
  HEBE_TRY(supervision.own_pids, our_processes(machine));
  HEBE_TRY(auto arms, measure::prepare_external_arms(*device, request.arms, request.same));
  if (request.idle > Seconds(0)) {
    HEBE_TRY(out.idle, read_idle(machine, request.idle));
  }
  HEBE_TRY(auto raw,
           measure::run_experiment(out.plan, *device, arms, machine.meter(), supervision));
  out.acquisition = acquisition_of(raw, machine.meter(), machine.clock().is_virtual());
  out.acquisition.check = {{"unavailable", "a callable's outputs are its caller's to check"}};
  out.acquisition.occupancy = {{"unavailable", "a callable is not looked into"}};
  for (std::size_t a = 0; a < 2; ++a)
    out.launches_per_window[a] = raw.replays_per_window[a] * raw.launches_per_replay[a];
  out.windows = std::move(raw.windows);
  HEBE_CHECK(judge_windows(out.windows, raw.sampler.samples, out.plan, out.acquisition));
  HEBE_TRY(const auto plan_id, content_id(to_json(out.plan)));
  HEBE_TRY(out.analysis, analyse(out.plan, plan_id, out.acquisition, out.windows));
  never_qualified(out.analysis);
  out.device = machine.info();
  return out;
}

} // namespace

Result<std::unique_ptr<Machine>> open_as_asked(const MachineRequest& request) {
  HEBE_TRY(auto machine, Machine::open(request));
  if (!machine->why().empty())
    return refuse(RefusalCode::no_device, "there is no GPU here: " + machine->why(),
                  "measure where there is one; device=\"sim\" is the simulated GPU, for tests",
                  "device");
  return machine;
}

Result<std::string> samples_status(const evidence::DataRoot& root, const Machine& machine) {
  if (machine.simulated()) return std::string("usable");
  measure::Tier strict;
  strict.is_evidence = true; // a callable's energy is not taken from a meter that nobody looked at
  HEBE_CHECK(qualified_meter(root, machine, strict));
  HEBE_TRY(const auto boot, machine.boot());
  const auto& board = machine.meter().board();
  HEBE_TRY(const auto stored,
           evidence::current_qualification(root, evidence::QualificationKind::meter, board.uuid,
                                           board.driver, boot));
  const auto source = machine.meter().samples_source().name;
  for (const auto& s : stored.json.at("findings").at("sources"))
    if (s.at("name") == source) return s.at("verdict").get<std::string>();
  return refuse(RefusalCode::meter_not_qualified,
                fmt::format("the board's qualification does not know {}", source),
                "qualify it with `hebe probe-meter`", stored.file.string());
}

Status check_callables(const CallableRequest& request) {
  HEBE_CHECK(plan_of(request, true));
  const auto& m = request.machine;
  if (m.selector == "sim" || m.selector.starts_with("sim:")) {
    HEBE_TRY(const auto board, Machine::open(m)); // opens nothing real
    return {};
  }
  if (m.faults.empty()) return {};
  return refuse(RefusalCode::bad_argument, "faults can be injected into the simulated GPU only",
                "use --device sim", "--sim-fault");
}

Result<CallableOutcome> measure_callables(const evidence::DataRoot& root,
                                          const CallableRequest& request,
                                          const JobCallbacks& callbacks) {
  HEBE_CHECK(check_callables(request)); // a usage error must not cost a lease
  auto asked = request.machine;
  asked.seed = request.seed.value_or(0);
  HEBE_TRY(const auto machine, open_as_asked(asked));
  HEBE_TRY(auto status, samples_status(root, *machine));
  HEBE_TRY(auto response, known_response(root, *machine, request.tier, request.window));
  std::optional<BoardLease> lease; // nobody else can want a simulated board of our own
  if (!machine->simulated()) {
    HEBE_TRY(lease, BoardLease::acquire(root, *machine, "callables"));
  }
  const auto may_continue = [&]() -> Status {
    if (callbacks.interrupted && callbacks.interrupted())
      return refuse(RefusalCode::interrupted, "interrupted; nothing was recorded",
                    "run again to measure");
    return lease ? lease->still_held(*machine) : Status{};
  };
  HEBE_TRY(auto out, measure_on(*machine, request, std::move(response), may_continue, callbacks));
  out.meter_status = std::move(status);
  return out;
}

} // namespace hebe::campaign
