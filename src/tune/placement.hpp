// What one reference operation costs on each member of a machine: its CPU, its GPU by each backend.
// In: measured rows, or a file (hebe.placement/1); out: the file, or the rows that still hold here.
// Invariant: no row without idle power, cost, time and a believed meter; nothing of a file is used
// before it is held against the present machine.
#pragma once

#include "tune/candidate_cost.hpp"
#include "tune/profile_expiry.hpp"

namespace hebe::tune {

struct PlacementRow {
  std::string member; ///< "cpu", or a backend of the GPU
  std::vector<NamedSize> sizes;
  std::optional<std::string> version; ///< of a library
  Watts idle_power, idle_error;       ///< the state is the row's
  /// Key (its shape is the sizes), implementation, cost, meter, platform, date: as in a profile,
  /// with no study behind it.
  ProfileRow row;
};

struct Placement {
  std::vector<PlacementRow> rows;
};

/// What a member's measured cost is as a row; its interval is the cost's.
[[nodiscard]] PlacementRow placement_row(std::string member, const IdlePower& idle,
                                         const CandidateCost& cost);
/// bad_schema with what is wrong; `file` is the one that is not written.
[[nodiscard]] Status check_placement(const Placement& placement, const std::string& file);

[[nodiscard]] Json json_of(const Placement& placement);
[[nodiscard]] Result<Placement> read_placement(const std::filesystem::path& file);
/// Whole, or not at all.
[[nodiscard]] Status write_placement(const std::filesystem::path& file, const Placement& placement);

struct PlacementNow {
  Present gpu;                    ///< board, driver, …: of rows of the GPU; OS and Hebe of all
  std::optional<std::string> cpu; ///< the processor's name: the board of the CPU's row
};
struct HeldRow {
  PlacementRow row; ///< downgraded where it was
  bool rejected = false;
  std::vector<std::string> reasons; ///< none: it holds as it is
};
/// Every row, held against the machine of now.
[[nodiscard]] Result<std::vector<HeldRow>> hold_placement(const Placement& placement,
                                                          const PlacementNow& now);

} // namespace hebe::tune
