#include "measure/replay_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace hebe::measure {
namespace {
constexpr int kMostStarved = 12; // replays in a row: a pause of the host empties the queue once
} // namespace

Result<ReplayStream> ReplayStream::make(gpu::Device& device, std::array<gpu::Graph*, 2> graphs) {
  ReplayStream s(device);
  s.graphs_ = graphs;
  for (std::size_t i = 0; i < kDepth + 2; ++i) {
    HEBE_TRY(auto event, device.make_event());
    s.free_.push_back(event.get());
    s.events_.push_back(std::move(event));
  }
  return s;
}

Status ReplayStream::enqueue(int arm) {
  HEBE_CHECK(device_->replay(*graphs_[static_cast<std::size_t>(arm)]));
  auto* event = free_.back();
  free_.pop_back();
  HEBE_CHECK(device_->record(*event));
  queue_.push_back({arm, event});
  return {};
}

Result<Completion> ReplayStream::complete() {
  const auto oldest = queue_.front();
  HEBE_CHECK(device_->wait(*oldest.done));
  Completion c{oldest.arm, Seconds(0), device_->clock().now()};
  if (previous_ != nullptr) {
    HEBE_TRY(c.since_previous, device_->elapsed(*previous_, *oldest.done));
    free_.push_back(previous_);
  }
  previous_ = oldest.done;
  queue_.pop_front();
  return c;
}

Result<bool> ReplayStream::running_dry(Seconds one_call) {
  constexpr double kLonger = 1.5; // than a call: clocks and noise
  constexpr Seconds kSeen{50e-6}; // until the end of one is seen
  if (queue_.size() < 3) return false;
  HEBE_TRY(const bool last_is_left, device_->reached(*queue_[queue_.size() - 2].done));
  if (!last_is_left) return false;
  device_->clock().sleep_for(to_nanos(one_call * kLonger + kSeen));
  return device_->reached(*queue_.back().done);
}

// Work that the host enqueues slower than the GPU runs it has gaps in every replay: they are part
// of its typical time, so that no gate on idleness sees them.
Result<bool> ReplayStream::look_for_starvation() {
  if (!starving_) return false;
  const auto arm = static_cast<std::size_t>(queue_.back().arm);
  HEBE_TRY(const bool dry, running_dry(one_call_[arm]));
  starved_ = dry ? starved_ + 1 : 0;
  if (starved_ < kMostStarved) return dry;
  return refuse(RefusalCode::gate_failed,
                fmt::format("the host enqueues the work slower than the GPU runs it: {} replays "
                            "in a row found the GPU waiting",
                            starved_),
                "let a CUDA graph be captured of it, or give it more work a call", *starving_);
}

// Asked before a replay is enqueued. That the newest alone is left says nothing (running_dry); that
// it is done says that the GPU has waited since. A graph's first launches reach the GPU at once.
Result<bool> ReplayStream::has_run_dry() {
  if (queue_.empty()) return previous_ != nullptr;
  return device_->reached(*queue_.back().done);
}

Result<Stretch> ReplayStream::replay_for(int arm, Seconds length, Seconds typical,
                                         Seconds max_idle) {
  constexpr int kMostRestarts = 3; // a board that has slowed down is for the gates to judge
  Stretch s;
  for (int restarts = 0; s.replays == 0 || s.device < length;) {
    while (!full()) {
      HEBE_TRY(const bool dry, has_run_dry());
      s.ran_dry = s.ran_dry || dry;
      HEBE_CHECK(enqueue(arm));
    }
    HEBE_TRY(const bool starved, look_for_starvation());
    s.ran_dry = s.ran_dry || starved;
    // All but the newest done: it came late, or its driver's queue holds little (running_dry).
    if (s.fed) {
      HEBE_TRY(const bool newest_left, device_->reached(*queue_[queue_.size() - 2].done));
      s.fed = !newest_left;
    }
    HEBE_TRY(s.last, complete());
    if (s.last.arm != arm) continue;
    const auto idle = s.last.since_previous - typical;
    s.device += std::min(s.last.since_previous, typical);
    ++s.replays;
    s.times.push_back(s.last.since_previous.value());
    if (idle > max_idle && restarts++ < kMostRestarts) {
      s.device = Seconds(0);
      s.from = s.times.size();
    }
  }
  count_idle(s, typical, {});
  return s;
}

Result<TimedReplays> ReplayStream::time_replays(int arm, int next_arm, std::int64_t replays) {
  auto to_enqueue = replays - static_cast<std::int64_t>(in_flight());
  double sum = 0, squares = 0;
  TimedReplays out;
  for (std::int64_t i = 0; i < replays; ++i) {
    for (; !full(); --to_enqueue) HEBE_CHECK(enqueue(to_enqueue > 0 ? arm : next_arm));
    HEBE_CHECK(look_for_starvation());
    HEBE_TRY(out.last, complete());
    const double t = out.last.since_previous.value();
    sum += t;
    squares += t * t;
  }
  const auto n = static_cast<double>(replays);
  out.elapsed = Seconds(sum);
  out.cv = std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))) / (sum / n);
  return out;
}

Status ReplayStream::drain() {
  while (!queue_.empty()) HEBE_CHECK(complete());
  if (previous_ != nullptr) free_.push_back(std::exchange(previous_, nullptr));
  return {};
}

} // namespace hebe::measure
