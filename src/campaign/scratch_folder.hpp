// A private folder, gone when this is. In: where; out: its path. Invariant: nobody else's files are
// ever removed: of the folders that dead processes left there, those go that were ours and that
// nobody holds.
#pragma once

#include "core/files.hpp"

namespace hebe::campaign {

/// hebe-job-<pid>-<random>, locked (flock) while its process lives. Making one removes what
/// processes that were killed have left beside it.
class ScratchFolder {
public:
  [[nodiscard]] static Result<ScratchFolder> make(const std::filesystem::path& parent);
  ScratchFolder(ScratchFolder&& o) noexcept
      : path_(std::exchange(o.path_, {})), lock_(std::move(o.lock_)) {}
  ScratchFolder& operator=(ScratchFolder&& o) noexcept {
    std::swap(path_, o.path_);
    std::swap(lock_, o.lock_);
    return *this;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  ScratchFolder(std::filesystem::path path, FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  FileDescriptor lock_;
};

/// Folders of that kind in `parent` whose process is gone: they are removed. Never one that is of
/// another user, a link, held by a process (also one of another PID namespace), or without a pid in
/// its name.
void remove_abandoned_scratch(const std::filesystem::path& parent);

} // namespace hebe::campaign
