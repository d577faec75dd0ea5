// Keeps the GPU busy. In: which arm to replay next; out: one completion after another, each with
// its time on the device and on the host. Invariant: a fixed number of graphs is always queued, so
// neither the GPU starves nor does the host block at the driver's launch queue.
#pragma once

#include "gpu/device.hpp"
#include "measure/idleness.hpp"

#include <array>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hebe::measure {

struct Completion {
  int arm = 0;
  Seconds since_previous{0}; ///< device time from the previous completion (0 for the very first)
  Instant at;                ///< host time at which it was seen
};

/// Replays of one arm on end. What a replay takes beyond its usual time is idleness, and no device
/// time.
struct Stretch {
  Seconds device{0}, idle{0};
  std::int64_t replays = 0;
  std::vector<double> times; ///< of all replays, s, those before a restart too
  std::size_t from = 0;      ///< of the last restart
  bool fed = true;           ///< at every look more than the newest replay was left to do
  bool ran_dry = false;      ///< a look found the GPU with nothing to do
  Completion last;
};

/// A fixed number of replays, each timed by the device.
struct TimedReplays {
  Seconds elapsed{0};
  double cv = 0; ///< of the replays' own times
  Completion last;
};

class ReplayStream {
public:
  /// Graphs in flight. At about 25 ms each they outlast every pause of the host by far.
  static constexpr std::size_t kDepth = 6;

  [[nodiscard]] static Result<ReplayStream> make(gpu::Device& device,
                                                 std::array<gpu::Graph*, 2> graphs);

  [[nodiscard]] Status enqueue(int arm);
  [[nodiscard]] std::size_t in_flight() const { return queue_.size(); }
  [[nodiscard]] bool full() const { return queue_.size() >= kDepth; }
  /// Waits for the oldest replay. Something must be in flight.
  [[nodiscard]] Result<Completion> complete();
  /// Replays `arm` until `length` of its own device time has passed; what is still queued of
  /// another arm completes first. After an idleness of more than `max_idle` the stretch begins
  /// anew. Idle is as count_idle() says, with no power limit.
  [[nodiscard]] Result<Stretch> replay_for(int arm, Seconds length, Seconds typical,
                                           Seconds max_idle);
  /// Every replay in flight is of `arm` and belongs to them; `next_arm` is queued behind.
  [[nodiscard]] Result<TimedReplays> time_replays(int arm, int next_arm, std::int64_t replays);
  /// Whether the device has come to the end of what is queued: it then waits for the host. Asked
  /// before complete(), with the queue full, as soon as the last replay is enqueued. `one_call` is
  /// the device time of one of its calls: that a replay alone is left says nothing, as the driver's
  /// queue is bounded by launches and may hold less than one; that no call is left does.
  [[nodiscard]] Result<bool> running_dry(Seconds one_call);
  /// For work that somebody else's code enqueues: where the host is slower than the GPU for many
  /// replays in a row, replay_for and time_replays refuse (gate_failed). `board` is named in it;
  /// `one_call` by arm.
  void refuse_starvation(std::string board, std::array<Seconds, 2> one_call) {
    starving_ = std::move(board);
    one_call_ = one_call;
  }
  /// Waits for all; the GPU idles afterwards.
  [[nodiscard]] Status drain();

private:
  explicit ReplayStream(gpu::Device& device) : device_(&device) {}
  gpu::Device* device_;
  std::array<gpu::Graph*, 2> graphs_{};
  std::vector<std::unique_ptr<gpu::Event>> events_;
  std::vector<gpu::Event*> free_;
  struct InFlight {
    int arm;
    gpu::Event* done;
  };
  std::deque<InFlight> queue_;
  gpu::Event* previous_ = nullptr;

  [[nodiscard]] Result<bool> look_for_starvation(); ///< whether the GPU has run out of calls
  [[nodiscard]] Result<bool> has_run_dry();
  std::optional<std::string> starving_; ///< the board, where it is looked for
  std::array<Seconds, 2> one_call_{};
  int starved_ = 0; ///< replays in a row
};

} // namespace hebe::measure
