// The readings of a recording as Parquet: what findings are computed from, kept beside them. In: a
// recording; out: bytes of one file, and back. Invariant: raw integers and statuses as they came;
// equal readings give equal bytes with one version of Arrow.
#pragma once

#include "measure/source_recording.hpp"

#include <string>

namespace hebe::evidence {

[[nodiscard]] Result<std::string> readings_parquet(const measure::Recording& recording);

/// Fills the readings of the sources that `recording` names. bad_schema: a column is missing, a row
/// is of no source, or a source has another number of readings than its description says.
[[nodiscard]] Status readings_from_parquet(std::string_view bytes, measure::Recording& recording,
                                           std::string_view where);

} // namespace hebe::evidence
