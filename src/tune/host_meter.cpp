#include "tune/host_meter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hebe::tune {
namespace {

constexpr Nanos kPoll{50'000}; // counters update about once a millisecond

// Counters of one kind that together cover the machine: all packages of one interface, or its
// platform counter. The packages come first: what they count is the CPU's.
std::map<std::pair<int, std::string>, std::vector<std::size_t>>
groups_of(const std::vector<meter::Discovered>& all) {
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].source == nullptr || all[i].unusable) continue;
    const auto& d = all[i].source->description();
    if (d.quantity != meter::Quantity::energy_counter) continue;
    const auto& scope = d.identity.scope;
    if (scope != "cpu-package" && scope != "platform") continue;
    // Two interfaces to one package must not be added.
    const bool perf = all[i].name.starts_with("perf");
    const bool second = all[i].name.find("mmio") != std::string::npos;
    const int rank = (scope == "platform" ? 10 : 0) + (second ? 2 : perf ? 1 : 0);
    out[{rank, d.driver}].push_back(i);
  }
  return out;
}

// The first thing that the kernel offers and that is not to be had, or that there is none.
Refusal none_offered(const std::vector<meter::Discovered>& all) {
  Refusal out{RefusalCode::meter_unsupported,
              "this machine offers no energy counter of its CPU (RAPL: powercap, perf events)",
              {},
              "measure on a machine whose kernel has /sys/class/powercap/intel-rapl:0",
              {}};
  for (const auto& d : all)
    if (d.unusable) out.what += fmt::format("; {}: {}", d.name, d.unusable->what);
  for (const auto& d : all)
    if (d.unusable && d.unusable->code == RefusalCode::no_permission) {
      out.code = d.unusable->code;
      out.next = d.unusable->next;
      break;
    }
  return out;
}

} // namespace

Result<HostMeter> HostMeter::open(std::vector<meter::Discovered> sources, Clock& clock,
                                  Provenance provenance, const HostWindows& windows) {
  std::optional<Refusal> first;
  for (const auto& [kind, places] : groups_of(sources)) {
    HostMeter out(clock, windows);
    for (const auto place : places) {
      auto& source = sources[place].source;
      out.driver_ = source->description().driver;
      out.described_.push_back({sources[place].name, source->description().si_per_unit});
      out.counters_.push_back({std::move(source), 0, 0});
    }
    out.identity_ = host_identity(out.described_, provenance);
    auto works = [&]() -> Status {
      for (auto& c : out.counters_) {
        HEBE_TRY(const auto reading, c.source->read());
        c.raw = c.counted = reading.raw;
      }
      HEBE_CHECK(out.next_update());
      return {};
    }();
    if (works) return out;
    if (!first) first = std::move(works).error();
  }
  return std::unexpected(first ? *first : none_offered(sources));
}

// Adds what every counter has counted since it was last read.
Status HostMeter::advance() {
  for (auto& c : counters_) {
    HEBE_TRY(const auto reading, c.source->read());
    const auto& d = c.source->description();
    auto counts = reading.raw - c.raw;
    if (counts < 0 && d.wraps_at && c.raw > *d.wraps_at / 2) counts += *d.wraps_at + 1;
    if (counts < 0)
      return std::unexpected(meter_refusal(
          RefusalCode::meter_backwards, identity_,
          fmt::format("{} fell from {} to {}", d.identity.name, c.raw, reading.raw), {}));
    c.raw = reading.raw;
    c.counted += counts;
    at_ = reading.after;
  }
  return {};
}

// Waits until every counter has moved: a sum of which one part holds would be too small.
HostMeter::Edge HostMeter::edge() const {
  Edge out{{}, at_};
  for (const auto& c : counters_) out.counts.push_back(c.counted);
  return out;
}

Result<HostMeter::Edge> HostMeter::next_update() {
  const auto from = clock_->now();
  std::vector<std::int64_t> before;
  for (const auto& c : counters_) before.push_back(c.raw);
  HEBE_CHECK(advance()); // what has gathered since the last reading is no update
  for (std::size_t i = 0; i < counters_.size(); ++i) before[i] = counters_[i].raw;
  for (;;) {
    clock_->sleep_for(kPoll);
    HEBE_CHECK(advance());
    std::size_t held = counters_.size();
    for (std::size_t i = 0; i < counters_.size(); ++i)
      if (counters_[i].raw == before[i]) held = i;
    if (held == counters_.size()) return edge();
    const auto waited = to_seconds(clock_->now() - from);
    if (waited < windows_.longest_wait) continue;
    auto meter = identity_;
    meter.status = "frozen";
    return std::unexpected(meter_refusal(
        RefusalCode::meter_frozen, meter,
        fmt::format("{} stood at {} for {:.3g} s: a machine draws power doing nothing, so that a "
                    "counter that holds does not meter it",
                    counters_[held].source->description().identity.name, before[held],
                    waited.value()),
        {}, "on virtual machines the counter is often there and never advances"));
  }
}

Result<HostStretch> HostMeter::idle() {
  HEBE_TRY(auto from, next_update());
  clock_->sleep_for(to_nanos(windows_.idle));
  HEBE_TRY(auto to, next_update());
  const auto duration = to_seconds(to.at - from.at);
  return HostStretch{std::move(from.counts), std::move(to.counts), duration, 0, Seconds(0)};
}

Result<std::int64_t> HostMeter::batch_of(const std::function<Status(std::int64_t)>& work) {
  HEBE_CHECK(work(1)); // pages, threads, caches
  const auto from = clock_->now();
  HEBE_CHECK(work(1));
  const auto one = to_seconds(clock_->now() - from).value();
  constexpr double kBetweenLooks = 0.05;
  return one > 0 ? std::max<std::int64_t>(1, std::llround(kBetweenLooks / one)) : 1000;
}

Result<HostStretch> HostMeter::busy(const std::function<Status(std::int64_t)>& work,
                                    std::int64_t batch) {
  HostStretch out;
  HEBE_TRY(auto from, next_update());
  const auto started = clock_->now();
  do {
    HEBE_CHECK(work(batch));
    out.operations += batch;
  } while (to_seconds(clock_->now() - started) < windows_.busy);
  out.worked = to_seconds(clock_->now() - started);
  HEBE_TRY(auto to, next_update());
  out.duration = to_seconds(to.at - from.at);
  out.begin = std::move(from.counts);
  out.end = std::move(to.counts);
  return out;
}

Result<HostCost> HostMeter::measure(const std::function<Status(std::int64_t)>& work,
                                    const std::function<Status()>& may_continue,
                                    const std::string& not_written, Objective objective) {
  const auto named = [&](Refusal r) {
    r.not_written = not_written;
    return std::unexpected(std::move(r));
  };
  auto batch = batch_of(work);
  if (!batch) return named(std::move(batch).error());
  HostReadings readings{described_, {}, {}};
  for (int i = 0; i < windows_.count + 2; ++i) {
    HEBE_CHECK(may_continue());
    const bool is_idle = i == 0 || i == windows_.count + 1;
    auto seen = is_idle ? idle() : busy(work, *batch);
    if (!seen) return named(std::move(seen).error());
    (is_idle ? readings.idles : readings.windows).push_back(std::move(*seen));
  }
  return host_cost(std::move(readings), identity_, objective, not_written);
}

} // namespace hebe::tune
