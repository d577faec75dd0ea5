#include "measure/experiment.hpp"

#include "measure/meter_check.hpp"
#include "measure/replay_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hebe::measure {
namespace {

constexpr Seconds kIdleBefore{
    0.6}; // idle before the first launch: the checks' own work has passed the meter
constexpr Seconds kTrial{3};       // of the warm-up, for the meter's own check
constexpr Seconds kBlock{1};       // an arm's turn in the warm-up
constexpr Seconds kLongestWait{3}; // for the samples behind the last window
constexpr int kMostStarved = 12;   // replays in a row; a pause of the host empties the queue once
constexpr Seconds kSamplesArrive{0.3}; // by then a window's last samples are in the driver's buffer

std::int64_t ns(Instant t) { return t.time_since_epoch().count(); }

} // namespace

namespace {

// The range of the temperature over the last `span`; none: the warm-up is not that old, or nobody
// read it.
std::optional<double> temperature_range(std::span<const WarmUpBlock> blocks, Seconds span) {
  const auto from = blocks.back().end_ns - to_nanos(span).count();
  if (blocks.front().end_ns > from) return std::nullopt;
  std::optional<double> low, high;
  for (const auto& b : blocks) {
    if (b.end_ns < from || !b.temperature_c) continue;
    const auto t = static_cast<double>(*b.temperature_c);
    low = std::min(low.value_or(t), t);
    high = std::max(high.value_or(t), t);
  }
  return low ? std::optional(*high - *low) : std::nullopt;
}

} // namespace

bool has_settled(std::span<const WarmUpBlock> blocks, const Tier& tier) {
  if (blocks.empty()) return false;
  const auto from = blocks.back().end_ns - to_nanos(tier.settle_span).count();
  std::array<std::vector<double>, 2> power;
  std::vector<double> temperature;
  for (const auto& b : blocks) {
    if (b.end_ns < from) continue;
    if (b.power) power[static_cast<std::size_t>(b.arm)].push_back(b.power->value());
    if (b.temperature_c) temperature.push_back(static_cast<double>(*b.temperature_c));
  }
  for (const auto& p : power) {
    if (p.size() < 2) return false; // one block cannot show that it stands still
    const auto [low, high] = std::minmax_element(p.begin(), p.end());
    if (*high / *low - 1 > tier.settle_power) return false;
  }
  // An unknown temperature is stable only where drift is not judged.
  if (temperature.empty()) return !tier.max_job_drift;
  const auto [low, high] = std::minmax_element(temperature.begin(), temperature.end());
  if (*high - *low > tier.settle_temperature.value()) return false;
  if (!tier.still_span || !tier.steady_span) return true;
  const auto still = temperature_range(blocks, *tier.still_span),
             steady = temperature_range(blocks, *tier.steady_span);
  return (still && *still == 0) || (steady && *steady <= tier.settle_temperature.value());
}

namespace {

class Run {
public:
  Run(const Plan& plan, gpu::Device& device, Arms& arms, meter::BoardMeter& meter,
      const Supervision& supervision)
      : plan_(plan), device_(device), arms_(arms), meter_(meter), supervision_(supervision),
        sampler_(meter, device.clock()) {}

  Result<RawRun> execute() {
    const auto started = device_.clock().now();
    HEBE_CHECK(remember_board());
    sampler_.start();
    HEBE_TRY(stream_, ReplayStream::make(device_, {arms_.graphs[0].get(), arms_.graphs[1].get()}));
    HEBE_CHECK(warm_up());
    fix_windows();
    HEBE_CHECK(all_pairs());
    HEBE_CHECK(stream_->drain());
    HEBE_CHECK(board_still_fit());
    sampler_.stop();
    raw_.sampler = sampler_.record();
    raw_.launches_per_replay = arms_.launches_per_replay;
    raw_.replays_per_window = replays_;
    raw_.wall = to_seconds(device_.clock().now() - started);
    return std::move(raw_);
  }

private:
  // --- the board ---------------------------------------------------------------------------------

  Status remember_board() {
    if (auto limit = meter_.power_limit(); limit) raw_.reference.power_limit = *limit;
    if (auto errors = meter_.uncorrected_errors(); errors)
      errors_before_ = *errors;
    else
      ecc_reason_ = errors.error().what;
    const auto xid = meter_.new_xid_events(); // events from before the run are not ours
    raw_.errors = {
        {"ecc", errors_before_ ? Json("none seen") : Json{{"unavailable", ecc_reason_}}},
        {"xid", xid ? Json("none seen") : Json{{"unavailable", xid.error().what}}},
        {"processes", supervision_.own_pids.empty()
                          ? Json{{"unavailable", "the driver does not list even our own process"}}
                          : Json("none but ours")}};
    return {};
  }

  Status board_still_fit() {
    HEBE_TRY(const auto processes, meter_.processes());
    for (const auto& p : processes)
      if (!supervision_.own_pids.contains(p.pid))
        return refuse(RefusalCode::gpu_busy,
                      fmt::format("process {} ({}) began to use the GPU during the run", p.pid,
                                  p.name.empty() ? "name unknown" : p.name),
                      "end it, or wait for it, and run again", meter_.board().uuid);
    if (auto errors = meter_.uncorrected_errors();
        errors && errors_before_ && *errors > *errors_before_)
      return refuse(RefusalCode::device_error,
                    fmt::format("{} uncorrected ECC errors appeared during the run",
                                *errors - *errors_before_),
                    "check the board's health before measuring on it", meter_.board().uuid);
    if (auto xids = meter_.new_xid_events(); xids && !xids->empty())
      return refuse(RefusalCode::device_error,
                    fmt::format("Xid {} was reported during the run", xids->front()),
                    "see dmesg for its meaning", meter_.board().uuid);
    if (auto failure = sampler_.failure()) return std::unexpected(*failure);
    return {};
  }

  // --- replays -----------------------------------------------------------------------------------

  Status fill(int arm) {
    while (!stream_->full()) HEBE_CHECK(stream_->enqueue(arm));
    return {};
  }

  // External work that the host enqueues slower than the GPU runs it has gaps in every replay: they
  // are part of its typical time, so that no gate on idleness sees them.
  Status look_for_starvation() {
    if (!arms_.external) return {};
    HEBE_TRY(const bool dry, stream_->running_dry());
    starved_ = dry ? starved_ + 1 : 0;
    if (starved_ < kMostStarved) return {};
    return refuse(RefusalCode::gate_failed,
                  fmt::format("the host enqueues the work slower than the GPU runs it: {} replays "
                              "in a row found the GPU waiting",
                              starved_),
                  "let a CUDA graph be captured of it, or give it more work a call",
                  meter_.board().uuid);
  }

  // Replays `arm` until `length` of its own device time has passed; what is still queued of another
  // arm completes first. What a replay takes beyond its typical time is idleness (the host came too
  // late): it is no pre-roll, and after a long one the pre-roll begins anew.
  struct Stretch {
    Seconds device{0}, idle{0};
    std::int64_t replays = 0;
    Completion last;
  };
  Result<Stretch> replay_for(int arm, Seconds length) {
    constexpr int kMostRestarts = 3; // a board that has slowed down is for the gates to judge
    const auto typical = arms_.replay_time[static_cast<std::size_t>(arm)];
    Stretch s;
    for (int restarts = 0; s.replays == 0 || s.device < length;) {
      HEBE_CHECK(fill(arm));
      HEBE_CHECK(look_for_starvation());
      HEBE_TRY(s.last, stream_->complete());
      if (s.last.arm != arm) continue;
      const Seconds idle(std::max(0.0, (s.last.since_previous - typical).value()));
      s.idle += idle;
      s.device += s.last.since_previous - idle;
      ++s.replays;
      if (idle > plan_.tier.max_idle && restarts++ < kMostRestarts) s.device = Seconds(0);
    }
    return s;
  }

  // --- warm-up -----------------------------------------------------------------------------------

  Status warm_up() {
    device_.clock().sleep_for(
        to_nanos(kIdleBefore)); // a clean step, from which the meter's lag is read
    const auto begin = device_.clock().now();
    const auto load_begin_ns = ns(begin);
    const Seconds longest(std::max(plan_.tier.max_warm_up.value(), plan_.warm_up.value()));
    meter::Boundary trial_begin;
    bool meter_checked = false;
    for (int arm = 0;; arm = 1 - arm) {
      HEBE_CHECK(supervision_.may_continue());
      const auto block_begin = ns(device_.clock().now());
      HEBE_TRY(const auto stretch, replay_for(arm, kBlock));
      HEBE_TRY(const auto boundary, meter_.read_boundary());
      sampler_.drain_now();
      if (auto failure = sampler_.failure()) return std::unexpected(*failure);
      const auto now = device_.clock().now();
      add_block(arm, stretch, block_begin, boundary);
      raw_.warm_up.duration = to_seconds(now - begin);
      if (raw_.warm_up.blocks.size() == 1) trial_begin = boundary;
      if (!meter_checked && raw_.warm_up.duration > kTrial) {
        HEBE_CHECK(check_the_meter(load_begin_ns, trial_begin, boundary));
        meter_checked = true;
      }
      report("warm-up", raw_.warm_up.duration);
      if (!meter_checked || raw_.warm_up.duration < plan_.warm_up) continue;
      raw_.warm_up.stable = has_settled(raw_.warm_up.blocks, plan_.tier);
      if (raw_.warm_up.stable) break;
      if (raw_.warm_up.duration < longest) continue;
      if (plan_.tier.is_evidence) return not_settled();
      break; // a smoke run reports it
    }
    const auto& blocks = raw_.warm_up.blocks;
    raw_.reference.temperature_c = blocks.back().temperature_c;
    for (const auto& b : blocks)
      raw_.reference.latency[static_cast<std::size_t>(b.arm)] = b.latency;
    return {};
  }

  void add_block(int arm, const Stretch& s, std::int64_t begin_ns,
                 const meter::Boundary& boundary) {
    const auto a = static_cast<std::size_t>(arm);
    arms_.replay_time[a] = (s.device + s.idle) / static_cast<double>(s.replays);
    WarmUpBlock block{arm, ns(s.last.at), arms_.replay_time[a] / arms_.launches_per_replay[a],
                      std::nullopt, std::nullopt};
    if (boundary.temperature_c) block.temperature_c = *boundary.temperature_c;
    // The first part of a block still shows the other arm.
    const auto samples = sampler_.between((begin_ns + block.end_ns) / 2, block.end_ns);
    double sum = 0;
    for (const auto& x : samples) sum += static_cast<double>(x.raw_mw);
    if (!samples.empty()) block.power = Watts(sum * 1e-3 / static_cast<double>(samples.size()));
    raw_.warm_up.blocks.push_back(block);
  }

  Status check_the_meter(std::int64_t load_begin_ns, const meter::Boundary& begin,
                         const meter::Boundary& end) {
    if (plan_.tier.max_job_drift && !end.temperature_c) {
      auto refusal = end.temperature_c.error();
      refusal.what = plan_.tier.name + " judges temperature drift, but " + refusal.what;
      return std::unexpected(std::move(refusal));
    }
    const auto record = sampler_.record();
    HEBE_TRY(raw_.behaviour,
             check_meter({record.samples, load_begin_ns, begin, end, raw_.reference.power_limit}));
    HEBE_CHECK(follow_response());
    pre_roll_ = std::max(pre_roll_for(raw_.behaviour), kSamplesArrive);
    return {};
  }

  // The record says how late the meter is; this run's own step must not say otherwise.
  Status follow_response() {
    auto& b = raw_.behaviour;
    b.response = supervision_.response;
    if (!b.response.record || !b.step_lag ||
        agrees_with_step(*b.response.record, *b.step_lag, b.sample_period))
      return {};
    auto what = disagreement(*b.response.record, *b.step_lag, b.sample_period);
    if (plan_.tier.is_evidence)
      return refuse(RefusalCode::meter_not_qualified, std::move(what),
                    "the meter is not what it was: probe it again with `hebe probe-response`",
                    meter_.board().uuid);
    report("warm-up", raw_.warm_up.duration, what);
    b.response = {std::nullopt, std::move(what)}; // a smoke run goes by its own step
    return {};
  }

  Status not_settled() const {
    const auto& b = raw_.warm_up.blocks.back();
    return refuse(RefusalCode::not_stable,
                  fmt::format("after {:.0f} s of warm-up the board had not settled (last: {} "
                              "W, {} C); {} needs power "
                              "within {} % and temperature within {} C over {} s{}",
                              raw_.warm_up.duration.value(),
                              b.power ? fmt::format("{:.1f}", b.power->value()) : "unknown",
                              b.temperature_c ? std::to_string(*b.temperature_c) : "unknown",
                              plan_.tier.name, 100 * plan_.tier.settle_power,
                              plan_.tier.settle_temperature.value(), plan_.tier.settle_span.value(),
                              plan_.tier.still_span && plan_.tier.steady_span
                                  ? fmt::format(", and then the same degree for {} s, or still "
                                                "within {} C over {} s",
                                                plan_.tier.still_span->value(),
                                                plan_.tier.settle_temperature.value(),
                                                plan_.tier.steady_span->value())
                                  : ""),
                  "let the machine's cooling settle, or warm up longer with --warm-up-seconds",
                  meter_.board().uuid);
  }

  // --- pairs -------------------------------------------------------------------------------------

  // One replay more than the warm-up's latency asks for: noise must not make a window too short.
  // A little longer than asked: a board that speeds up by a percent must not make windows too
  // short.
  void fix_windows() {
    constexpr double kReserve = 1.02;
    for (std::size_t a = 0; a < 2; ++a)
      replays_[a] = std::max<std::int64_t>(
          static_cast<std::int64_t>(ReplayStream::kDepth) + 1,
          std::llround(std::ceil(kReserve * (plan_.window / arms_.replay_time[a]))));
    if (plan_.cubins[0] == plan_.cubins[1])
      replays_[0] = replays_[1] = std::max(replays_[0], replays_[1]);
  }

  struct Turn {
    int pair, attempt;
  };

  static int arm_at(PairOrder order, int position) {
    return (order == PairOrder::ab) == (position == 0) ? 0 : 1;
  }

  Status all_pairs() {
    for (int i = 0; i < plan_.pairs; ++i) turns_.push_back({i, 1});
    for (std::size_t t = 0; t < turns_.size(); ++t) { // turns_ grows with retries
      const auto turn = turns_[t];
      const auto order = plan_.order[static_cast<std::size_t>(turn.pair)];
      const int first = arm_at(order, 0), second = arm_at(order, 1);
      const int after = t + 1 < turns_.size()
                            ? arm_at(plan_.order[static_cast<std::size_t>(turns_[t + 1].pair)], 0)
                            : second;
      HEBE_CHECK(one_window(turn, 0, first, second));
      HEBE_CHECK(one_window(turn, 1, second, after));
      report("pairs", Seconds(0));
      if (t + 1 < turns_.size()) continue;
      // The last one: its samples are awaited with the GPU busy, as a retry may follow.
      const auto end_ns = raw_.windows.back().reading.end_ns;
      for (Seconds waited{0}; waited < kLongestWait; waited += kSamplesArrive) {
        HEBE_CHECK(replay_for(after, kSamplesArrive));
        sampler_.drain_now();
        if (!sampler_.between(end_ns, std::numeric_limits<std::int64_t>::max()).empty()) break;
      }
      HEBE_CHECK(judge_finished());
    }
    return {};
  }

  Status one_window(Turn turn, int position, int arm, int next_arm) {
    const auto a = static_cast<std::size_t>(arm);
    HEBE_CHECK(supervision_.may_continue());
    if (position == 0) HEBE_CHECK(board_still_fit());
    Window w;
    auto& r = w.reading;
    r.index = static_cast<std::int64_t>(raw_.windows.size());
    r.pair = turn.pair;
    r.attempt = turn.attempt;
    r.position = position;
    r.arm = arm;
    r.launches_per_replay = arms_.launches_per_replay[a];
    r.replays = replays_[a];
    const auto phase = raw_.behaviour.counter_period * start_phase(plan_, r.index);
    HEBE_TRY(const auto before, replay_for(arm, pre_roll_ + phase));
    r.pre_roll = before.device;
    r.idle_before = before.idle;
    r.begin_ns = ns(before.last.at);
    HEBE_TRY(r.begin, meter_.read_boundary());

    // Every replay in flight is of this arm and belongs to the window.
    auto to_enqueue = r.replays - static_cast<std::int64_t>(stream_->in_flight());
    double sum = 0, squares = 0;
    Completion last;
    for (std::int64_t i = 0; i < r.replays; ++i) {
      for (; !stream_->full(); --to_enqueue)
        HEBE_CHECK(stream_->enqueue(to_enqueue > 0 ? arm : next_arm));
      HEBE_CHECK(look_for_starvation());
      HEBE_TRY(last, stream_->complete());
      const double t = last.since_previous.value();
      sum += t;
      squares += t * t;
    }
    r.end_ns = ns(last.at);
    HEBE_TRY(r.end, meter_.read_boundary());
    const auto n = static_cast<double>(r.replays);
    r.elapsed = Seconds(sum);
    r.replay_cv = std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))) / (sum / n);
    raw_.windows.push_back(std::move(w));
    // The previous pair's samples have long arrived; this window's have not.
    if (position == 0) return judge_finished();
    return {};
  }

  // Judges every finished pair that has not been judged; a failed one gets another turn at the end.
  Status judge_finished() {
    sampler_.drain_now();
    if (auto failure = sampler_.failure()) return std::unexpected(*failure);
    for (; judged_ + 1 < raw_.windows.size(); judged_ += 2) {
      auto &first = raw_.windows[judged_], &second = raw_.windows[judged_ + 1];
      for (auto* w : {&first, &second}) judge(*w);
      second.gates.push_back(judge_pair_drift(first.reading, second.reading, plan_.tier));
      const bool passed = first.passed() && second.passed();
      first.pair_accepted = second.pair_accepted = passed;
      if (!passed) HEBE_CHECK(retry_or_give_up(first, second));
    }
    return {};
  }

  // The counter's updates are found from the whole run: until then a window is held to what two
  // reads of a cached counter can promise. analysis.cpp judges by the updates.
  void judge(Window& w) {
    const auto& r = w.reading;
    const auto margin = to_nanos(Seconds(1)).count();
    const auto samples = sampler_.between(r.begin_ns - margin, r.end_ns + margin);
    w.estimate = estimate_window(r, samples, raw_.behaviour);
    const bool jumped = sampler_.jumped_in(r.begin_ns, r.end_ns + margin / 2);
    w.gates = judge_window(r, w.estimate, plan_.tier, raw_.behaviour, raw_.reference, jumped);
  }

  Status retry_or_give_up(const Window& first, const Window& second) {
    const auto& r = first.reading;
    const GateResult* failed = nullptr;
    for (const auto* w : {&first, &second})
      for (const auto& g : w->gates)
        if (!g.passed && failed == nullptr) failed = &g;
    const auto reason =
        fmt::format("pair {} attempt {}: {} = {}, limit {}", r.pair + 1, r.attempt, failed->name,
                    failed->value ? fmt::format("{:.6g}", *failed->value) : "unknown",
                    failed->limit ? fmt::format("{:.6g}", *failed->limit) : "none");
    report("pairs", Seconds(0), reason);
    if (r.attempt >= plan_.tier.max_attempts)
      return refuse(
          failed->code, reason + "; no attempt passed",
          failed->code == RefusalCode::not_stable
              ? "let the board reach its temperature first: warm up longer with --warm-up-seconds"
              : "the record would not be evidence: see `hebe doctor` for the board's state",
          meter_.board().uuid);
    turns_.push_back({r.pair, r.attempt + 1});
    return {};
  }

  // --- telling -----------------------------------------------------------------------------------

  void report(const char* stage, Seconds warmed, std::string text = {}) const {
    if (!supervision_.progress) return;
    const double pair_s = 2 * (plan_.window.value() + pre_roll_.value() + 0.05);
    const double warm_left =
        std::max(0.0, stage[0] == 'w' ? (plan_.warm_up - warmed).value() : 0.0);
    const double turns = turns_.empty() ? plan_.pairs : static_cast<double>(turns_.size());
    const double left = warm_left + pair_s * (turns - static_cast<double>(raw_.windows.size()) / 2);
    const double all =
        std::max(plan_.warm_up.value(), raw_.warm_up.duration.value()) + pair_s * turns;
    supervision_.progress(
        {stage, std::clamp(1 - left / all, 0.0, 1.0), Seconds(left), std::move(text)});
  }

  const Plan& plan_;
  gpu::Device& device_;
  Arms& arms_;
  meter::BoardMeter& meter_;
  const Supervision& supervision_;
  meter::PowerSampler sampler_;
  std::optional<ReplayStream> stream_;
  RawRun raw_;
  std::array<std::int64_t, 2> replays_{};
  Seconds pre_roll_ = kSamplesArrive;
  std::vector<Turn> turns_;
  std::string ecc_reason_;
  std::optional<std::int64_t> errors_before_;
  std::size_t judged_ = 0;
  int starved_ = 0; // replays in a row
};

} // namespace

Result<RawRun> run_experiment(const Plan& plan, gpu::Device& device, Arms& arms,
                              meter::BoardMeter& meter, const Supervision& supervision) {
  return Run(plan, device, arms, meter, supervision).execute();
}

} // namespace hebe::measure
