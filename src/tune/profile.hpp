// Profiles (hebe.profile/1): which implementation of an operation costs least, by shape bucket,
// dtype and board. In: checked rows, or a file; out: the rows in the order of their keys, the file.
// Invariant: no two rows have one key; a profile without rows or with a row that does not pass
// check_row is never written; a file is whole or absent.
#pragma once

#include "tune/profile_row.hpp"

#include <array>
#include <filesystem>
#include <map>

namespace hebe::tune {

/// What is larger is neither read nor written.
inline constexpr std::uint64_t kMostProfileBytes = 64ULL << 20;

class Profile {
public:
  using Rows = std::map<RowKey, ProfileRow>;

  /// Takes a row: bad_schema (check_row; other dimensions than a row of its operation, dtype and
  /// board has, which no dispatch could tell apart), already_exists. `file` is what is then not
  /// written.
  [[nodiscard]] Status record(ProfileRow row, const std::string& file);
  [[nodiscard]] const Rows& rows() const { return rows_; }
  [[nodiscard]] const ProfileRow* find(const RowKey& key) const;
  bool operator==(const Profile& other) const { return rows_ == other.rows_; }

private:
  [[nodiscard]] Status check_dimensions(const ProfileRow& row, const std::string& file);

  Rows rows_;
  /// Operation, dtype, board: the shape whose dimensions its rows have.
  std::map<std::array<std::string, 3>, std::string> shapes_;
};

[[nodiscard]] Json json_of(const Profile& profile);
/// bad_schema: schema, a row, or two rows with one key.
[[nodiscard]] Result<Profile> profile_from(const Json& json, const std::string& where);

/// not_found, bad_schema.
[[nodiscard]] Result<Profile> read_profile(const std::filesystem::path& file);
/// Canonical bytes and a newline; the same rows give the same bytes. gate_failed: it has no rows;
/// bad_argument: more than `most_bytes`, which no command would read.
[[nodiscard]] Status write_profile(const std::filesystem::path& file, const Profile& profile,
                                   std::uint64_t most_bytes = kMostProfileBytes);

} // namespace hebe::tune
