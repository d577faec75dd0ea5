#include "core/files.hpp"

#include "core/sha256.hpp"

#include <algorithm>
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

namespace {
/// Reads to the end, straight into a string that has room for one byte more than the file's size:
/// the usual file takes one call that reads it and one that finds its end. `fresh` sees each piece
/// while it still lies in the processor's cache.
template <class Fresh>
Result<std::string> read_to_end(int fd, const fs::path& path, std::size_t piece, Fresh&& fresh) {
  struct stat info {};
  std::string bytes;
  std::size_t have = 0, room = 1 << 12;
  if (::fstat(fd, &info) == 0 && info.st_size > 0)
    room = static_cast<std::size_t>(info.st_size) + 1;
  for (;;) {
    int error = 0;
    bool ended = false;
    bytes.resize_and_overwrite(room, [&](char* at, std::size_t size) {
      while (have < size && !ended && error == 0) {
        const auto got = ::read(fd, at + have, std::min(size - have, piece));
        if (got < 0 && errno != EINTR) error = errno;
        if (got == 0) ended = true;
        if (got <= 0) continue;
        fresh(std::string_view(at + have, static_cast<std::size_t>(got)));
        have += static_cast<std::size_t>(got);
      }
      return have;
    });
    if (error != 0) return std::unexpected(io_refusal(error, "read", path));
    if (ended) return bytes;
    room *= 2; // it grew, or its size is not known beforehand (/proc, a pipe)
  }
}
} // namespace

Result<std::string> read_file(const fs::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::unexpected(io_refusal(errno, "open", path));
  constexpr std::size_t kLargestRead = 1 << 30; // Linux reads at most 2 GiB a call
  return read_to_end(fd.get(), path, kLargestRead, [](std::string_view) {});
}

Status there_is(const fs::path& given) {
  std::error_code ec;
  if (fs::symlink_status(given, ec).type() != fs::file_type::not_found) return {};
  return refuse(RefusalCode::not_found, "there is no such file", "give the path of a file",
                given.string());
}

Result<std::string> read_given_file(const fs::path& path) {
  HEBE_CHECK(there_is(path));
  return read_file(path);
}

Result<FileDescriptor> open_record(const fs::path& path) {
  // O_NONBLOCK: opening a pipe in a record's place must not wait for its writer.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd && errno == ELOOP)
    return refuse(RefusalCode::io_failed, "it is a symbolic link, not the file itself",
                  "put the file itself in its place", path.string());
  if (!fd || ::fstat(fd.get(), &info) != 0) return std::unexpected(io_refusal(errno, "open", path));
  if (!S_ISREG(info.st_mode))
    return refuse(RefusalCode::io_failed, "it is not a regular file",
                  "put the file itself in its place", path.string());
  return fd;
}

Result<HashedBytes> read_record(const fs::path& path, std::uint64_t at_most) {
  HEBE_TRY(const auto fd, open_record(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) > at_most)
    return refuse(RefusalCode::io_failed,
                  "it has " + std::to_string(info.st_size) + " bytes, at most " +
                      std::to_string(at_most) + " can be right",
                  "restore the file from a copy", path.string());
  Sha256 sha;
  HashedBytes out;
  HEBE_TRY(out.bytes, read_to_end(fd.get(), path, kHashingPiece,
                                  [&](std::string_view piece) { sha.update(piece); }));
  out.sha256 = sha.hex();
  return out;
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

namespace {
std::unexpected<Refusal> not_written(Refusal refusal, const fs::path& path) {
  refusal.not_written = path.string();
  return std::unexpected(std::move(refusal));
}
} // namespace

Status replaceable(const fs::path& path) {
  std::error_code ec;
  const auto there = fs::symlink_status(path, ec);
  if (!fs::exists(there) || fs::is_regular_file(there)) return {};
  return not_written({RefusalCode::already_exists,
                      "something of that name is no regular file; it was not touched",
                      path.string(),
                      "choose another name, or remove it",
                      {}},
                     path);
}

Status can_be_written(const fs::path& path) {
  HEBE_CHECK(replaceable(path));
  std::error_code ec;
  const auto folder = fs::absolute(path).parent_path();
  constexpr auto kNext = "give a file in a folder that is there and yours";
  if (!fs::is_directory(folder, ec))
    return not_written({RefusalCode::bad_argument,
                        "there is no such folder to write to",
                        folder.string(),
                        kNext,
                        {}},
                       path);
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  auto refusal = io_refusal(errno, "write to this folder", folder);
  refusal.next = kNext;
  return not_written(std::move(refusal), path);
}

Status write_file_whole(const fs::path& path, std::string_view bytes) {
  HEBE_CHECK(replaceable(path));
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
