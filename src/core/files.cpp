#include "core/files.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe {
namespace fs = std::filesystem;

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& o) noexcept {
  if (this != &o) close(), fd_ = std::exchange(o.fd_, -1);
  return *this;
}

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Refusal io_refusal(int error, std::string_view operation, const fs::path& path) {
  Refusal r{RefusalCode::io_failed, {}, path.string(), {}, {}};
  if (error == ENOSPC || error == EDQUOT) {
    r.code = RefusalCode::no_space;
    r.next = "free space on that file system, or choose another --data-root";
  } else if (error == EACCES || error == EPERM || error == EROFS) {
    r.code = RefusalCode::no_permission;
    r.next = "make the path writable for this user, or choose another --data-root";
  }
  r.what = std::string(operation) + " failed: " + std::strerror(error);
  return r;
}

Result<std::string> read_file(const fs::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::unexpected(io_refusal(errno, "open", path));
  std::string bytes;
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && info.st_size > 0)
    bytes.reserve(static_cast<std::size_t>(info.st_size));
  char buffer[1 << 16];
  for (;;) {
    const auto got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(io_refusal(errno, "read", path));
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
}

namespace {
Status write_all(int fd, std::string_view bytes, const fs::path& path, bool durable) {
  while (!bytes.empty()) {
    const auto put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return std::unexpected(io_refusal(errno, "write", path));
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  if (durable && ::fsync(fd) != 0) return std::unexpected(io_refusal(errno, "fsync", path));
  return {};
}
} // namespace

Status write_new_file(const fs::path& path, std::string_view bytes, bool durable) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return std::unexpected(io_refusal(errno, "create", path));
  HEBE_CHECK(write_all(fd.get(), bytes, path, durable));
  if (::fchmod(fd.get(), 0444) != 0) return std::unexpected(io_refusal(errno, "chmod", path));
  return {};
}

Status write_file_whole(const fs::path& path, std::string_view bytes) {
  const fs::path temporary =
      path.parent_path() / ("." + path.filename().string() + ".tmp." + std::to_string(::getpid()));
  ::unlink(temporary.c_str()); // left by a process of the same id that died
  auto status = write_new_file(temporary, bytes);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = std::unexpected(io_refusal(errno, "rename", path));
  if (!status) {
    ::unlink(temporary.c_str());
    status.error().not_written = path.string();
    return status;
  }
  return sync_directory(path.parent_path());
}

Status check_inside(const fs::path& root, const fs::path& path) {
  const auto below = path.lexically_normal().lexically_relative(root.lexically_normal());
  if (below.empty() || *below.begin() == "..")
    return refuse(RefusalCode::unsafe_path, "the path is not inside " + root.string(),
                  "name something inside it, without \"..\"", path.string());
  auto walked = root;
  for (const auto& part : below) {
    walked /= part;
    std::error_code ec;
    if (fs::is_symlink(fs::symlink_status(walked, ec)))
      return refuse(RefusalCode::unsafe_path,
                    "a symbolic link lies in the data root: what is written there would land "
                    "elsewhere",
                    "remove the link, or make what it points to the data root", walked.string());
  }
  return {};
}

Status make_directories(const fs::path& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec) return std::unexpected(io_refusal(ec.value(), "create directory", path));
  return {};
}

Status sync_file(const fs::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return std::unexpected(io_refusal(errno, "fsync", path));
  return {};
}

Status sync_file_system(const fs::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::syncfs(fd.get()) != 0) return std::unexpected(io_refusal(errno, "syncfs", path));
  return {};
}

// The folder of a bare file name is the current one.
Status sync_directory(const fs::path& path) { return sync_file(path.empty() ? "." : path); }

} // namespace hebe
