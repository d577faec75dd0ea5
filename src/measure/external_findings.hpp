// An external meter's log beside the board's own recording. In: its rows, stored as one more source
// on its own clock; out: gain, offset and residual of the buffer against it, or why they cannot be
// told. Invariant: pure; nothing of it changes a verdict.
#pragma once

#include "measure/source_recording.hpp"

namespace hebe::measure {

/// The pseudo-source of an external log: times are of its own clock, power in microwatts.
inline constexpr const char* kExternalSource = "external";
[[nodiscard]] SourceRecord external_record(std::span<const double> time_s,
                                           std::span<const double> power_w);

/// Null where nothing external was recorded.
[[nodiscard]] Json external_findings(const Recording& recording);

} // namespace hebe::measure
