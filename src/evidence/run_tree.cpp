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
  std::vector<TreeEntry> all(const fs::path& runs) {
    folder(runs, 0);
    return std::move(out_);
  }

private:
  void add(TreeKind kind, fs::path path, std::string what) {
    out_.push_back({kind, std::move(path), std::move(what)});
  }

  void folder(const fs::path& path, std::size_t level) {
    const auto entries = list_folder(path);
    if (!entries) {
      std::error_code ec;
      const auto type = fs::symlink_status(path, ec).type();
      if (type == fs::file_type::not_found) return;
      add(type == fs::file_type::symlink ? TreeKind::symbolic_link : TreeKind::unreadable, path,
          entries.error().what);
      return;
    }
    for (const auto& entry : *entries) one(path / entry.name, entry, level);
  }

  void one(fs::path path, const FolderEntry& entry, std::size_t level) {
    if (entry.type == fs::file_type::not_found) return;
    if (entry.type == fs::file_type::symlink)
      return add(TreeKind::symbolic_link, std::move(path),
                 "a symbolic link: it is not followed, put the directory itself here");
    if (entry.type != fs::file_type::directory)
      return add(TreeKind::foreign, std::move(path), "a file that no Hebe puts here");
    if (level < kDatedLevels) {
      if (all_digits(entry.name, level == 0 ? 4 : 2)) return folder(path, level + 1);
      return add(TreeKind::foreign, std::move(path), "a directory that no Hebe puts here");
    }
    if (entry.name.starts_with(kUnsealedPrefix))
      return add(TreeKind::half_written, std::move(path),
                 "never sealed: its writer died or is still writing");
    if (entry.name.starts_with(kNotCompacted))
      return add(TreeKind::captured, std::move(path),
                 "a finished measurement whose telemetry is not compacted yet");
    if (entry.name.starts_with('.'))
      return add(TreeKind::foreign, std::move(path), "a directory that no Hebe puts here");
    add(TreeKind::run, std::move(path), {});
  }

  std::vector<TreeEntry> out_;
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

std::vector<TreeEntry> list_run_tree(const fs::path& runs) { return TreeWalk().all(runs); }

} // namespace hebe::evidence
