// The log of an external power meter. In: a CSV file whose header names a time and a power column
// with their units; out: times and watts on the meter's own clock, strictly ascending. Invariant:
// nothing is guessed, sorted, filled or dropped; whatever is not as it must be is refused with its
// line.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::meter {

struct ExternalCsvLimits {
  double max_gap_s = 1.0;    ///< a longer pause is a hole in the log
  std::size_t min_rows = 20; ///< fewer cannot show a signature
  std::uintmax_t max_bytes = std::uintmax_t{1} << 30;
};

struct ExternalTrace {
  std::vector<double> time_s;            ///< since the first row
  std::vector<double> power_w;           ///< as long as time_s
  std::string time_column, power_column; ///< as the header names them
  double first_s = 0; ///< the first row's time: as written, or since 1970 for ISO 8601
  /// Of the first row, where times are ISO 8601 with a zone; a plain number says nothing about the
  /// wall clock.
  std::optional<std::int64_t> first_wall_us;
};

[[nodiscard]] Result<ExternalTrace> read_external_csv(const std::filesystem::path& path,
                                                      const ExternalCsvLimits& limits = {});
/// The same from text; `where` names it in refusals.
[[nodiscard]] Result<ExternalTrace> external_trace_from(std::string_view text,
                                                        const std::string& where,
                                                        const ExternalCsvLimits& limits = {});

} // namespace hebe::meter
