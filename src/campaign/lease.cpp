#include "campaign/lease.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::campaign {
namespace {

constexpr std::uint64_t kLargestLease = 1 << 16;

bool same_file(int fd, const std::filesystem::path& path) {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// Somebody who only looks (leases_in) holds the lock shared for microseconds: that must not refuse
// a job. errno as flock left it.
bool lock_or_wait_out_a_look(int fd) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return false;
    ::usleep(5000);
  }
  errno = EWOULDBLOCK;
  return false;
}

// Users of one machine share its leases: the file is writable for all, and a link or a pipe planted
// in its place is refused. Without O_CREAT first: the kernel may forbid it on another's file in a
// sticky folder (fs.protected_regular).
Result<FileDescriptor> open_for_everybody(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  FileDescriptor fd(::open(path.c_str(), kFlags));
  if (!fd && errno == ENOENT) {
    fd = FileDescriptor(::open(path.c_str(), kFlags | O_CREAT, 0666));
    if (fd) (void)::fchmod(fd.get(), 0666); // whatever the umask; not ours: its owner did
  }
  if (!fd) return std::unexpected(io_refusal(errno, "open", path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return refuse(RefusalCode::unsafe_path, "the lease is not a file", "remove it", path.string());
  return fd;
}

std::unexpected<Refusal> held_by_other(const std::filesystem::path& path) {
  std::string who = "another process";
  const auto text = read_record(path, kLargestLease);
  const auto j = text ? parse_json(text->bytes, path.string()) : Result<Json>(nullptr);
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
    HEBE_TRY(lease.fd_, open_for_everybody(lease.path_));
    if (!lock_or_wait_out_a_look(lease.fd_.get())) {
      if (errno == EWOULDBLOCK) return held_by_other(lease.path_);
      return std::unexpected(io_refusal(errno, "lock", lease.path_));
    }
    if (!same_file(lease.fd_.get(), lease.path_)) continue;
    lease.text_ = {{"pid", ::getpid()}, {"host", host}, {"since", since}};
    HEBE_CHECK(lease.describe(what));
    return lease;
  }
  return refuse(RefusalCode::lease_lost, "the lease file keeps vanishing", "see what removes it",
                lease.path_.string());
}

Status Lease::describe(const std::string& what) {
  text_["what"] = what;
  // Padded to one size and written at once: who looks meanwhile sees the old text or the new one.
  constexpr std::size_t kSize = 1024;
  auto text = text_.dump();
  text.resize(std::max(kSize, text.size() + 1), ' ');
  text.back() = '\n';
  if (::pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(fd_.get(), static_cast<off_t>(text.size())) != 0)
    return std::unexpected(io_refusal(errno, "write", path_));
  return {};
}

std::vector<LeaseView> leases_in(const std::filesystem::path& folder) {
  std::vector<LeaseView> out;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    if (entry.path().extension() != ".lease") continue;
    LeaseView view{entry.path().stem().string(), false, nullptr};
    const FileDescriptor fd(
        ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    view.held = ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
    if (const auto text = read_record(entry.path(), kLargestLease))
      if (auto said = parse_json(text->bytes, entry.path().string()); said && said->is_object())
        view.holder = std::move(*said);
    out.push_back(std::move(view));
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.uuid < b.uuid; });
  return out;
}

Status Lease::still_held() const {
  if (same_file(fd_.get(), path_)) return {};
  return refuse(RefusalCode::lease_lost, "the lease file was removed or replaced while it was held",
                "nothing but Hebe may touch the leases folder; run again", path_.string());
}

} // namespace hebe::campaign
