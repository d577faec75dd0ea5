// One shape's search on one board. In: its candidates made ready, an open machine, its lease; out:
// what each costs, the idle power that was taken from it, which is best. Invariant: one candidate
// that ran and was not measured is a refusal of the whole shape; nothing is written here.
#pragma once

#include "campaign/measurement.hpp"
#include "tune/prepared_shape.hpp"
#include "tune/search.hpp"

namespace hebe::tune {

struct SearchedShape {
  SearchOutcome outcome;              ///< of those that are ready
  std::vector<std::size_t> candidate; ///< contender to its place in the shape's candidates
  IdlePower idle;                     ///< by all of `idles`
  MeterIdentity meter;
  std::vector<HostContender> hosts; ///< host code, by the host's meter; none of the contenders
  std::vector<measure::IdleStretch> idles; ///< before the first window, and after the last
  std::optional<std::int64_t> loaded_clock_mhz;
};

/// Where a search's readings come from: a board, or the record of one.
struct ReadingSource {
  std::function<Result<measure::IdleStretch>()> idle; ///< asked before the search, and after it
  MeasureWindow window;
  std::optional<std::int64_t> loaded_clock_mhz;
};

/// The search itself, a pure function of its readings; `candidate` is left to the caller.
/// The first contender is the baseline.
[[nodiscard]] Result<SearchedShape> search_readings(const ReadingSource& source,
                                                    std::size_t contenders, const TuneSpec& spec,
                                                    const MeterIdentity& meter, std::uint64_t seed,
                                                    const std::string& not_written);

struct SearchPlace {
  const evidence::DataRoot& root;
  campaign::Machine& machine;
  const campaign::BoardLease& lease;
  const campaign::JobCallbacks& callbacks;
  HostMetering host = rapl_metering();
  /// This process as the meter lists it, where it had the board before (campaign::our_processes).
  std::set<std::int64_t> own_processes{};
};

/// The meter that the board's windows are read with, and what its qualification says of it;
/// meter_not_qualified where a real board has none.
[[nodiscard]] Result<MeterIdentity> search_meter(const evidence::DataRoot& root,
                                                 const campaign::Machine& machine);

/// Marks candidates that are wrong or cannot run. `not_written` is named in refusals.
[[nodiscard]] Result<SearchedShape> search_shape(PreparedShape& shape, const TuneSpec& spec,
                                                 const SearchPlace& place, std::uint64_t seed,
                                                 const std::string& not_written);

} // namespace hebe::tune
