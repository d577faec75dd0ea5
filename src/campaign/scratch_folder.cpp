#include "campaign/scratch_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "hebe-job-", kUnnamed = "hebe-new-";
constexpr std::size_t kRandom = 6; // as mkdtemp has them

FileDescriptor opened(const fs::path& folder) {
  return FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// The process in "hebe-job-<pid>-<random>"; none: not such a name.
std::optional<pid_t> owner_in(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  pid_t pid = 0;
  const char *from = name.data() + kPrefix.size(), *end = name.data() + name.size();
  const auto read = std::from_chars(from, end, pid);
  const bool whole = read.ec == std::errc() && read.ptr != end && *read.ptr == '-' &&
                     static_cast<std::size_t>(end - read.ptr) == 1 + kRandom;
  return whole && pid > 0 ? std::optional(pid) : std::nullopt;
}

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

} // namespace

void remove_abandoned_scratch(const fs::path& parent) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(parent, ec)) {
    const auto pid = owner_in(entry.path().filename().string());
    if (!pid || !is_gone(*pid)) continue;
    const auto folder = opened(entry.path());
    struct stat found {};
    if (!folder || ::fstat(folder.get(), &found) != 0 || found.st_uid != ::geteuid()) continue;
    // A process that this PID namespace does not show may still live; one that lives holds it.
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

Result<ScratchFolder> ScratchFolder::make(const fs::path& parent) {
  remove_abandoned_scratch(parent);
  auto name = (parent / (std::string(kUnnamed) + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    return std::unexpected(io_refusal(errno, "create directory", name));
  // Locked before it has a name that others look at. Where a file system has no locks, nobody gets
  // one either, and it is not taken for abandoned.
  auto lock = opened(name);
  if (lock) (void)::flock(lock.get(), LOCK_EX | LOCK_NB);
  const auto path =
      parent / fmt::format("{}{}-{}", kPrefix, ::getpid(), name.substr(name.size() - kRandom));
  std::error_code ec;
  fs::rename(name, path, ec);
  if (ec) {
    ::rmdir(name.c_str());
    return std::unexpected(io_refusal(ec.value(), "rename", path));
  }
  return ScratchFolder(path, std::move(lock));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

} // namespace hebe::campaign
