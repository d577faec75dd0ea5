#include "tune/profile_expiry.hpp"

#include "tune/same_identity.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

constexpr std::int64_t kDay = 86400;

// Adds a reason where both are known and differ.
void compare(std::string_view name, const std::optional<std::string>& then,
             const std::optional<std::string>& now, std::vector<std::string>& reasons) {
  if (then && now && *then != *now)
    reasons.push_back(fmt::format("{} was {} and is {}", name, *then, *now));
}

void judge_meter(const ProfileRow& row, const Present& present, RowReasons& out) {
  if (!present.meters) return;
  const auto now = present.meters->find(row.meter.name);
  if (now == present.meters->end())
    out.downgrade.push_back(fmt::format("meter {} is not here", row.meter.name));
  else if (!accepted_status(now->second))
    out.reject.push_back(
        fmt::format("meter {} was {} and is {}", row.meter.name, row.meter.status, now->second));
  else if (now->second != row.meter.status)
    out.downgrade.push_back(
        fmt::format("meter {} was {} and is {}", row.meter.name, row.meter.status, now->second));
}

RowReasons judge(const ProfileRow& row, const Present& present, std::int64_t now_s) {
  RowReasons out;
  compare("board", row.key.board, present.board, out.reject);
  const auto &then = row.platform.board_uuid, &now = present.board_uuid;
  if (now && !then) out.downgrade.emplace_back("it does not say its board's UUID");
  if (!then || !now || !same_identity(*then, *now)) compare("board_uuid", then, now, out.downgrade);
  compare("driver", row.platform.driver, present.driver, out.downgrade);
  compare("os", row.platform.os, present.os, out.downgrade);
  compare("hebe", row.platform.hebe, present.hebe, out.downgrade);
  compare("triton", row.platform.triton, present.triton, out.downgrade);
  judge_meter(row, present, out);
  const auto age_s = now_s - seconds_of_date(row.date).value_or(now_s);
  if (age_s < 0)
    out.reject.push_back(fmt::format("its date {} is after {}", row.date, present.date));
  else if (present.most_days && age_s > *present.most_days * kDay)
    out.downgrade.push_back(
        fmt::format("it is {} days old, more than {}", age_s / kDay, *present.most_days));
  return out;
}

} // namespace

ProfileRow downgraded(ProfileRow row, const std::vector<std::string>& reasons) {
  if (row.meter.provenance == Provenance::measured) row.meter.provenance = Provenance::estimated;
  for (const auto& reason : reasons)
    if (std::find(row.downgraded.begin(), row.downgraded.end(), reason) == row.downgraded.end())
      row.downgraded.push_back(reason);
  return row;
}

namespace {

Result<std::int64_t> checked_date(const Present& present) {
  const auto now_s = seconds_of_date(present.date);
  if (!now_s)
    return refuse(RefusalCode::bad_argument, fmt::format("\"{}\" is no UTC date", present.date),
                  "write it as 2026-11-30T04:20:00Z");
  // A century: beyond it days times seconds could overflow, and no row is older.
  if (present.most_days && (*present.most_days < 0 || *present.most_days > 36525))
    return refuse(RefusalCode::bad_argument,
                  fmt::format("a row may be 0 to 36525 days old, not {}", *present.most_days));
  return *now_s;
}

} // namespace

Result<RowReasons> reasons_against(const ProfileRow& row, const Present& present) {
  HEBE_TRY(const auto now_s, checked_date(present));
  return judge(row, present, now_s);
}

Result<ExpiredProfile> expire_profile(const Profile& profile, const Present& present) {
  HEBE_TRY(const auto now_s, checked_date(present));
  ExpiredProfile out;
  for (const auto& [key, row] : profile.rows()) {
    auto [reject, downgrade] = judge(row, present, now_s);
    if (!reject.empty()) {
      reject.insert(reject.end(), downgrade.begin(), downgrade.end());
      out.rows.push_back({key, true, std::move(reject)});
      continue;
    }
    HEBE_CHECK(out.profile.record(downgrade.empty() ? row : downgraded(row, downgrade),
                                  "the expired profile"));
    // One that was downgraded before holds no better for it.
    if (downgrade.empty()) downgrade = row.downgraded;
    if (!downgrade.empty()) out.rows.push_back({key, false, std::move(downgrade)});
  }
  return out;
}

Json json_of(const ExpiredProfile& expired) {
  Json rows = Json::array();
  for (const auto& row : expired.rows)
    rows.push_back({{"row", text_of(row.key)},
                    {"outcome", row.rejected ? "rejected" : "downgraded"},
                    {"reasons", row.reasons}});
  return {{"profile", json_of(expired.profile)}, {"expired", std::move(rows)}};
}

} // namespace hebe::tune
