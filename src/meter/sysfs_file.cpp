#include "meter/sysfs_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::meter {
namespace {
namespace fs = std::filesystem;

std::unexpected<Refusal> failed(std::string what, const fs::path& path, std::string next = {}) {
  if (next.empty()) next = "look for the device and its driver in the kernel log";
  return refuse(RefusalCode::meter_failed, std::move(what), std::move(next), path.string());
}

} // namespace

Result<FileDescriptor> open_sysfs(const fs::path& path, const std::string& permission_fix) {
  // O_NONBLOCK: a pipe in the file's place must not wait for its writer.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const int error = fd ? 0 : errno;
  if (error == EACCES || error == EPERM)
    return refuse(RefusalCode::no_permission, "this user may not read " + path.string(),
                  permission_fix.empty() ? "sudo chmod a+r " + path.string() : permission_fix,
                  path.string());
  if (error == ENOENT || error == ENOTDIR)
    return failed("the file is gone: its device or driver was removed", path);
  if (error != 0) return failed(fmt::format("open failed: {}", std::strerror(error)), path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0)
    return failed(fmt::format("fstat failed: {}", std::strerror(errno)), path);
  if (!S_ISREG(info.st_mode)) return failed("it is not a regular file", path);
  return fd;
}

Result<std::string> read_sysfs(const FileDescriptor& fd, const fs::path& path) {
  std::array<char, 4096> bytes; // sysfs gives at most one page
  std::size_t have = 0;
  while (have < bytes.size()) {
    const auto got = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(fmt::format("read failed: {}", std::strerror(errno)), path);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  // sysfs itself answers ENODEV once the device is gone; on other file systems a removed file would
  // give its last value for ever.
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || info.st_nlink == 0)
    return failed("the file was removed while it was read", path);
  std::string_view text(bytes.data(), have);
  if (have == bytes.size())
    return refuse(RefusalCode::meter_implausible, "it holds 4096 bytes or more, one value was due",
                  "do not use this source", path.string());
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return failed("the file is empty", path);
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

Result<std::string> sysfs_text(const fs::path& path, const std::string& permission_fix) {
  HEBE_TRY(const auto fd, open_sysfs(path, permission_fix));
  return read_sysfs(fd, path);
}

Result<std::int64_t> sysfs_integer(const fs::path& path, const SysfsNumber& allowed) {
  HEBE_TRY(const auto text, sysfs_text(path, allowed.permission_fix));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto implausible = [&](std::string what) {
    return refuse(RefusalCode::meter_implausible, std::move(what), "do not use this source",
                  path.string());
  };
  if (error == std::errc::result_out_of_range)
    return implausible(fmt::format("\"{}\" does not fit a signed 64-bit integer", text));
  if (error != std::errc{} || end != text.data() + text.size())
    return implausible(fmt::format("\"{}\" is not an integer", text.substr(0, 80)));
  if (value < allowed.at_least)
    return implausible(fmt::format("{} is below {}", value, allowed.at_least));
  if (value > allowed.at_most)
    return implausible(fmt::format("{} is over its range, {}", value, allowed.at_most));
  return value;
}

Result<std::vector<std::string>> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error == std::errc::no_such_file_or_directory) return names;
  if (error) {
    const bool denied = error == std::errc::permission_denied;
    return refuse(denied ? RefusalCode::no_permission : RefusalCode::meter_failed,
                  "the folder cannot be listed: " + error.message(),
                  denied ? "sudo chmod a+rx " + folder.string() : "look for its driver",
                  folder.string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string kernel_release(const fs::path& root) {
  const auto release = sysfs_text(root / "proc/sys/kernel/osrelease");
  return release ? "Linux " + *release : "Linux";
}

std::string cpu_vendor(const fs::path& root) {
  const auto text = read_file(root / "proc/cpuinfo");
  if (!text) return "unknown";
  if (text->contains("AuthenticAMD")) return "AMD";
  return text->contains("GenuineIntel") ? "Intel" : "unknown";
}

std::string below_root(const fs::path& root, const fs::path& path) {
  const auto below = path.lexically_relative(root);
  return below.empty() || *below.begin() == ".." ? path.string() : "/" + below.string();
}

Result<SourceReading> timed_reading(const std::function<Result<std::int64_t>()>& read) {
  const RealClock clock;
  SourceReading reading;
  reading.before = clock.now();
  HEBE_TRY(reading.raw, read());
  reading.after = clock.now();
  return reading;
}

} // namespace hebe::meter
