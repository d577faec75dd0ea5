#include "measure/board_watch.hpp"

#include <fmt/format.h>

namespace hebe::measure {

void BoardWatch::remember(const std::set<std::int64_t>& own_pids) {
  if (auto limit = meter_.power_limit(); limit) power_limit_ = *limit;
  std::string no_ecc;
  if (auto errors = meter_.uncorrected_errors(); errors)
    errors_before_ = *errors;
  else
    no_ecc = errors.error().what;
  const auto xid = meter_.new_xid_events(); // events from before the run are not ours
  watched_ = {
      {"ecc", errors_before_ ? Json("none seen") : Json{{"unavailable", no_ecc}}},
      {"xid", xid ? Json("none seen") : Json{{"unavailable", xid.error().what}}},
      {"processes", own_pids.empty()
                        ? Json{{"unavailable", "the driver does not list even our own process"}}
                        : Json("none but ours")}};
}

Status BoardWatch::still_fit(const std::set<std::int64_t>& own_pids) {
  HEBE_TRY(const auto processes, meter_.processes());
  for (const auto& p : processes)
    if (!own_pids.contains(p.pid))
      return refuse(RefusalCode::gpu_busy,
                    fmt::format("process {} ({}) began to use the GPU during the run", p.pid,
                                p.name.empty() ? "name unknown" : p.name),
                    "end it, or wait for it, and run again", meter_.board().uuid);
  if (auto errors = meter_.uncorrected_errors();
      errors && errors_before_ && *errors > *errors_before_)
    return refuse(
        RefusalCode::device_error,
        fmt::format("{} uncorrected ECC errors appeared during the run", *errors - *errors_before_),
        "check the board's health before measuring on it", meter_.board().uuid);
  if (auto xids = meter_.new_xid_events(); xids && !xids->empty())
    return refuse(RefusalCode::device_error,
                  fmt::format("Xid {} was reported during the run", xids->front()),
                  "see dmesg for its meaning", meter_.board().uuid);
  return {};
}

} // namespace hebe::measure
