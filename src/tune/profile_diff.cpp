#include "tune/profile_diff.hpp"

#include "tune/marginal.hpp"

#include <fmt/format.h>

namespace hebe::tune {
namespace {

RowDifference changed(const ProfileRow& a, const ProfileRow& b) {
  RowDifference out{a.key, "changed", {}, std::nullopt, std::nullopt};
  const Json before = json_of(a), after = json_of(b);
  // Some members stand in newer rows alone.
  auto all = before;
  all.update(after);
  const auto text = [](const Json& row, const std::string& name) {
    return row.contains(name) ? row.at(name).dump() : "(not said)";
  };
  for (const auto& [name, value] : all.items())
    if (const auto was = text(before, name), now = text(after, name); was != now)
      out.members.push_back(fmt::format("{}: {} -> {}", name, was, now));
  if (a.energy_nj == b.energy_nj) return out;
  const auto ratio = cost_ratio({static_cast<double>(b.energy_nj.value), b.meter},
                                {static_cast<double>(a.energy_nj.value), a.meter}, {});
  if (ratio) {
    out.energy_ratio = *ratio;
    out.intervals_apart = a.energy_nj.high < b.energy_nj.low || b.energy_nj.high < a.energy_nj.low;
  }
  return out;
}

} // namespace

std::vector<RowDifference> diff_profiles(const Profile& before, const Profile& after) {
  std::vector<RowDifference> out;
  for (const auto& [key, row] : before.rows()) {
    const auto* now = after.find(key);
    if (now == nullptr)
      out.push_back({key, "removed", {}, std::nullopt, std::nullopt});
    else if (*now != row)
      out.push_back(changed(row, *now));
  }
  for (const auto& [key, row] : after.rows())
    if (before.find(key) == nullptr) out.push_back({key, "added", {}, std::nullopt, std::nullopt});
  return out;
}

Json json_of(const std::vector<RowDifference>& differences) {
  Json out = Json::array();
  for (const auto& d : differences)
    out.push_back(
        {{"row", text_of(d.key)},
         {"kind", d.kind},
         {"members", d.members},
         {"energy_ratio", d.energy_ratio ? Json(*d.energy_ratio) : Json(nullptr)},
         {"intervals_apart", d.intervals_apart ? Json(*d.intervals_apart) : Json(nullptr)}});
  return out;
}

} // namespace hebe::tune
