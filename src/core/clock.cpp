#include "core/clock.hpp"

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

namespace hebe {
namespace {
std::int64_t read_ns(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}
} // namespace

Instant RealClock::now() const { return Instant(Nanos(read_ns(CLOCK_MONOTONIC))); }
std::int64_t RealClock::wall_us() const { return read_ns(CLOCK_REALTIME) / 1000; }

void RealClock::sleep_until(Instant t) {
  const auto ns = t.time_since_epoch().count();
  timespec ts{ns / 1'000'000'000, ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, nullptr) == EINTR) {
  }
}

Subscription RealClock::every(Nanos period, std::function<void()> task) {
  struct Worker {
    std::mutex mutex;
    std::condition_variable wake;
    bool stop = false;
    std::thread thread;
  };
  auto worker = std::make_shared<Worker>();
  worker->thread = std::thread([worker, period, task = std::move(task)] {
    auto due = std::chrono::steady_clock::now() + period;
    std::unique_lock lock(worker->mutex);
    while (!worker->wake.wait_until(lock, due, [&] { return worker->stop; })) {
      lock.unlock();
      task();
      lock.lock();
      due = std::max(due + period, std::chrono::steady_clock::now());
    }
  });
  return Subscription([worker] {
    {
      std::lock_guard lock(worker->mutex);
      worker->stop = true;
    }
    worker->wake.notify_all();
    worker->thread.join();
  });
}

std::int64_t VirtualClock::wall_us() const {
  return (now_.time_since_epoch() + wall_offset_).count() / 1000;
}

void VirtualClock::sleep_until(Instant t) {
  // A task may itself cost time (a meter call sleeps): it moves now_ but must not start other
  // tasks.
  while (!running_tasks_) {
    auto next = std::min_element(tasks_.begin(), tasks_.end(),
                                 [](const Task& a, const Task& b) { return a.due < b.due; });
    if (next == tasks_.end() || next->due > t) break;
    now_ = std::max(now_, next->due);
    next->due += next->period;
    running_tasks_ = true;
    next->run();
    running_tasks_ = false;
  }
  now_ = std::max(now_, t);
}

Subscription VirtualClock::every(Nanos period, std::function<void()> task) {
  auto it = tasks_.insert(tasks_.end(), Task{now_ + period, period, std::move(task)});
  return Subscription([this, it] { tasks_.erase(it); });
}

} // namespace hebe
