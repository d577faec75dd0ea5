#include "tune/search.hpp"

#include "core/philox.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

constexpr std::uint64_t kOrderStream = 0x0c0de;

void shuffle(std::vector<std::size_t>& order, Philox& random) {
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
}

class Search {
public:
  Search(std::size_t candidates, std::size_t baseline, const SearchSettings& settings,
         const MeasureWindow& measure, const PriceWindows& price)
      : settings_(settings), baseline_(baseline), measure_(measure), price_(price),
        order_(settings.seed, kOrderStream) {
    out_.contenders.resize(candidates);
  }

  Result<SearchOutcome> run() {
    const bool once = settings_.method != Method::halving;
    auto window = once ? settings_.longest_window : settings_.window;
    for (int rung = 0;; ++rung) {
      HEBE_CHECK(one_rung(rung, window));
      out_.rungs = rung + 1;
      if (once) {
        out_.stopped = "every candidate was measured once";
        break;
      }
      drop();
      if (decided()) break;
      window = window * 2;
      if (window > settings_.longest_window) {
        out_.stopped = fmt::format("windows of more than {} s were not asked for; {} candidates "
                                   "are left",
                                   settings_.longest_window.value(), alive().size());
        break;
      }
    }
    finish();
    return std::move(out_);
  }

private:
  using State = Contender::State;

  std::vector<std::size_t> alive() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < out_.contenders.size(); ++i)
      if (out_.contenders[i].state == State::alive) out.push_back(i);
    return out;
  }

  // All that are alive in random order; the baseline before, after, and evenly among them.
  std::vector<std::size_t> turns() {
    auto others = alive();
    std::erase(others, baseline_);
    shuffle(others, order_);
    const auto repeats = std::clamp<std::size_t>(others.size() / 4, 3, 6);
    std::vector<std::size_t> out;
    std::size_t next = 0;
    for (std::size_t r = 0; r < repeats; ++r) {
      const auto until = others.size() * r / (repeats - 1);
      while (next < until) out.push_back(others[next++]);
      out.push_back(baseline_);
    }
    return out;
  }

  Status one_rung(int rung, Seconds length) {
    std::vector<std::pair<std::size_t, measure::SeriesWindow>> seen;
    std::vector<measure::SeriesWindow> references;
    for (const auto i : turns()) {
      HEBE_TRY(auto window, measure_(i, length));
      out_.spent += window.spent;
      out_.contenders[i].spent += window.spent;
      out_.measured += window.duration;
      if (i == baseline_) {
        references.push_back(window);
        out_.references += window.duration;
      }
      out_.taken.emplace_back(i, window);
      seen.emplace_back(i, std::move(window));
    }
    const auto noise = noise_of(references);
    if (!noise) return refuse(RefusalCode::internal, "a rung without the baseline's windows");
    for (const auto& [i, window] : seen) {
      out_.contenders[i].windows.push_back(with_noise(window, *noise));
      out_.contenders[i].rung = rung;
    }
    for (auto& c : out_.contenders) {
      if (c.rung != rung) continue;
      HEBE_TRY(c.cost, price_(c.windows));
    }
    if (rung == 0) fix_latency_bound();
    return {};
  }

  void fix_latency_bound() {
    if (!settings_.latency_bound) return;
    out_.latency_bound_ns = settings_.latency_bound->ns;
    if (settings_.latency_bound->ratio)
      out_.latency_bound_ns =
          *settings_.latency_bound->ratio * out_.contenders[baseline_].cost->latency_ns;
  }

  bool within_bound(const Contender& c) const {
    return !out_.latency_bound_ns || c.cost->latency_ns <= *out_.latency_bound_ns;
  }

  // Of those that are alive and within the latency bound.
  std::optional<std::size_t> best_of(const std::vector<std::size_t>& among) const {
    std::optional<std::size_t> best;
    for (const auto i : among)
      if (within_bound(out_.contenders[i]) &&
          (!best || out_.contenders[i].cost->value < out_.contenders[*best].cost->value))
        best = i;
    return best;
  }

  void drop() {
    const auto left = alive();
    const auto best = best_of(left);
    for (const auto i : left) {
      auto& c = out_.contenders[i];
      if (out_.latency_bound_ns &&
          c.cost->latency_ns - kNormal95 * c.cost->latency_error_ns > *out_.latency_bound_ns)
        c.state = State::over_latency;
      else if (best && c.cost->low > out_.contenders[*best].cost->high)
        c.state = State::dropped;
    }
  }

  bool decided() {
    const auto left = alive();
    if (left.size() <= 1) {
      out_.stopped = left.empty() ? "no candidate is within the latency bound" : "one is left";
      return true;
    }
    double lowest = out_.contenders[left.front()].cost->low, highest = 0;
    for (const auto i : left) {
      lowest = std::min(lowest, out_.contenders[i].cost->low);
      highest = std::max(highest, out_.contenders[i].cost->high);
    }
    if (!(lowest > 0 && highest / lowest - 1 <= settings_.floor)) return false;
    out_.stopped = fmt::format("the {} that are left lie within {:.3g} % with their intervals",
                               left.size(), 100 * settings_.floor);
    return true;
  }

  void finish() {
    out_.best = best_of(alive());
    std::size_t measured = 0;
    Seconds longest(0);
    std::optional<std::size_t> fastest;
    for (std::size_t i = 0; i < out_.contenders.size(); ++i) {
      const auto& c = out_.contenders[i];
      if (!c.cost) continue;
      ++measured;
      // The baseline's references are not what a candidate needs.
      if (i != baseline_) longest = std::max(longest, c.cost->measured);
      if (!fastest || c.cost->latency_ns < out_.contenders[*fastest].cost->latency_ns) fastest = i;
      if (i == baseline_ || i == out_.best || !within_bound(c)) continue;
      if (!out_.runner_up || c.cost->value < out_.contenders[*out_.runner_up].cost->value)
        out_.runner_up = i;
    }
    out_.fastest = fastest.value_or(baseline_);
    out_.exhaustive = longest * static_cast<double>(measured);
  }

  const SearchSettings& settings_;
  std::size_t baseline_;
  const MeasureWindow& measure_;
  const PriceWindows& price_;
  Philox order_;
  SearchOutcome out_;
};

} // namespace

Result<SearchOutcome> search(std::size_t candidates, std::size_t baseline,
                             const SearchSettings& settings, const MeasureWindow& measure,
                             const PriceWindows& price) {
  return Search(candidates, baseline, settings, measure, price).run();
}

} // namespace hebe::tune
