#include "campaign/probe_session.hpp"

#include "meter/file_sources.hpp"

#include <fmt/format.h>

namespace hebe::campaign {

Result<std::unique_ptr<ProbeSession>> ProbeSession::open(const evidence::DataRoot& root,
                                                         const ProbeRequest& request,
                                                         const JobCallbacks& callbacks,
                                                         const std::string& what) {
  HEBE_TRY(auto machine, Machine::open(request.machine));
  if (!machine->why().empty() && callbacks.notice)
    callbacks.notice("no GPU here (" + machine->why() +
                     "): probing the simulated GPU; its values are simulated, never measured");
  HEBE_CHECK(root.initialise());
  HEBE_TRY(auto lease, BoardLease::acquire(root, *machine, what));
  HEBE_CHECK(board_is_free(*machine));
  HEBE_TRY(auto scratch, ScratchFolder::make(request.scratch));
  auto session = std::unique_ptr<ProbeSession>(
      new ProbeSession(request, callbacks, std::move(lease), std::move(scratch)));
  session->machine_ = std::move(machine);
  auto& m = *session->machine_;
  CasePreparer preparer(
      {request.worker, root.path(), root.cache(), session->scratch_.path(), m.memory()});
  auto subject = request.subject;
  subject.arch = m.info().arch;
  HEBE_TRY(session->prepared_, preparer.prepare(subject));
  preparer.stop_worker();
  HEBE_CHECK(board_is_free(m)); // compiling took a while
  return session;
}

std::vector<meter::Discovered> all_sources(Machine& machine, const std::filesystem::path& root) {
  auto out = machine.meter().sources();
  if (machine.simulated()) return out; // this machine's kernel knows nothing of a simulated board
  for (auto& s : meter::discover_file_sources(root)) out.push_back(std::move(s));
  return out;
}

std::vector<meter::Discovered> ProbeSession::sources() const {
  return all_sources(*machine_, request_.file_sources);
}

Result<std::pair<gpu::Device*, gpu::Kernel*>> ProbeSession::load_kernel() {
  HEBE_CHECK(board_is_free(*machine_));
  HEBE_TRY(auto* device, machine_->device());
  HEBE_TRY(own_, our_processes(*machine_));
  HEBE_TRY(workload_, qualify::Workload::make(*device, {&prepared_.compiled, &prepared_.compiled},
                                              {&prepared_.expected, &prepared_.expected}));
  HEBE_CHECK(workload_->check());
  return std::pair<gpu::Device*, gpu::Kernel*>{device, workload_->kernels()[0]};
}

Status ProbeSession::may_continue() {
  if (callbacks_.interrupted && callbacks_.interrupted())
    return refuse(RefusalCode::interrupted, "interrupted; nothing was recorded",
                  "run again to probe");
  HEBE_CHECK(lease_.still_held(*machine_));
  if (!own_) return board_is_free(*machine_);
  HEBE_TRY(const auto processes, machine_->meter().processes());
  for (const auto& p : processes)
    if (!own_->contains(p.pid))
      return refuse(RefusalCode::gpu_busy,
                    fmt::format("process {} ({}) began to use the GPU during the probe", p.pid,
                                p.name.empty() ? "name unknown" : p.name),
                    "end it, or wait for it, and probe again", machine_->meter().board().uuid);
  return {};
}

Status ProbeSession::still_right() {
  HEBE_CHECK(may_continue());
  return workload_ ? workload_->still_right() : Status{};
}

Result<evidence::QualificationSubject> qualification_subject(const Machine& machine) {
  const auto& b = machine.meter().board();
  HEBE_TRY(auto boot, machine.boot());
  return evidence::QualificationSubject{b.vendor,     b.name,   b.uuid,
                                        b.pci_bus_id, b.driver, std::move(boot)};
}

Result<evidence::QualificationSubject> ProbeSession::subject() const {
  return qualification_subject(*machine_);
}

Result<evidence::QualificationParts> ProbeSession::parts() const {
  evidence::QualificationParts p;
  HEBE_TRY(p.subject, subject());
  p.provenance = std::string(hebe::name_of(machine_->meter().board().provenance));
  if (!machine_->simulated()) p.when = utc_text(machine_->clock().wall_us());
  Json faults = Json::array();
  for (const auto& f : request_.machine.faults) faults.push_back(gpu::to_string(f));
  p.load = {{"case", prepared_.compiled.launch.name}, {"simulated_faults", faults}};
  return p;
}

} // namespace hebe::campaign
