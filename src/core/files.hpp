// Files that are whole or absent. In: bytes and a path; out: a durable file, or a refusal that
// names the path. Invariant: nobody ever sees a half-written file under its final name.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hebe {

/// Owns a POSIX descriptor.
class FileDescriptor {
public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& o) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

private:
  int fd_ = -1;
};

/// errno as a refusal: no_space, no_permission (also a read-only file system) or io_failed.
[[nodiscard]] Refusal io_refusal(int error, std::string_view operation,
                                 const std::filesystem::path& path);

[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path);

/// read_file() of what a user named: not_found, a usage error, where nothing is there.
[[nodiscard]] Result<std::string> read_given_file(const std::filesystem::path& path);
[[nodiscard]] Status there_is(const std::filesystem::path& given);

/// Opens a stored record: a regular file under its own name. A symbolic link, a device or a pipe
/// in a record's place is io_failed, whatever it would give to read.
[[nodiscard]] Result<FileDescriptor> open_record(const std::filesystem::path& path);

/// Bytes that are read once, and their SHA-256: what was checked is what is used.
struct HashedBytes {
  std::string bytes, sha256;
};
/// `at_most` refuses a file that is larger, before it is read.
[[nodiscard]] Result<HashedBytes> read_record(const std::filesystem::path& path,
                                              std::uint64_t at_most);

/// Writes `path` through a temporary name beside it: written, fsynced, made read-only (0444),
/// renamed, the directory fsynced. An existing file is replaced; a failure leaves it as it was, and
/// so does replaceable().
[[nodiscard]] Status write_file_whole(const std::filesystem::path& path, std::string_view bytes);

/// already_exists where something is there that is no regular file: a device, a pipe, a folder or a
/// link is never replaced.
[[nodiscard]] Status replaceable(const std::filesystem::path& path);
/// Whether write_file_whole can be expected to work, asked before the work that leads to it:
/// replaceable(); bad_argument without a folder; no_permission. `path` is what is then not written.
[[nodiscard]] Status can_be_written(const std::filesystem::path& path);

/// Writes and fsyncs a new file in a directory that is itself still under a temporary name.
/// `durable` false: a sync_file_system follows.
[[nodiscard]] Status write_new_file(const std::filesystem::path& path, std::string_view bytes,
                                    bool durable = true);

/// Refuses (unsafe_path) when `path` is not below `root`, or when a component below it that exists
/// is a symbolic link: what is written there would land elsewhere. `root` itself may be a link.
[[nodiscard]] Status check_inside(const std::filesystem::path& root,
                                  const std::filesystem::path& path);

[[nodiscard]] Status make_directories(const std::filesystem::path& path);
[[nodiscard]] Status sync_directory(const std::filesystem::path& path);
/// Makes everything written so far on the file system of `path` durable: one call for many files.
[[nodiscard]] Status sync_file_system(const std::filesystem::path& path);
/// fsyncs a file that another library wrote.
[[nodiscard]] Status sync_file(const std::filesystem::path& path);

} // namespace hebe
