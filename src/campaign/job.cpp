#include "campaign/job.hpp"

#include "campaign/scratch_folder.hpp"

#include <fmt/format.h>

namespace hebe::campaign {
namespace {

Target target_of(const Machine& machine, const JobRequest& request) {
  return {machine.simulated(), machine.info().arch, request.machine.faults};
}

CasePreparer preparer_for(const evidence::DataRoot& root, const JobRequest& request,
                          const Machine& machine, const ScratchFolder& scratch) {
  return CasePreparer(
      {request.worker, root.path(), root.cache(), scratch.path(), machine.memory()});
}

} // namespace

Seconds estimated_duration(const measure::Plan& plan) {
  constexpr double kPreRollAndGaps = 0.4; // per window
  return Seconds(plan.warm_up.value() + 2 * (plan.window.value() + kPreRollAndGaps) * plan.pairs);
}

Result<JobPreview> preview_job(const evidence::DataRoot& root, const JobRequest& request,
                               const JobCallbacks&) {
  HEBE_TRY(auto plan, drafted(request));
  HEBE_TRY(const auto machine, Machine::open(request.machine));
  HEBE_CHECK(known_response(root, *machine, request.tier, request.window)); // is the window enough?
  HEBE_TRY(const auto scratch, ScratchFolder::make(request.scratch));
  auto preparer = preparer_for(root, request, *machine, scratch);
  HEBE_TRY(const auto prepared, preparer.prepare_arms(request, machine->info().arch));
  HEBE_TRY(auto id, freeze(plan, prepared, target_of(*machine, request), request.seed.has_value()));
  return JobPreview{to_json(plan), std::move(id), estimated_duration(plan)};
}

Result<LeasedMachine> lease_machine(const evidence::DataRoot& root, const JobRequest& request,
                                    const JobCallbacks& callbacks) {
  HEBE_TRY(auto machine, Machine::open(request.machine));
  return lease_machine(root, request, std::move(machine), callbacks);
}

Result<LeasedMachine> lease_machine(const evidence::DataRoot& root, const JobRequest& request,
                                    std::unique_ptr<Machine> machine,
                                    const JobCallbacks& callbacks) {
  const auto notice = [&](const std::string& text) {
    if (callbacks.notice) callbacks.notice(text);
  };
  if (!machine->why().empty())
    notice("no GPU here (" + machine->why() +
           "): running on the simulated GPU; its values are simulated, never measured");
  HEBE_CHECK(root.initialise());
  for (const auto& half : root.unsealed())
    notice("found a half-written run, left by a process that died; it is never read: " +
           half.string());
  for (const auto& captured : root.captured())
    notice("found a finished measurement that is not sealed yet (`hebe ingest` seals it): " +
           captured.string());
  HEBE_TRY(auto lease, BoardLease::acquire(root, *machine,
                                           fmt::format("run-{} {}", request.kind,
                                                       request.subject.file.stem().string())));
  HEBE_CHECK(board_is_free(*machine));
  HEBE_CHECK(qualified_meter(root, *machine, request.tier)); // before a compile costs time
  HEBE_TRY(const auto response, known_response(root, *machine, request.tier, request.window));
  if (!response.record && !machine->simulated())
    notice("the pre-roll follows the warm-up's step, for " + response.why_not +
           " (response; `hebe probe-response` measures it)");
  return LeasedMachine{std::move(machine), std::move(lease)};
}

Result<JobOutcome> run_leased(const evidence::DataRoot& root, const JobRequest& request,
                              Machine& machine, const BoardLease& lease,
                              const JobCallbacks& callbacks, const Predict& predict) {
  HEBE_TRY(auto plan, drafted(request));
  HEBE_TRY(const auto scratch, ScratchFolder::make(request.scratch));
  auto preparer = preparer_for(root, request, machine, scratch);
  HEBE_TRY(const auto prepared, request.arms ? request.arms(preparer)
                                             : preparer.prepare_arms(request, machine.info().arch));
  preparer.stop_worker();
  if (predict) {
    HEBE_TRY(plan.prediction, predict(prepared));
  }
  HEBE_TRY(const auto plan_id,
           freeze(plan, prepared, target_of(machine, request), request.seed.has_value()));
  HEBE_TRY(auto qualification, qualified_meter(root, machine, request.tier));
  HEBE_TRY(auto response, known_response(root, machine, request.tier, request.window));
  const Circumstances circumstances{request.argv,
                                    {},
                                    request.variables,
                                    preparer.hello(),
                                    {},
                                    request.redact,
                                    std::move(qualification),
                                    std::move(response),
                                    request.own_processes};
  HEBE_TRY(auto parts,
           measure_job(plan, plan_id, prepared, machine, lease, circumstances, callbacks));
  // The directory's name says when, also for a simulated run.
  HEBE_TRY(const auto captured, evidence::capture_run(root, parts, RealClock().wall_us()));
  auto sealed = request.sealer ? request.sealer(captured) : evidence::seal_captured(root, captured);
  if (!sealed) {
    auto refusal = std::move(sealed).error();
    refusal.next = "the measurement is finished and kept in " + captured.string() +
                   ": seal it with `hebe ingest`" +
                   (refusal.next.empty() ? "" : "; first, " + refusal.next);
    return std::unexpected(std::move(refusal));
  }
  return JobOutcome{std::move(*sealed), std::move(parts.analysis), std::move(parts.acquisition),
                    plan_id, machine.simulated()};
}

Result<JobOutcome> run_job(const evidence::DataRoot& root, const JobRequest& request,
                           const JobCallbacks& callbacks) {
  HEBE_CHECK(drafted(request)); // a usage error must not cost a compile
  HEBE_TRY(const auto leased, lease_machine(root, request, callbacks));
  return run_leased(root, request, *leased.machine, leased.lease, callbacks);
}

} // namespace hebe::campaign
