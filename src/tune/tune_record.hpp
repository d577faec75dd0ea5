// The record of a tune (hebe.tune/1): every candidate with what became of it, what it cost and how
// long that took. In: what was searched and confirmed; out: JSON, and the profile's row of a shape.
// Invariant: a shape that was voided has reasons and no costs; what was not measured is null.
#pragma once

#include "tune/tune.hpp"

namespace hebe::tune {

/// Columns of a search's readings in the record, a row a window or stretch of idleness; units are
/// in the names, null where the counter or clock could not be read.
inline constexpr const char* kWindowColumns[] = {
    "candidate", "power_w", "power_error_w", "latency_s", "latency_error_s", "duration_s",
    "launches",  "spent_s", "attempts",      "begin_mj",  "end_mj",          "counted_s"};
inline constexpr const char* kIdleColumns[] = {
    "power_w", "power_error_w", "duration_s", "sm_clock_mhz", "begin_mj", "end_mj", "counted_s"};

/// What all rows and the record have in common.
struct TunePlace {
  Platform platform; ///< without Triton's version, which is the implementation's own
  std::string board, date;
  Provenance provenance = Provenance::simulated;
  std::uint64_t seed = 0;
};

[[nodiscard]] Result<ProfileRow> row_of(const TunedShape& shape, const TuneSpec& spec,
                                        const TunePlace& place, const std::string& record_id,
                                        const std::string& not_written);
/// One shape's part of the record; without `confirmed` its "finalists" is null.
[[nodiscard]] Result<Json> shape_record(const TunedShape& shape, const TuneSpec& spec);
[[nodiscard]] Result<Json> record_of(const std::vector<TunedShape>& shapes, const TuneSpec& spec,
                                     const TunePlace& place);

} // namespace hebe::tune
