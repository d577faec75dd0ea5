#include "core/new_file.hpp"

#include "core/files.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe {
namespace fs = std::filesystem;
namespace {

Status write_all(const FileDescriptor& fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const auto put = ::write(fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return std::unexpected(io_refusal(errno, "write", path));
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(fd.get()) != 0) return std::unexpected(io_refusal(errno, "fsync", path));
  return {};
}

Status written(const fs::path& temporary, const fs::path& path, std::string_view bytes,
               ::mode_t mode) {
  // From its first byte on nobody else can read it: it may be a private key.
  const FileDescriptor fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return std::unexpected(io_refusal(errno, "create", temporary));
  HEBE_CHECK(write_all(fd, bytes, temporary));
  if (::fchmod(fd.get(), mode) != 0) return std::unexpected(io_refusal(errno, "chmod", temporary));
  if (::link(temporary.c_str(), path.c_str()) == 0) return {};
  if (errno == EEXIST)
    return refuse(RefusalCode::already_exists, "there is a file of that name; it was not touched",
                  "choose another name, or remove it", path.string());
  return std::unexpected(io_refusal(errno, "link", path));
}

} // namespace

Status write_unless_there(const fs::path& path, std::string_view bytes, ::mode_t mode) {
  const auto temporary =
      path.parent_path() / ("." + path.filename().string() + ".tmp." + std::to_string(::getpid()));
  ::unlink(temporary.c_str()); // left by a process of the same id that died
  auto status = written(temporary, path, bytes, mode);
  ::unlink(temporary.c_str());
  if (!status) {
    status.error().not_written = path.string();
    return status;
  }
  return sync_directory(path.parent_path());
}

} // namespace hebe
