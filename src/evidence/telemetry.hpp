// Telemetry as Parquet (zstd, typed columns, units in names and metadata), readable with no Hebe
// installed. In: samples and windows; out: bytes of one file, and back. Invariant: raw integers as
// the device gave them, beside the converted values; missing is null.
#pragma once

#include "measure/acquisition.hpp"

#include <string>

namespace hebe::evidence {

/// Rows of the primary source first, then of the counter (two a window, at its edges).
[[nodiscard]] Result<std::string> telemetry_parquet(std::span<const meter::AlignedSample> samples,
                                                    std::span<const measure::Window> windows,
                                                    const measure::Acquisition& acquisition);

/// The primary source's samples, in time order. bad_schema names the missing column.
[[nodiscard]] Result<std::vector<meter::AlignedSample>>
samples_from_parquet(std::string_view bytes, const std::string& source, std::string_view where);

/// Every row and column against what samples and windows give: analysis_mismatch otherwise.
[[nodiscard]] Status telemetry_agrees(std::string_view bytes,
                                      std::span<const meter::AlignedSample> samples,
                                      std::span<const measure::Window> windows,
                                      const measure::Acquisition& acquisition,
                                      std::string_view where);

} // namespace hebe::evidence
