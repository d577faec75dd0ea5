// hebe probe-response: from a request to a stored response of the board's meter, with its picture.
// In: a case, a machine; out: the record and an SVG beside it. Invariant: as probe-meter's.
#pragma once

#include "campaign/probe_session.hpp"
#include "measure/response_probe.hpp"

namespace hebe::campaign {

struct ResponseProbe {
  evidence::StoredQualification stored;
  measure::Response found;
  std::filesystem::path plot;
};

[[nodiscard]] Result<ResponseProbe> probe_response(const evidence::DataRoot& root,
                                                   const ProbeRequest& request,
                                                   const measure::ResponseSchedule& schedule,
                                                   const JobCallbacks& callbacks);

/// The findings of a recording, by the rules of those that were stored of it.
[[nodiscard]] Result<Json> response_findings(const measure::Recording& recording,
                                             const Json& stored);

} // namespace hebe::campaign
