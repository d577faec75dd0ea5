#include "campaign/lease.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::campaign {
namespace {

bool same_file(int fd, const std::filesystem::path& path) {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

std::unexpected<Refusal> held_by_other(const std::filesystem::path& path) {
  std::string who = "another process";
  const auto text = read_file(path);
  const auto j = text ? parse_json(*text, path.string()) : Result<Json>(nullptr);
  if (j && j->is_object()) {
    const auto said = [&](const char* name) { // by whoever wrote the file: of any type
      const auto hit = j->find(name);
      if (hit == j->end()) return std::string("?");
      return hit->is_string() ? hit->get<std::string>() : hit->dump();
    };
    who = fmt::format("process {} on {} since {} for {}", said("pid"), said("host"), said("since"),
                      said("what"));
  }
  return refuse(RefusalCode::lease_held, "the GPU is leased to " + who,
                "wait for it to end, or choose another --device", path.string());
}

} // namespace

std::filesystem::path machine_wide_leases() {
  std::error_code ec;
  // /run/lock exists on every systemd machine; elsewhere /tmp is the one place that all users
  // share.
  for (const char* shared : {"/run/lock", "/tmp"})
    if (::access(shared, W_OK) == 0) {
      const auto folder = std::filesystem::path(shared) / "hebe";
      std::filesystem::create_directory(folder, ec);
      ::chmod(folder.c_str(), 01777); // fails, rightly, where another user made it so already
      return folder;
    }
  return "/tmp/hebe";
}

Result<Lease> Lease::acquire(const std::filesystem::path& folder, const std::string& uuid,
                             const std::string& host, const std::string& since,
                             const std::string& what) {
  HEBE_CHECK(make_directories(folder));
  Lease lease;
  lease.path_ = folder / (uuid + ".lease");
  // The file is never deleted by us: deleting and locking race. One that vanished in between is
  // made anew.
  for (int attempt = 0; attempt < 5; ++attempt) {
    lease.fd_ = FileDescriptor(::open(lease.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!lease.fd_) return std::unexpected(io_refusal(errno, "open", lease.path_));
    if (::flock(lease.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return held_by_other(lease.path_);
      return std::unexpected(io_refusal(errno, "lock", lease.path_));
    }
    if (!same_file(lease.fd_.get(), lease.path_)) continue;
    const std::string text =
        Json{{"pid", ::getpid()}, {"host", host}, {"since", since}, {"what", what}}.dump() + "\n";
    if (::ftruncate(lease.fd_.get(), 0) != 0 ||
        ::pwrite(lease.fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      return std::unexpected(io_refusal(errno, "write", lease.path_));
    return lease;
  }
  return refuse(RefusalCode::lease_lost, "the lease file keeps vanishing", "see what removes it",
                lease.path_.string());
}

Status Lease::still_held() const {
  if (same_file(fd_.get(), path_)) return {};
  return refuse(RefusalCode::lease_lost, "the lease file was removed or replaced while it was held",
                "nothing but Hebe may touch the leases folder; run again", path_.string());
}

} // namespace hebe::campaign
