#include "evidence/sealed_study.hpp"

#include "core/crash_point.hpp"
#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSchema = "hebe.study/1";
constexpr std::uint64_t kMostBytes = 64ULL << 20;

std::unexpected<Refusal> not_it(std::string what, const fs::path& where) {
  return refuse(RefusalCode::digest_mismatch, std::move(what), "restore the study from a copy",
                where.string());
}

Result<SealedStudy> load_from(const fs::path& directory) {
  SealedStudy out;
  out.directory = directory;
  out.id = directory.filename().string();
  out.existed = true;
  const auto file = directory / "study.json";
  HEBE_TRY(auto bytes, read_record(file, kMostBytes));
  auto text = bytes.bytes;
  if (text.ends_with('\n')) text.pop_back();
  if (const auto digest = sha256_hex(text);
      out.id != std::string(kStudyPrefix) + digest || text.size() + 1 != bytes.bytes.size())
    return not_it(fmt::format("its content id is {}, it is named {}", digest, out.id), file);
  HEBE_TRY(out.json, parse_json(text, file.string()));
  HEBE_CHECK(check_schema(out.json, kSchema, file.string()));
  std::set<std::string> listed = {"study.json"};
  for (const auto& f : out.json.at("files")) {
    const auto name = f.at("path").get<std::string>();
    listed.insert(name);
    HEBE_TRY(const auto found, read_record(directory / name, kMostBytes));
    if (found.sha256 != f.at("sha256") || found.bytes.size() != f.at("bytes"))
      return not_it(fmt::format("required sha256 {}, found {}", f.at("sha256").get<std::string>(),
                                found.sha256),
                    directory / name);
  }
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(directory, ec))
    if (!listed.contains(entry.path().filename().string()))
      return not_it("this file is not of the study", entry.path());
  return out;
}

Status write_all(const fs::path& folder, const std::string& text,
                 const std::map<std::string, std::string>& files) {
  HEBE_CHECK(make_directories(folder));
  for (const auto& [name, bytes] : files) HEBE_CHECK(write_new_file(folder / name, bytes, false));
  HEBE_CHECK(write_new_file(folder / "study.json", text, false));
  return sync_file_system(folder);
}

} // namespace

Result<SealedStudy> seal_study(const DataRoot& root, Json study,
                               const std::map<std::string, std::string>& files) {
  study["files"] = Json::array();
  for (const auto& [name, bytes] : files)
    study["files"].push_back(
        {{"path", name}, {"bytes", bytes.size()}, {"sha256", sha256_hex(bytes)}});
  HEBE_CHECK(check_schema(study, kSchema, "the study"));
  HEBE_TRY(const auto text, canonical_json(study));
  const auto id = std::string(kStudyPrefix) + sha256_hex(text);
  const auto directory = root.studies() / id;
  HEBE_CHECK(check_inside(root.path(), directory));
  std::error_code ec;
  if (fs::exists(directory, ec)) return load_from(directory);
  const auto temporary =
      root.studies() / fmt::format("{}{}-{}", kUnsealedPrefix, ::getpid(), id.substr(0, 24));
  fs::remove_all(temporary, ec); // of a process with our id that died
  crash_point("study: write");
  auto written = write_all(temporary, text + "\n", files);
  if (written) {
    crash_point("study: rename");
    fs::rename(temporary, directory, ec);
    if (ec && !fs::exists(directory / "study.json"))
      written = std::unexpected(io_refusal(ec.value(), "rename", directory));
    else
      written = sync_directory(root.studies());
  }
  if (!written) {
    fs::remove_all(temporary, ec);
    written.error().not_written = directory.string();
    return std::unexpected(std::move(written).error());
  }
  fs::remove_all(temporary, ec); // another process was faster
  return SealedStudy{directory, id, std::move(study), false};
}

Result<SealedStudy> load_study(const DataRoot& root, const std::string& name) {
  std::error_code ec;
  if (name.find('/') != std::string::npos) {
    auto directory = fs::absolute(name).lexically_normal();
    if (!directory.has_filename()) directory = directory.parent_path();
    if (fs::is_directory(directory, ec)) return load_from(directory);
    return refuse(RefusalCode::not_found, "there is no such study", {}, directory.string());
  }
  std::vector<fs::path> hits;
  for (const auto& entry : fs::directory_iterator(root.studies(), ec))
    if (const auto id = entry.path().filename().string();
        id.starts_with(kStudyPrefix) && id.find(name) != std::string::npos)
      hits.push_back(entry.path());
  if (hits.empty())
    return refuse(RefusalCode::not_found,
                  name.empty() ? "there is no sealed study here"
                               : "no sealed study is named \"" + name + "\"",
                  "make one with `hebe study`", root.studies().string());
  if (!name.empty() && hits.size() > 1)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("\"{}\" fits {} studies", name, hits.size()), "give more of the id");
  // A folder without its study.json has no time, and is never the newest; named, it is refused.
  const auto written = [&](const fs::path& p) {
    std::error_code gone;
    const auto at = fs::last_write_time(p / "study.json", gone);
    return gone ? fs::file_time_type::min() : at;
  };
  return load_from(*std::ranges::max_element(hits, {}, written));
}

} // namespace hebe::evidence
