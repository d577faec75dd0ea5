#include "evidence/run_tree.hpp"

#include "core/files.hpp"
#include "evidence/data_root.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

fs::file_type type_of(int folder, const dirent& entry) {
  switch (entry.d_type) {
  case DT_DIR:
    return fs::file_type::directory;
  case DT_REG:
    return fs::file_type::regular;
  case DT_LNK:
    return fs::file_type::symlink;
  case DT_UNKNOWN:
    break; // some file systems do not say
  default:
    return fs::file_type::unknown;
  }
  struct stat info {};
  if (::fstatat(folder, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
    return fs::file_type::not_found;
  return S_ISDIR(info.st_mode)   ? fs::file_type::directory
         : S_ISREG(info.st_mode) ? fs::file_type::regular
         : S_ISLNK(info.st_mode) ? fs::file_type::symlink
                                 : fs::file_type::unknown;
}

bool all_digits(std::string_view text, std::size_t count) {
  return text.size() == count &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::size_t kDatedLevels = 3; // YYYY, MM, DD
constexpr std::string_view kNotCompacted = ".captured-";

class TreeWalk {
public:
  explicit TreeWalk(const std::function<Status(TreeEntry)>& visit) : visit_(visit) {}

  Status folder(const fs::path& path, std::size_t level) {
    const auto entries = list_folder(path);
    if (!entries) {
      std::error_code ec;
      const auto type = fs::symlink_status(path, ec).type();
      if (type == fs::file_type::not_found) return {};
      return visit_(
          {type == fs::file_type::symlink ? TreeKind::symbolic_link : TreeKind::unreadable, path,
           entries.error().what});
    }
    for (const auto& entry : *entries) HEBE_CHECK(one(path / entry.name, entry, level));
    return {};
  }

private:
  Status one(fs::path path, const FolderEntry& entry, std::size_t level) {
    if (entry.type == fs::file_type::not_found) return {};
    if (entry.type == fs::file_type::symlink)
      return visit_({TreeKind::symbolic_link, std::move(path),
                     "a symbolic link: it is not followed, put the directory itself here"});
    if (entry.type != fs::file_type::directory)
      return visit_({TreeKind::foreign, std::move(path), "a file that no Hebe puts here"});
    if (level < kDatedLevels && all_digits(entry.name, level == 0 ? 4 : 2))
      return folder(path, level + 1);
    if (level < kDatedLevels || entry.name.starts_with('.')) return visit_(hidden(path, entry));
    return visit_({TreeKind::run, std::move(path), {}});
  }

  /// Not a run: half written, not compacted, or not ours.
  static TreeEntry hidden(const fs::path& path, const FolderEntry& entry) {
    if (entry.name.starts_with(kUnsealedPrefix))
      return {TreeKind::half_written, path, "never sealed: its writer died or is still writing"};
    if (entry.name.starts_with(kNotCompacted))
      return {TreeKind::captured, path,
              "a finished measurement whose telemetry is not compacted yet"};
    return {TreeKind::foreign, path, "a directory that no Hebe puts here"};
  }

  const std::function<Status(TreeEntry)>& visit_;
};

} // namespace

Result<std::vector<FolderEntry>> list_folder(const fs::path& folder) {
  FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    struct stat info {};
    const int error = errno;
    if (::lstat(folder.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
      return refuse(RefusalCode::io_failed, "a symbolic link: it is not followed",
                    "put the directory itself here", folder.string());
    return std::unexpected(io_refusal(error, "open", folder));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return std::unexpected(io_refusal(errno, "list", folder));
  const int of_stream = fd.release(); // closed with the stream
  std::vector<FolderEntry> out;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return std::unexpected(io_refusal(errno, "list", folder));
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.push_back({std::string(name), type_of(of_stream, *entry)});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

Status walk_run_tree(const fs::path& runs, const std::function<Status(TreeEntry)>& visit) {
  struct stat info {};
  if (::lstat(runs.c_str(), &info) != 0 && errno == ENOENT) return {};
  return TreeWalk(visit).folder(runs, 0);
}

} // namespace hebe::evidence
