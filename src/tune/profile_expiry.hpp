// Which rows of a profile still hold here and now. In: a profile and what is known of the present
// machine; out: the profile that may be used, and every row that was downgraded or rejected, by
// name with its reasons. Invariant: no row gains by it; what is not known of the present is not
// checked and decides nothing.
#pragma once

#include "tune/profile.hpp"

namespace hebe::tune {

/// The machine that the profile is to be used on.
struct Present {
  std::optional<std::string> board, board_uuid, driver, os, hebe, triton;
  /// The board's meters with their present status; none: not known.
  std::optional<std::map<std::string, std::string>> meters;
  std::string date;                      ///< UTC, as in rows
  std::optional<std::int64_t> most_days; ///< how old a row may be
};

/// Why a row does not hold as it is; none: it does.
struct RowReasons {
  std::vector<std::string> reject, downgrade;
};
/// Of one row, whatever it rests on; bad_argument: `date`.
[[nodiscard]] Result<RowReasons> reasons_against(const ProfileRow& row, const Present& present);
/// Measured becomes estimated; every reason is kept once.
[[nodiscard]] ProfileRow downgraded(ProfileRow row, const std::vector<std::string>& reasons);

struct ExpiredRow {
  RowKey key;
  bool rejected = false; ///< else downgraded: measured became estimated
  std::vector<std::string> reasons;
};

struct ExpiredProfile {
  Profile profile; ///< without the rejected rows; may be empty
  std::vector<ExpiredRow> rows;
};

/// Rejected: another board's name, a meter that is no longer believed, a date to come. Downgraded:
/// another board of that name, driver, OS, Hebe or Triton, a meter that is not here or has another
/// status, and age. bad_argument: `date`.
[[nodiscard]] Result<ExpiredProfile> expire_profile(const Profile& profile, const Present& present);
[[nodiscard]] Json json_of(const ExpiredProfile& expired);

} // namespace hebe::tune
