#include "tune/profile_merge.hpp"

#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

struct Candidate {
  const ProfileRow* row;
  const std::string* from;
  std::string text;
  // Decides where nothing else does, so that the files' order never does; a text's own order would
  // follow its first figure.
  std::string digest;
};

int rank(const ProfileRow& row) {
  switch (row.meter.provenance) {
  case Provenance::measured:
    return 2;
  case Provenance::estimated:
    return 1;
  case Provenance::simulated:
    return 0;
  }
  return 0;
}

bool qualified(const ProfileRow& row) { return row.qualified.value_or(false); }

bool before(const Candidate& a, const Candidate& b) {
  if (rank(*a.row) != rank(*b.row)) return rank(*a.row) > rank(*b.row);
  if (qualified(*a.row) != qualified(*b.row)) return qualified(*a.row);
  if (a.row->date != b.row->date) return a.row->date > b.row->date; // of one length, in UTC
  if (a.digest != b.digest) return a.digest < b.digest;
  return *a.from < *b.from;
}

std::string reason(const ProfileRow& kept, const ProfileRow& dropped) {
  if (rank(kept) != rank(dropped))
    return fmt::format("{} is kept before {}", name_of(kept.meter.provenance),
                       name_of(dropped.meter.provenance));
  if (qualified(kept) != qualified(dropped))
    return "it rests on a qualified run, the other does not say that it does";
  if (kept.date != dropped.date) return fmt::format("{} is newer than {}", kept.date, dropped.date);
  return "equally good and of one date: the one whose SHA-256 sorts first; never the cheaper, "
         "which would choose luck";
}

// Rows that were chosen by different objectives answer different questions: neither is better.
Status one_objective(const RowKey& key, const std::vector<Candidate>& candidates) {
  const Candidate* first = nullptr;
  for (const auto& c : candidates) {
    if (!c.row->objective) continue; // from before: it does not say
    if (first == nullptr) first = &c;
    const auto bound = [](const Candidate& of) {
      const auto& o = *of.row->objective; // a ratio's ns differ from tune to tune
      return o.latency_bound_ratio
                 ? fmt::format(" ({} times the baseline's)", *o.latency_bound_ratio)
             : o.latency_bound_ns ? fmt::format(" ({} ns)", *o.latency_bound_ns)
                                  : std::string();
    };
    const auto one = text_of(*first->row->objective) + bound(*first),
               other = text_of(*c.row->objective) + bound(c);
    if (one != other)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("row {} was chosen by {} in {}, by {} in {}", text_of(key), one,
                                *first->from, other, *c.from),
                    "merge profiles of one objective");
  }
  return {};
}

} // namespace

Result<MergedProfile> merge_profiles(std::span<const NamedProfile> profiles) {
  if (profiles.empty()) return refuse(RefusalCode::bad_argument, "there is no profile to merge");
  std::map<RowKey, std::vector<Candidate>> by_key;
  for (const auto& [name, profile] : profiles)
    for (const auto& [key, row] : profile.rows()) {
      HEBE_TRY(auto text, canonical_json(json_of(row)));
      auto digest = sha256_hex(text);
      by_key[key].push_back({&row, &name, std::move(text), std::move(digest)});
    }
  MergedProfile out;
  for (auto& [key, candidates] : by_key) {
    std::sort(candidates.begin(), candidates.end(), before);
    HEBE_CHECK(one_objective(key, candidates));
    const auto& kept = candidates.front();
    HEBE_CHECK(out.profile.record(*kept.row, "the merged profile"));
    for (const auto& other : candidates)
      if (other.text != kept.text)
        out.conflicts.push_back(
            {key, *kept.from, *other.from, reason(*kept.row, *other.row), *other.row});
  }
  return out;
}

Json json_of(const MergedProfile& merged) {
  Json conflicts = Json::array();
  for (const auto& c : merged.conflicts)
    conflicts.push_back({{"row", text_of(c.key)},
                         {"kept_from", c.kept_from},
                         {"dropped_from", c.dropped_from},
                         {"reason", c.reason},
                         {"dropped", json_of(c.dropped)}});
  return {{"profile", json_of(merged.profile)}, {"conflicts", std::move(conflicts)}};
}

} // namespace hebe::tune
