// Several profiles as one. In: profiles with the names of their files; out: one profile, and every
// key that more than one of them had a say about. Invariant: the order of the profiles changes
// nothing; a measured row is never replaced by an estimated or simulated one.
#pragma once

#include "tune/profile.hpp"

#include <span>

namespace hebe::tune {

struct NamedProfile {
  std::string name; ///< its file
  Profile profile;
};

/// Two different rows of one key.
struct MergeConflict {
  RowKey key;
  std::string kept_from, dropped_from;
  std::string reason;
  ProfileRow dropped;
};

struct MergedProfile {
  Profile profile;
  std::vector<MergeConflict> conflicts; ///< in the order of their keys
};

/// Of two rows of one key the measured one is kept before the estimated, that before the simulated;
/// of equals the one that rests on qualified pairs, then the newer. bad_argument: nothing to merge.
[[nodiscard]] Result<MergedProfile> merge_profiles(std::span<const NamedProfile> profiles);
[[nodiscard]] Json json_of(const MergedProfile& merged);

} // namespace hebe::tune
