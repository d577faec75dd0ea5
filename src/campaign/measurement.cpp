#include "campaign/measurement.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hebe::campaign {
namespace {

Json environment_of(const Machine& machine, const BoardLease& lease, const Circumstances& c) {
  std::vector<Fact> facts = evidence::build_facts();
  Json argv = Json::array();
  for (const auto& a : c.argv) argv.push_back(a);
  facts.push_back(c.no_argv.empty()
                      ? known("run.argv", argv, "command line; the data root's place is left out")
                      : unknown("run.argv", "command line", c.no_argv));
  facts.push_back(machine.simulated()
                      ? unknown("run.started", "clock", "the simulated GPU runs in virtual time")
                      : known("run.started", utc_text(machine.clock().wall_us()), "wall clock"));
  facts.push_back(machine.simulated()
                      ? unknown("run.lease", "lease", "a simulated run is the same whoever made it")
                      : known("run.lease", lease.identity(), "lease of the board"));
  for (auto&& more :
       {evidence::host_facts(machine.simulated(), c.variables),
        evidence::toolchain_facts(c.toolchain, c.no_toolchain),
        evidence::device_facts(machine.info()), evidence::meter_facts(machine.meter())})
    facts.insert(facts.end(), more.begin(), more.end());
  if (c.meter_qualification) facts.push_back(*c.meter_qualification);
  if (c.redact) evidence::redact(facts);
  return evidence::environment_json(facts);
}

} // namespace

namespace {
constexpr const char* kQualification = "meter.qualification";
constexpr const char* kQualifications = "qualifications/meter";
} // namespace

Result<Fact> qualification_fact(Result<evidence::StoredQualification> stored,
                                const measure::Tier& tier) {
  if (stored) return known(kQualification, stored->id, kQualifications);
  if (!tier.is_evidence) return unknown(kQualification, kQualifications, stored.error().what);
  stored.error().next = "qualify it with `hebe probe-meter` (about a minute), then measure; a "
                        "smoke-v1 job checks the plumbing without";
  return std::unexpected(std::move(stored).error());
}

Result<Fact> qualified_meter(const evidence::DataRoot& root, const Machine& machine,
                             const measure::Tier& tier) {
  if (machine.simulated())
    return unknown(kQualification, kQualifications,
                   "simulated: its meters are a model, and need no qualification");
  HEBE_TRY(const auto boot, machine.boot());
  const auto& board = machine.meter().board();
  return qualification_fact(evidence::current_qualification(root,
                                                            evidence::QualificationKind::meter,
                                                            board.uuid, board.driver, boot),
                            tier);
}

Result<measure::KnownResponse> known_response(const evidence::DataRoot& root,
                                              const Machine& machine, const measure::Tier& tier,
                                              Seconds window) {
  HEBE_TRY(const auto boot, machine.boot());
  const auto& board = machine.meter().board();
  const auto stored = evidence::current_qualification(root, evidence::QualificationKind::response,
                                                      board.uuid, board.driver, boot);
  if (!stored) return measure::KnownResponse{std::nullopt, stored.error().what};
  const auto& found = stored->json.at("findings");
  const auto source = machine.meter().samples_source().name;
  if (found.at("primary") != source)
    return measure::KnownResponse{
        std::nullopt, fmt::format("response record {} is of {}, runs are measured with {}",
                                  stored->id, found.at("primary").get<std::string>(), source)};
  const measure::MeterResponse r{stored->id, source, Seconds(found.at("lag_s")),
                                 Seconds(found.at("pre_roll_s")),
                                 Seconds(found.at("minimum_window_s"))};
  if (tier.is_evidence && window < r.minimum_window)
    return refuse(
        RefusalCode::below_tier_minimum,
        fmt::format("on this board {} needs at least {:.2f} s per window (response record "
                    "{}), {} was asked for",
                    tier.name, r.minimum_window.value(), r.id, window.value()),
        fmt::format("raise --batch-seconds to {:.2f} or more",
                    std::ceil(r.minimum_window.value() * 100) / 100),
        "--batch-seconds");
  return measure::KnownResponse{r, {}};
}

Status board_is_free(Machine& machine, const std::set<std::int64_t>& own) {
  auto& meter = machine.meter();
  HEBE_TRY(const bool mig, meter.mig_enabled());
  if (mig)
    return refuse(RefusalCode::mig_enabled,
                  "MIG is on: the board's power is that of all its slices together",
                  "measure on a board whose administrator has MIG off", meter.board().uuid);
  HEBE_TRY(auto processes, meter.processes());
  std::erase_if(processes, [&](const auto& p) { return own.contains(p.pid); });
  if (processes.empty()) return {};
  std::string who;
  for (const auto& p : processes)
    who += fmt::format("{}{} ({})", who.empty() ? "" : ", ", p.pid,
                       p.name.empty() ? "name unknown" : p.name);
  return refuse(RefusalCode::gpu_busy, "other processes use the GPU: " + who,
                "end them, or choose another --device", meter.board().uuid);
}

Result<std::set<std::int64_t>> our_processes(Machine& machine) {
  HEBE_TRY(const auto processes, machine.meter().processes());
  if (processes.size() > 1)
    return refuse(RefusalCode::gpu_busy,
                  fmt::format("{} processes use the GPU just after it was free", processes.size()),
                  "end them, or choose another --device", machine.meter().board().uuid);
  std::set<std::int64_t> own;
  for (const auto& p : processes) own.insert(p.pid);
  return own;
}

Result<evidence::RunParts> measure_job(const measure::Plan& plan, const std::string& plan_id,
                                       const PreparedArms& prepared, Machine& machine,
                                       const BoardLease& lease, const Circumstances& circumstances,
                                       const JobCallbacks& callbacks) {
  const auto may_continue = [&]() -> Status {
    if (callbacks.interrupted && callbacks.interrupted())
      return refuse(RefusalCode::interrupted, "interrupted; nothing was recorded",
                    "run again to measure");
    if (callbacks.may_continue) HEBE_CHECK(callbacks.may_continue());
    return lease.still_held(machine);
  };
  evidence::RunParts parts;
  parts.environment = environment_of(machine, lease, circumstances);
  HEBE_CHECK(
      canonical_json(parts.environment)); // text that cannot be stored is refused before the run
  HEBE_CHECK(may_continue());
  // Again: preparing took a while.
  HEBE_CHECK(board_is_free(machine, circumstances.own_processes));
  HEBE_TRY(auto* device, machine.device());
  measure::Supervision supervision{may_continue, callbacks.progress, {}, circumstances.response};
  HEBE_TRY(supervision.own_pids, our_processes(machine));
  const auto &a = prepared.arm(0), &b = prepared.arm(1);
  HEBE_TRY(auto workload, qualify::Workload::make(*device, {&a.compiled, &b.compiled},
                                                  {&a.expected, &b.expected}));
  const bool equal_bits = plan.kind == "positive_control" ||
                          (!plan.qualification.is_null() && plan.qualification.at("equal_bits"));
  HEBE_TRY(auto check, workload.check(equal_bits));
  HEBE_TRY(auto arms, measure::prepare_arms(*device, workload.kernels(), !prepared.b));
  HEBE_TRY(auto raw, measure::run_experiment(plan, *device, arms, machine.meter(), supervision));

  HEBE_CHECK(workload.still_right());
  parts.acquisition = acquisition_of(raw, machine.meter(), machine.clock().is_virtual());
  parts.acquisition.check = std::move(check);
  parts.acquisition.occupancy = workload.occupancy();
  parts.plan = plan;
  parts.plan_id = plan_id;
  parts.windows = std::move(raw.windows);
  parts.samples = std::move(raw.sampler.samples);
  HEBE_CHECK(judge_windows(parts.windows, parts.samples, plan, parts.acquisition));
  HEBE_TRY(parts.analysis, analyse(plan, plan_id, parts.acquisition, parts.windows));
  HEBE_CHECK(may_continue());
  return parts;
}

} // namespace hebe::campaign
