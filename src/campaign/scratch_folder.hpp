// A private folder, gone when this is. In: where; out: its path. Invariant: nobody else's files are
// ever removed.
#pragma once

#include "core/files.hpp"

#include <cerrno>
#include <cstdlib>

namespace hebe::campaign {

class ScratchFolder {
public:
  [[nodiscard]] static Result<ScratchFolder> make(const std::filesystem::path& parent) {
    auto name = (parent / "hebe-job-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return std::unexpected(io_refusal(errno, "create directory", name));
    return ScratchFolder(name);
  }
  ScratchFolder(ScratchFolder&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&& o) noexcept {
    std::swap(path_, o.path_);
    return *this;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

} // namespace hebe::campaign
