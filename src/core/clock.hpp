// Time. Two clocks with one interface: the host's real one, and the simulated device's virtual one,
// which moves only when somebody waits. Invariant: now() never goes back; wall time is a label that
// may.
#pragma once

#include "core/units.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>

namespace hebe {

/// Host monotonic time (CLOCK_MONOTONIC), nanoseconds.
struct HostTime {
  using duration = Nanos;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<HostTime>;
  static constexpr bool is_steady = true;
};
using Instant = HostTime::time_point;

/// Something that stops when it is destroyed (a periodic task, joined on destruction).
class Subscription {
public:
  Subscription() = default;
  explicit Subscription(std::function<void()> stop) : stop_(std::move(stop)) {}
  Subscription(Subscription&& o) noexcept : stop_(std::exchange(o.stop_, nullptr)) {}
  Subscription& operator=(Subscription&& o) noexcept {
    if (this != &o) cancel(), stop_ = std::exchange(o.stop_, nullptr);
    return *this;
  }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription() { cancel(); }
  void cancel() {
    if (auto stop = std::exchange(stop_, nullptr)) stop();
  }

private:
  std::function<void()> stop_;
};

class Clock {
public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  /// Wall time (CLOCK_REALTIME), microseconds since 1970. For labels and for aligning meters that
  /// stamp their samples with it; never for durations.
  [[nodiscard]] virtual std::int64_t wall_us() const = 0;
  virtual void sleep_until(Instant t) = 0;
  /// Runs `task` every `period` until the subscription ends. On the real clock it runs on a thread
  /// of its own; on a virtual clock inside whoever moves time, so that runs are reproducible.
  [[nodiscard]] virtual Subscription every(Nanos period, std::function<void()> task) = 0;
  [[nodiscard]] virtual bool is_virtual() const = 0;

  void sleep_for(Nanos d) { sleep_until(now() + d); }
};

class RealClock final : public Clock {
public:
  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::int64_t wall_us() const override;
  void sleep_until(Instant t) override;
  [[nodiscard]] Subscription every(Nanos period, std::function<void()> task) override;
  [[nodiscard]] bool is_virtual() const override { return false; }
};

/// Starts at a fixed instant; sleeping advances it at once and runs the tasks that fall due, in
/// order. Single-threaded by design.
class VirtualClock final : public Clock {
public:
  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] std::int64_t wall_us() const override;
  void sleep_until(Instant t) override;
  [[nodiscard]] Subscription every(Nanos period, std::function<void()> task) override;
  [[nodiscard]] bool is_virtual() const override { return true; }
  /// Moves the wall clock, not the monotonic one: what an NTP step does.
  void jump_wall(Nanos by) { wall_offset_ += by; }

private:
  struct Task {
    Instant due;
    Nanos period;
    std::function<void()> run;
  };
  // The epoch is arbitrary and fixed: equal seeds must give equal records.
  Instant now_{std::chrono::seconds(1'000)};
  Nanos wall_offset_{std::chrono::seconds(946'684'800)}; // 2000-01-01T00:00:00Z
  std::list<Task> tasks_;
  bool running_tasks_ = false;
};

} // namespace hebe
