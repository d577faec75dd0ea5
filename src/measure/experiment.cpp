#include "measure/experiment.hpp"

#include "measure/board_watch.hpp"
#include "measure/meter_check.hpp"
#include "measure/replay_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace hebe::measure {
namespace {

constexpr Seconds kIdleBefore{
    0.6}; // idle before the first launch: the checks' own work has passed the meter
constexpr Seconds kTrial{3};           // of the warm-up, for the meter's own check
constexpr Seconds kBlock{1};           // an arm's turn in the warm-up
constexpr Seconds kLongestWait{3};     // for the samples behind the last window
constexpr Seconds kSamplesArrive{0.3}; // by then a window's last samples are in the driver's buffer

std::int64_t ns(Instant t) { return t.time_since_epoch().count(); }

class Run {
public:
  Run(const Plan& plan, gpu::Device& device, Arms& arms, meter::BoardMeter& meter,
      const Supervision& supervision)
      : plan_(plan), device_(device), arms_(arms), meter_(meter), supervision_(supervision),
        sampler_(meter, device.clock()) {}

  Result<RawRun> execute() {
    const auto started = device_.clock().now();
    remember_board();
    sampler_.start();
    HEBE_TRY(stream_, ReplayStream::make(device_, {arms_.graphs[0].get(), arms_.graphs[1].get()}));
    if (arms_.external) stream_->refuse_starvation(meter_.board().uuid, arms_.call_times());
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
  void remember_board() {
    watch_.remember(supervision_.own_pids);
    if (watch_.power_limit()) raw_.reference.power_limit = *watch_.power_limit();
    raw_.errors = watch_.watched();
  }

  Status board_still_fit() {
    HEBE_CHECK(watch_.still_fit(supervision_.own_pids));
    if (auto failure = sampler_.failure()) return std::unexpected(*failure);
    return {};
  }

  Result<Stretch> replay_for(int arm, Seconds length) {
    return stream_->replay_for(arm, length, arms_.replay_time[static_cast<std::size_t>(arm)],
                               plan_.tier.max_idle);
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
      HEBE_TRY(auto block, block_between_pairs(arm, stretch, block_begin, boundary));
      const auto now = device_.clock().now();
      const auto a = static_cast<std::size_t>(arm);
      arms_.replay_time[a] = (stretch.device + stretch.idle) / static_cast<double>(stretch.replays);
      raw_.warm_up.blocks.push_back(std::move(block));
      raw_.warm_up.duration = to_seconds(now - begin);
      if (raw_.warm_up.blocks.size() == 1) trial_begin = boundary;
      if (!meter_checked && raw_.warm_up.duration > kTrial) {
        HEBE_CHECK(check_the_meter(load_begin_ns, trial_begin, boundary));
        meter_checked = true;
      }
      report("warm-up", raw_.warm_up.duration);
      if (!meter_checked || raw_.warm_up.duration < plan_.warm_up) {
        first_look_ = raw_.warm_up.blocks.size();
        continue;
      }
      raw_.warm_up.stable = has_settled(raw_.warm_up.blocks, plan_.tier);
      if (raw_.warm_up.stable) break;
      if (raw_.warm_up.duration < longest) continue;
      if (plan_.tier.is_evidence) return not_settled();
      break; // a smoke run reports it
    }
    const auto& blocks = raw_.warm_up.blocks;
    raw_.reference.temperature_c = settled_temperature(blocks, plan_.tier);
    for (const auto& b : blocks)
      raw_.reference.latency[static_cast<std::size_t>(b.arm)] = b.latency;
    return {};
  }

  // A block that has just ended, with the board as it is read then.
  Result<WarmUpBlock> block_between_pairs(int arm, const Stretch& s, std::int64_t begin_ns,
                                          const meter::Boundary& boundary) {
    sampler_.drain_now();
    if (auto failure = sampler_.failure()) return std::unexpected(*failure);
    const auto launches =
        static_cast<double>(s.replays) * arms_.launches_per_replay[static_cast<std::size_t>(arm)];
    WarmUpBlock block{arm, ns(s.last.at), (s.device + s.idle) / launches, {}, {}, {}};
    if (boundary.event_reasons) block.capped = at_power_limit(boundary);
    remember(arm, boundary, block.end_ns);
    if (boundary.temperature_c) block.temperature_c = *boundary.temperature_c;
    // The first part of a block still shows the other arm.
    const auto samples = sampler_.between((begin_ns + block.end_ns) / 2, block.end_ns);
    double sum = 0;
    for (const auto& x : samples) sum += static_cast<double>(x.raw_mw);
    if (!samples.empty()) block.power = Watts(sum * 1e-3 / static_cast<double>(samples.size()));
    return block;
  }

  void remember(int arm, const meter::Boundary& boundary, std::int64_t at_ns) {
    last_arm_ = arm;
    last_read_ = boundary;
    last_read_ns_ = at_ns;
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
    const auto& blocks = raw_.warm_up.blocks;
    const auto& b = blocks.back();
    return refuse(RefusalCode::not_stable,
                  fmt::format("after {:.0f} s of warm-up the board had not settled: {}; {} (last: "
                              "{} W, {} C; {})",
                              raw_.warm_up.duration.value(), what_moves(blocks, plan_.tier),
                              what_moved(blocks, first_look_, plan_.tier),
                              b.power ? fmt::format("{:.1f}", b.power->value()) : "unknown",
                              b.temperature_c ? std::to_string(*b.temperature_c) : "unknown",
                              plan_.tier.name),
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
      HEBE_CHECK(hold_until_back(first)); // it may find that a pair has to be measured again
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
      HEBE_CHECK(judge_accepted_again());
    }
    return {};
  }

  // Pairs begun on a board that has left its temperature would fail one after the other.
  Status hold_until_back(int next_arm) {
    const auto& w = raw_.windows;
    if (w.size() < 2 || held_ >= plan_.tier.max_hold.value_or(Seconds(0))) return {};
    const auto &first = w[w.size() - 2].reading, &second = w.back().reading;
    if (!must_hold(first, second, raw_.reference, plan_.tier)) return {};
    report("pairs", Seconds(0),
           fmt::format("the temperature stands {:+.1f} C from where it had settled: no pair is "
                       "measured until it is back, or {:.0f} s have passed",
                       *above_reference(first, second, raw_.reference),
                       (*plan_.tier.max_hold - held_).value()));
    Hold hold{std::ssize(w), {}};
    const auto begin_ns = second.end_ns;
    for (int arm = next_arm;; arm = 1 - arm) {
      HEBE_CHECK(supervision_.may_continue());
      const auto block_begin = ns(device_.clock().now());
      HEBE_TRY(const auto stretch, replay_for(arm, kBlock));
      HEBE_TRY(const auto boundary, meter_.read_boundary());
      HEBE_TRY(auto block, block_between_pairs(arm, stretch, block_begin, boundary));
      hold.blocks.push_back(std::move(block));
      HEBE_CHECK(board_still_fit());
      HEBE_CHECK(judge_finished()); // its samples have arrived by now
      if (hold_ends(hold.blocks, next_arm, held_, begin_ns, raw_.reference, plan_.tier)) break;
    }
    held_ += hold_length(hold.blocks, begin_ns);
    raw_.holds.push_back(std::move(hold));
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
    HEBE_TRY(auto before, replay_for(arm, pre_roll_ + phase));
    r.begin_ns = ns(before.last.at);
    HEBE_TRY(r.begin, meter_.read_boundary());
    const Nanos since(r.begin_ns - last_read_ns_);
    count_idle(before, arms_.replay_time[a],
               slower_by_clock(plan_.tier, last_read_, r.begin, since, last_arm_ != arm));
    r.pre_roll = before.device;
    r.idle_before = before.idle;
    r.pre_roll_replays = before.times;

    HEBE_TRY(const auto timed, stream_->time_replays(arm, next_arm, r.replays));
    r.end_ns = ns(timed.last.at);
    HEBE_TRY(r.end, meter_.read_boundary());
    remember(arm, r.end, r.end_ns);
    r.elapsed = timed.elapsed;
    r.replay_cv = timed.cv;
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
      judge_temperatures(std::span(raw_.windows).first(judged_ + 2), plan_.tier, raw_.reference,
                         plan_.kind == "aa");
      const bool passed = first.passed() && second.passed();
      first.pair_accepted = second.pair_accepted = passed;
      if (!passed) HEBE_CHECK(retry_or_give_up(first, second));
    }
    return {};
  }

  // What the arms differ by themselves is known of all pairs only: the first ones were judged by
  // few.
  Status judge_accepted_again() {
    for (std::size_t i = 0; i + 1 < raw_.windows.size(); i += 2) {
      auto &first = raw_.windows[i], &second = raw_.windows[i + 1];
      if (!first.pair_accepted || (first.passed() && second.passed())) continue;
      first.pair_accepted = second.pair_accepted = false;
      HEBE_CHECK(retry_or_give_up(first, second));
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
    const auto& w = first.passed() ? second : first;
    const auto failed = std::ranges::find_if(w.gates, [](const auto& g) { return !g.passed; });
    const auto reason =
        fmt::format("pair {} attempt {}: {}", r.pair + 1, r.attempt, told(*failed, w.reading));
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
  std::size_t first_look_ = 0; ///< block of the warm-up after which it was asked whether it settled
  std::vector<Turn> turns_;
  BoardWatch watch_{meter_};
  std::size_t judged_ = 0;
  Seconds held_{0};           ///< between pairs, in all
  meter::Boundary last_read_; ///< before the window at hand, and when, at the end of which arm
  std::int64_t last_read_ns_ = 0;
  int last_arm_ = -1; ///< none yet
};

} // namespace

Result<RawRun> run_experiment(const Plan& plan, gpu::Device& device, Arms& arms,
                              meter::BoardMeter& meter, const Supervision& supervision) {
  return Run(plan, device, arms, meter, supervision).execute();
}

} // namespace hebe::measure
