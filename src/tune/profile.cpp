#include "tune/profile.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"
#include "tune/shape_bucket.hpp"

#include <fmt/format.h>

namespace hebe::tune {
namespace {

constexpr std::string_view kSchema = "hebe.profile/1";

std::unexpected<Refusal> not_written(Refusal refusal, const std::filesystem::path& file) {
  refusal.not_written = file.string();
  return std::unexpected(std::move(refusal));
}

} // namespace

Status Profile::check_dimensions(const ProfileRow& row, const std::string& file) {
  const auto names = [](const std::string& shape) {
    std::vector<std::string> out;
    for (auto& d : bucket_from(shape, {}).value_or(ShapeBucket{})) out.push_back(d.name);
    return out;
  };
  const auto& k = row.key;
  const auto [first, added] = shapes_.try_emplace({k.operation, k.dtype, k.board}, k.shape);
  if (added || names(first->second) == names(k.shape)) return {};
  return std::unexpected(Refusal{
      RefusalCode::bad_schema,
      fmt::format("row {}: its dimensions are {}, those of another of its operation, {}, are {}",
                  text_of(k), fmt::join(names(k.shape), ","), first->second,
                  fmt::join(names(first->second), ",")),
      file, "name and order the dimensions of an operation in one way", file});
}

Status Profile::record(ProfileRow row, const std::string& file) {
  HEBE_CHECK(check_row(row, file));
  HEBE_CHECK(check_dimensions(row, file));
  const auto key = row.key;
  if (!rows_.emplace(key, std::move(row)).second)
    return std::unexpected(Refusal{RefusalCode::already_exists,
                                   fmt::format("row {} is there twice", text_of(key)), file,
                                   "keep one of them, or merge two profiles", file});
  return {};
}

const ProfileRow* Profile::find(const RowKey& key) const {
  const auto hit = rows_.find(key);
  return hit == rows_.end() ? nullptr : &hit->second;
}

Json json_of(const Profile& profile) {
  Json rows = Json::array();
  for (const auto& [key, row] : profile.rows()) rows.push_back(json_of(row));
  return {{"schema", kSchema}, {"rows", std::move(rows)}};
}

Result<Profile> profile_from(const Json& json, const std::string& where) {
  HEBE_CHECK(check_schema(json, kSchema, where));
  Profile out;
  for (const auto& row : json.at("rows")) {
    HEBE_TRY(auto one, row_from(row, where));
    if (const auto taken = out.record(std::move(one), where); !taken) {
      auto refusal = taken.error();
      refusal.code = RefusalCode::bad_schema; // of a stored file, not of a request
      refusal.not_written.clear();
      return std::unexpected(std::move(refusal));
    }
  }
  return out;
}

Result<Profile> read_profile(const std::filesystem::path& file) {
  std::error_code ec;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, ec)))
    return refuse(RefusalCode::not_found, "there is no such profile", "give a profile's path",
                  file.string());
  HEBE_TRY(const auto record, read_record(file, kMostProfileBytes));
  HEBE_TRY(const auto json, parse_json(record.bytes, file.string()));
  return profile_from(json, file.string());
}

Status write_profile(const std::filesystem::path& file, const Profile& profile,
                     std::uint64_t most_bytes) {
  if (profile.rows().empty())
    return not_written({RefusalCode::gate_failed,
                        "the profile has no rows: where nothing was measured nothing is written",
                        file.string(),
                        {},
                        {}},
                       file);
  // Rows may not be changed once recorded, but nothing is written on that belief alone.
  const auto json = json_of(profile);
  if (const auto sound = profile_from(json, file.string()); !sound)
    return not_written(sound.error(), file);
  const auto text = canonical_json(json);
  if (!text) return not_written(text.error(), file);
  if (text->size() + 1 > most_bytes)
    return not_written({RefusalCode::bad_argument,
                        fmt::format("the profile would have {} bytes, and at most {} are read",
                                    text->size() + 1, most_bytes),
                        file.string(),
                        "merge fewer profiles into one",
                        {}},
                       file);
  if (const auto written = write_file_whole(file, *text + "\n"); !written)
    return not_written(written.error(), file);
  return {};
}

} // namespace hebe::tune
