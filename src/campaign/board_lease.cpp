#include "campaign/board_lease.hpp"

#include "evidence/sealed_run.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace hebe::campaign {

std::string utc_text(std::int64_t wall_us) {
  return evidence::utc_stamp("%Y-%m-%dT%H:%M:%SZ", wall_us);
}

std::string host_name() {
  char host[256] = "unknown host";
  ::gethostname(host, sizeof host - 1);
  return host;
}

Result<BoardLease> BoardLease::acquire(const evidence::DataRoot& root, const Machine& machine,
                                       const std::string& what) {
  const auto since = utc_text(RealClock().wall_us());
  const auto& uuid = machine.info().uuid;
  HEBE_CHECK(check_inside(root.path(), root.leases() / (uuid + ".lease")));
  HEBE_TRY(auto in_root, Lease::acquire(root.leases(), uuid, host_name(), since, what));
  BoardLease lease(std::move(in_root));
  if (!machine.simulated()) {
    HEBE_TRY(lease.machine_wide_,
             Lease::acquire(machine_wide_leases(), uuid, host_name(), since, what));
  }
  return lease;
}

Status BoardLease::still_held(const Machine& machine) const {
  if (const auto* board = machine.sim_board();
      board && board->active(gpu::FaultKind::lease_removed, machine.clock().now())) {
    std::error_code ignored;
    std::filesystem::remove(in_root_.path(), ignored);
  }
  HEBE_CHECK(in_root_.still_held());
  return machine_wide_ ? machine_wide_->still_held() : Status{};
}

std::string BoardLease::identity() const {
  const auto& who = in_root_.holder();
  return fmt::format("process {} since {}", who.at("pid").get<std::int64_t>(),
                     who.at("since").get<std::string>());
}

Status BoardLease::describe(const std::string& what) {
  HEBE_CHECK(in_root_.describe(what));
  return machine_wide_ ? machine_wide_->describe(what) : Status{};
}

} // namespace hebe::campaign
