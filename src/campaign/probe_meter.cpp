#include "campaign/probe_meter.hpp"

#include "measure/external_findings.hpp"
#include "meter/external_csv.hpp"

namespace hebe::campaign {

Result<Json> meter_findings(const measure::Recording& recording) {
  // The external log is no source of the board's: it is held against them, and votes on nothing.
  auto own = recording;
  std::erase_if(own.sources,
                [](auto& s) { return s.description.identity.name == measure::kExternalSource; });
  auto findings = measure::to_json(measure::qualify(own));
  findings["external"] = measure::external_findings(recording);
  return findings;
}

Result<ProbePreview> preview_probe(const ProbeRequest& request) {
  HEBE_TRY(const auto machine, Machine::open(request.machine));
  HEBE_CHECK(board_is_free(*machine));
  ProbePreview p{machine->info().name, machine->info().uuid, {}, Seconds(0)};
  p.sources.push_back(machine->meter().samples_source().name);
  for (const auto& s : all_sources(*machine, request.file_sources)) p.sources.push_back(s.name);
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
  if (request.external) {
    HEBE_TRY(const auto log, meter::read_external_csv(*request.external));
    parts.recording.sources.push_back(measure::external_record(log.time_s, log.power_w));
  }
  HEBE_TRY(parts.findings, meter_findings(parts.recording));
  HEBE_TRY(probe.stored,
           evidence::store_qualification(root, evidence::QualificationKind::meter, parts));
  return probe;
}

} // namespace hebe::campaign
