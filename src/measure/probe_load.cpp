#include "measure/probe_load.hpp"

#include "measure/arms.hpp"

#include <algorithm>
#include <cmath>

namespace hebe::measure {

Result<ProbeLoad> ProbeLoad::make(gpu::Device& device, gpu::Kernel& kernel, Seconds fine) {
  ProbeLoad load(device);
  HEBE_TRY(auto small, prepare_arms(device, {&kernel, &kernel}, true, fine));
  HEBE_TRY(auto large, prepare_arms(device, {&kernel, &kernel}, true, Seconds(0.025)));
  load.fine_ = std::move(small.graphs[0]);
  load.fine_time_ = small.replay_time[1]; // the second: by then the clocks are up
  load.coarse_ = std::move(large.graphs[0]);
  load.coarse_time_ = large.replay_time[1];
  return load;
}

Result<Seconds> ProbeLoad::pulse(Seconds length) {
  HEBE_TRY(const auto before, in_flight());
  Pending p{0, before == 0, nullptr, nullptr};
  HEBE_TRY(p.begin, device_->make_event());
  HEBE_TRY(p.end, device_->make_event());
  // Coarse pieces first: thousands of short ones would fill the driver's queue and block the host.
  const auto coarse = std::max(0.0, std::floor(length / coarse_time_ - 1));
  const auto rest = length - coarse * coarse_time_;
  const auto fine = std::max(coarse > 0 ? 0.0 : 1.0, std::round(rest / fine_time_));
  p.enqueued_ns = device_->clock().now().time_since_epoch().count();
  HEBE_CHECK(device_->record(*p.begin));
  for (double i = 0; i < coarse; ++i) HEBE_CHECK(device_->replay(*coarse_));
  for (double i = 0; i < fine; ++i) HEBE_CHECK(device_->replay(*fine_));
  HEBE_CHECK(device_->record(*p.end));
  pending_.push_back(std::move(p));
  return coarse * coarse_time_ + fine * fine_time_;
}

// The edges of the oldest pulse, which has ended. The device's own clock gives lengths; the host's
// gives the instant at which a pulse began on an idle board.
Status ProbeLoad::resolve() {
  auto& p = pending_.front();
  std::int64_t begin = p.enqueued_ns;
  if (!p.from_idle && last_end_) {
    HEBE_TRY(const auto gap, device_->elapsed(*last_end_, *p.begin));
    // A pulse that was queued behind another may still have come when that had ended.
    begin = std::max(begin, done_.back().end_ns + to_nanos(gap).count());
  }
  HEBE_TRY(const auto length, device_->elapsed(*p.begin, *p.end));
  done_.push_back({begin, begin + to_nanos(length).count()});
  last_end_ = std::move(p.end);
  pending_.pop_front();
  return {};
}

Result<std::size_t> ProbeLoad::in_flight() {
  while (!pending_.empty()) {
    HEBE_TRY(const bool over, device_->reached(*pending_.front().end));
    if (!over) break;
    HEBE_CHECK(resolve());
  }
  return pending_.size();
}

Status ProbeLoad::drain() {
  while (!pending_.empty()) {
    HEBE_CHECK(device_->wait(*pending_.front().end));
    HEBE_CHECK(resolve());
  }
  return {};
}

} // namespace hebe::measure
