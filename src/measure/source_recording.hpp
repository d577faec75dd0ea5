// What was read from every source while the board was idle and loaded. In: readings with the host
// time around each call, in labelled phases; out: the material that qualification is a pure
// function of. Invariant: raw integers and statuses only; a failed reading keeps its status and has
// no value.
#pragma once

#include "core/json.hpp"
#include "meter/source.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hebe::measure {

enum class Level { idle_without_context, idle, half, full, mixed };
[[nodiscard]] std::string_view name_of(Level level);

/// A stretch of one level of load. `polled` names what was read in it beside the buffer:
/// everything, one source alone (what does reading it cost the board?), or nothing.
struct Phase {
  std::string name;
  Level level = Level::mixed;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string polled; ///< "all", "nothing", or the one source's name
};

/// One reading; of the buffer one sample, with the drain that brought it.
struct Reading {
  std::int64_t before_ns = 0, after_ns = 0; ///< host monotonic time around the call
  std::optional<std::int64_t> raw;          ///< none: `status` says why
  std::optional<std::int64_t> source_us;    ///< its own time stamp
  std::optional<std::int64_t>
      host_wall_us;   ///< the host's wall clock after the call, where it counts
  std::string status; ///< empty, or a refusal's code
  bool operator==(const Reading&) const = default;
};

struct SourceRecord {
  meter::SourceDescription description;
  bool is_buffer = false;
  std::vector<Reading> readings; ///< in time order
  std::string first_failure;     ///< the words of the first refusal
};

struct Recording {
  std::vector<Phase> phases; ///< in time order
  std::vector<SourceRecord> sources;
  std::optional<double> power_limit_w;
  std::string preferred_counter; ///< the source that runs read at the edges of their windows
};

/// Everything but the readings.
[[nodiscard]] Json to_json(const Recording& recording);
/// Back, with no readings. Its schema has been checked.
[[nodiscard]] Result<Recording> recording_from(const Json& json);

/// A reading of a source, or its refusal, as a row.
[[nodiscard]] Reading reading_of(const Result<meter::SourceReading>& reading, Instant before,
                                 Instant after);

} // namespace hebe::measure
