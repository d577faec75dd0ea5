#include "campaign/probe_response.hpp"

#include "core/files.hpp"
#include "measure/response_plot.hpp"

#include <fmt/format.h>

namespace hebe::campaign {

Result<Json> response_findings(const measure::Recording& recording, const Json& stored) {
  return measure::to_json(measure::respond(recording, measure::aliasing_rule_of(stored)));
}

Result<ResponseProbe> probe_response(const evidence::DataRoot& root, const ProbeRequest& request,
                                     const measure::ResponseSchedule& schedule,
                                     const JobCallbacks& callbacks) {
  HEBE_TRY(const auto session, ProbeSession::open(root, request, callbacks, "probe-response"));
  auto& machine = session->machine();
  HEBE_TRY(const auto recording,
           measure::record_response(machine.meter(), machine.meter().sources(), machine.clock(),
                                    schedule,
                                    {[&] { return session->may_continue(); }, callbacks.progress,
                                     [&] { return session->load_kernel(); }}));
  HEBE_CHECK(session->still_right());
  ResponseProbe probe;
  probe.found = measure::respond(recording);
  HEBE_TRY(auto parts, session->parts());
  parts.recording = recording;
  parts.findings = measure::to_json(probe.found);
  HEBE_TRY(probe.stored,
           evidence::store_qualification(root, evidence::QualificationKind::response, parts));
  // The picture follows from the record: it may be made again, so it is written last.
  probe.plot = probe.stored.file;
  probe.plot.replace_extension(".svg");
  const auto title = fmt::format("Response of {}, driver {} ({})", parts.subject.name,
                                 parts.subject.driver, parts.provenance);
  HEBE_CHECK(write_file_whole(probe.plot, measure::response_svg(probe.found, title)));
  return probe;
}

} // namespace hebe::campaign
