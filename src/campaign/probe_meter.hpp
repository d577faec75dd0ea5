// hebe probe-meter: from a request to a stored qualification of the board's meter. In: a case, a
// machine; out: findings and verdicts, stored with their readings. Invariant: a board that cannot
// be probed is refused and leaves nothing; a meter that is not fit is a stored finding.
#pragma once

#include "campaign/probe_session.hpp"
#include "measure/source_qualification.hpp"

namespace hebe::campaign {

struct MeterProbe {
  evidence::StoredQualification stored;
  measure::Qualification found;
  measure::Recording recording;
};

[[nodiscard]] Result<MeterProbe> probe_meter(const evidence::DataRoot& root,
                                             const ProbeRequest& request,
                                             const JobCallbacks& callbacks);

/// What would be read, and for how long; nothing is run or written.
struct ProbePreview {
  std::string board, uuid;
  std::vector<std::string> sources;
  Seconds duration{0};
};
[[nodiscard]] Result<ProbePreview> preview_probe(const ProbeRequest& request);

/// The findings of a recording, as stored.
[[nodiscard]] Result<Json> meter_findings(const measure::Recording& recording);

} // namespace hebe::campaign
