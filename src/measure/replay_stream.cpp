#include "measure/replay_stream.hpp"

namespace hebe::measure {

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

Result<bool> ReplayStream::running_dry() {
  if (queue_.size() < 3) return false;
  return device_->reached(*queue_[queue_.size() - 2].done);
}

Status ReplayStream::drain() {
  while (!queue_.empty()) HEBE_CHECK(complete());
  if (previous_ != nullptr) free_.push_back(std::exchange(previous_, nullptr));
  return {};
}

} // namespace hebe::measure
