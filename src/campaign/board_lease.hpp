// The right to one board, in this data root and on this machine. In: an open machine and what it is
// for; out: locks held until this goes. Invariant: two processes never hold one board, not even
// with two data roots; the data root's file is for people to see.
#pragma once

#include "campaign/lease.hpp"
#include "campaign/machine.hpp"
#include "evidence/data_root.hpp"

#include <optional>

namespace hebe::campaign {

class BoardLease {
public:
  [[nodiscard]] static Result<BoardLease> acquire(const evidence::DataRoot& root,
                                                  const Machine& machine, const std::string& what);
  /// Checked before every window: lease_lost when a file was removed or replaced. Also where the
  /// simulated board's fault removes it.
  [[nodiscard]] Status still_held(const Machine& machine) const;
  /// One text for one holding, from acquisition to release: what jobs measured under one lease have
  /// in common.
  [[nodiscard]] std::string identity() const;
  /// What the holder does now, for those who look.
  [[nodiscard]] Status describe(const std::string& what);

private:
  explicit BoardLease(Lease in_root) : in_root_(std::move(in_root)) {}
  Lease in_root_;
  std::optional<Lease> machine_wide_;
};

/// ISO 8601, UTC, to the second.
[[nodiscard]] std::string utc_text(std::int64_t wall_us);
[[nodiscard]] std::string host_name();

} // namespace hebe::campaign
