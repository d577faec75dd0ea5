// The exclusive right to one GPU. In: a board's UUID; out: a lock held by this process until it
// dies. Invariant: the kernel releases it (flock), so it is never stale; the file only says who
// holds it.
#pragma once

#include "core/files.hpp"
#include "core/json.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace hebe::campaign {

class Lease {
public:
  /// `since` and `what` are for people. lease_held names the holder's pid, since when and what for.
  [[nodiscard]] static Result<Lease> acquire(const std::filesystem::path& folder,
                                             const std::string& uuid, const std::string& host,
                                             const std::string& since, const std::string& what);
  Lease(Lease&&) = default;
  Lease& operator=(Lease&&) = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() = default; ///< closing the descriptor releases it

  /// lease_lost when somebody removed or replaced the file: another process could hold "the" lease
  /// now.
  [[nodiscard]] Status still_held() const;
  /// Another purpose, for those who look.
  [[nodiscard]] Status describe(const std::string& what);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// {"pid", "host", "since", "what"}
  [[nodiscard]] const Json& holder() const { return text_; }

private:
  Lease() = default;
  FileDescriptor fd_;
  std::filesystem::path path_;
  Json text_;
};

/// What a lease file says, and whether anybody holds it now.
struct LeaseView {
  std::string uuid;
  bool held = false;
  Json holder; ///< {"pid", "host", "since", "what"}: the present or the last one; null: unreadable
};
/// Looks without taking: a lock that is tried shared, for an instant, which `acquire` waits out.
[[nodiscard]] std::vector<LeaseView> leases_in(const std::filesystem::path& folder);

/// One folder for all users and data roots of this machine (sticky, world-writable).
[[nodiscard]] std::filesystem::path machine_wide_leases();

} // namespace hebe::campaign
