// One row of a profile: the implementation chosen for a bucket of shapes on a board, what it costs,
// and how that is known. In: values from a tune, or a stored row; out: the row, checked. Invariant:
// a row that passes check_row has no cost that is zero, not finite or outside its own interval, and
// no measured cost without a believed meter and the records that it rests on.
#pragma once

#include "core/json.hpp"
#include "tune/metered_window.hpp"
#include "tune/shape_bucket.hpp"

namespace hebe::tune {

struct RowKey {
  std::string operation;
  std::string shape; ///< a bucket's text
  std::string dtype;
  std::string board; ///< the board's name; which of them is in the platform
  auto operator<=>(const RowKey&) const = default;
};
/// "matmul m<=256,n=4096 bf16 on NVIDIA H200"
[[nodiscard]] std::string text_of(const RowKey& key);

struct Implementation {
  std::string name;
  Json configuration = Json::object();
  std::optional<std::string> artifact_sha256;
  bool operator==(const Implementation&) const = default;
};

/// Whole nanojoules or nanoseconds, with the 95 % interval of what was not yet rounded.
struct Amount {
  std::int64_t value = 0;
  double low = 0, high = 0;
  bool operator==(const Amount&) const = default;
};

struct Platform {
  std::optional<std::string> board_uuid;
  std::string driver, os, hebe;
  std::optional<std::string> triton; ///< none: it was not made by Triton
  bool operator==(const Platform&) const = default;
};

/// What the chosen one was held against: in pairs, where both ran on the board.
struct Baseline {
  Implementation implementation;
  Amount energy_nj, time_ns;
  std::optional<MeterIdentity> meter{}; ///< another than the row's: the row's is the host's
  bool operator==(const Baseline&) const = default;
};

/// How much less or more energy than the baseline's, in pairs: percent, with its interval.
struct PairedEffect {
  double percent = 0, low_percent = 0, high_percent = 0;
  bool operator==(const PairedEffect&) const = default;
};

/// By what a row was chosen.
struct RowObjective {
  std::string name;           ///< energy, edp, energy_under_latency
  bool idle_included = false; ///< the search ranked with idle power (docs/profiles.md)
  /// In ns; where it was asked for as a ratio of the baseline's, that too.
  std::optional<double> latency_bound_ns{}, latency_bound_ratio{};
  bool operator==(const RowObjective&) const = default;
};
/// "energy, idle power included"; a bound is said by who knows whether it is kept.
[[nodiscard]] std::string text_of(const RowObjective& objective);

struct ProfileRow {
  RowKey key;
  Implementation implementation;
  Amount energy_nj, time_ns;
  MeterIdentity meter; ///< its provenance is the row's
  Idle idle = Idle::no_context;
  Platform platform;
  std::string date; ///< UTC, 2026-11-30T04:20:00Z
  std::optional<std::string> study;
  std::vector<std::string> runs; ///< seals
  /// Whether its energy is of pairs that are evidence (docs/protocol.md), not smoke; rows from
  /// before, and of a host, do not say.
  std::optional<bool> qualified{};
  std::optional<RowObjective> objective{}; ///< rows from before have none
  std::optional<Baseline> baseline;        ///< none: it was not paired against one
  std::optional<std::string> verdict;      ///< of its energy against the baseline's
  std::optional<PairedEffect> effect{};    ///< with the verdict; rows from before have none
  std::vector<std::string> downgraded;     ///< why it is no longer what it was; see profile_expiry
  bool operator==(const ProfileRow&) const = default;
};

/// Whether the row's time is within the bound that it was chosen under; true without one.
[[nodiscard]] bool within_its_bound(const ProfileRow& row);

/// bad_schema with what is wrong, the meter's status, and `file` as the one that is not written.
[[nodiscard]] Status check_row(const ProfileRow& row, const std::string& file);

[[nodiscard]] Json json_of(const ProfileRow& row);
/// Of a row that follows the schema hebe.profile/1.
[[nodiscard]] Result<ProfileRow> row_from(const Json& json, std::string_view where);

/// Whether a text holds no control character: keys and names stand in messages and tables.
[[nodiscard]] bool on_one_line(std::string_view text);

/// Seconds since 1970 of a date as rows have it; none: there is no such time.
[[nodiscard]] std::optional<std::int64_t> seconds_of_date(std::string_view date);

} // namespace hebe::tune
