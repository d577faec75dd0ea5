#include "campaign/probe_meter.hpp"

namespace hebe::campaign {

Result<Json> meter_findings(const measure::Recording& recording) {
  return measure::to_json(measure::qualify(recording));
}

Result<ProbePreview> preview_probe(const ProbeRequest& request) {
  HEBE_TRY(const auto machine, Machine::open(request.machine));
  HEBE_CHECK(board_is_free(*machine));
  ProbePreview p{machine->info().name, machine->info().uuid, {}, Seconds(0)};
  p.sources.push_back(machine->meter().samples_source().name);
  for (const auto& s : machine->meter().sources()) p.sources.push_back(s.name);
  p.duration = request.schedule.total(p.sources.size() - 1);
  return p;
}

Result<MeterProbe> probe_meter(const evidence::DataRoot& root, const ProbeRequest& request,
                               const JobCallbacks& callbacks) {
  HEBE_TRY(const auto session, ProbeSession::open(root, request, callbacks, "probe-meter"));
  auto& machine = session->machine();
  MeterProbe probe;
  HEBE_TRY(probe.recording,
           measure::record_sources(machine.meter(), session->sources(), machine.clock(),
                                   request.schedule,
                                   {[&] { return session->may_continue(); }, callbacks.progress,
                                    [&] { return session->load_kernel(); }}));
  HEBE_CHECK(session->still_right());
  probe.found = measure::qualify(probe.recording);
  HEBE_TRY(auto parts, session->parts());
  parts.recording = probe.recording;
  parts.findings = measure::to_json(probe.found);
  HEBE_TRY(probe.stored,
           evidence::store_qualification(root, evidence::QualificationKind::meter, parts));
  return probe;
}

} // namespace hebe::campaign
