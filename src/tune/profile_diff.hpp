// What changed from one profile to another. In: two profiles; out: the keys that only one has, and
// of the others what differs by name. Invariant: no difference, no entry; a ratio of costs only
// where it is defined (both of one provenance).
#pragma once

#include "tune/profile.hpp"

namespace hebe::tune {

struct RowDifference {
  RowKey key;
  std::string kind;                    ///< added, removed, changed
  std::vector<std::string> members;    ///< of a changed one: what differs, "energy_nj: 12 -> 11"
  std::optional<double> energy_ratio;  ///< after / before
  std::optional<bool> intervals_apart; ///< whether the two energies' intervals do not meet
};

[[nodiscard]] std::vector<RowDifference> diff_profiles(const Profile& before, const Profile& after);
[[nodiscard]] Json json_of(const std::vector<RowDifference>& differences);

} // namespace hebe::tune
