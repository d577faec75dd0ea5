#include "tune/shape_search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

class ShapeSearch {
public:
  ShapeSearch(PreparedShape& shape, const TuneSpec& spec, const SearchPlace& place,
              std::uint64_t seed, const std::string& not_written)
      : shape_(shape), spec_(spec), place_(place), seed_(seed), not_written_(not_written) {}

  Result<SearchedShape> run() {
    HEBE_CHECK(may_continue());
    HEBE_CHECK(campaign::board_is_free(place_.machine, place_.own_processes));
    HEBE_TRY(out_.meter, search_meter(place_.root, place_.machine));
    // A search is no evidence: finalists are measured again, under the specification's own tier.
    HEBE_TRY(tier_, measure::tier_named("smoke-v1"));
    HEBE_TRY(supervision_.response,
             campaign::known_response(place_.root, place_.machine, tier_, spec_.window));
    supervision_.may_continue = [this] { return may_continue(); };
    // Before the sampler runs, whose polling is the host's work.
    HEBE_TRY(out_.hosts, measure_hosts(shape_.candidates, shape_.baseline(), on_the_host()));
    HEBE_TRY(auto* device, place_.machine.device());
    HEBE_TRY(supervision_.own_pids, campaign::our_processes(place_.machine));
    HEBE_TRY(auto bench, CandidateBench::make(*device, shape_.baseline()));
    HEBE_CHECK(load_all(bench));
    measure::WindowSeries series(*device, place_.machine.meter(), tier_, supervision_, seed_);
    if (auto warm = series.warm_up(bench.load(0), spec_.warm_up); !warm)
      return std::unexpected(
          with_meter("the baseline " + text_of(shape_.candidates[0].candidate) + " in its warm-up",
                     std::move(warm).error(), out_.meter, not_written_));
    HEBE_CHECK(measure_all(bench, series));
    return std::move(out_);
  }

private:
  Status may_continue() const {
    if (place_.callbacks.interrupted && place_.callbacks.interrupted())
      return refuse(RefusalCode::interrupted, "interrupted; no profile was written",
                    "run it again: a tune starts over, its sealed runs stay");
    return place_.lease.still_held(place_.machine);
  }

  void tell(const std::string& line) const {
    if (place_.callbacks.notice) place_.callbacks.notice(line);
  }

  HostSearch on_the_host() const {
    return {place_.host, searching_windows(spec_), spec_.objective,
            [this] { return may_continue(); }, not_written_};
  }

  Status load_all(CandidateBench& bench) {
    for (std::size_t i = 0; i < shape_.candidates.size(); ++i) {
      auto& tried = shape_.candidates[i];
      if (tried.state != TriedCandidate::State::ready ||
          std::holds_alternative<HostCode>(tried.prepared->code))
        continue;
      HEBE_CHECK(may_continue());
      HEBE_TRY(const auto place, bench.add(tried));
      if (place)
        out_.candidate.push_back(i);
      else
        tell(fmt::format("{}: {}: {}", name_of(tried.state), text_of(tried.candidate),
                         tried.why->what));
      if (i > 0 || place) continue;
      auto r = *tried.why;
      r.what = "the baseline: " + r.what;
      return std::unexpected(std::move(r));
    }
    return {};
  }

  Status measure_all(CandidateBench& bench, measure::WindowSeries& series) {
    std::size_t done = 0;
    ReadingSource source;
    source.loaded_clock_mhz = series.loaded_clock_mhz();
    source.idle = [&] { return idle(series); };
    source.window = [&](std::size_t i, Seconds length) -> Result<measure::SeriesWindow> {
      auto seen = series.window(bench.load(i), length);
      report(++done, length);
      if (seen) return seen;
      return std::unexpected(with_meter(text_of(shape_.candidates[out_.candidate[i]].candidate) +
                                            " ran and was not measured",
                                        std::move(seen).error(), out_.meter, not_written_));
    };
    HEBE_TRY(auto found, search_readings(source, out_.candidate.size(), spec_, out_.meter, seed_,
                                         not_written_));
    found.candidate = std::move(out_.candidate);
    found.hosts = std::move(out_.hosts);
    out_ = std::move(found);
    return {};
  }

  Result<measure::IdleStretch> idle(measure::WindowSeries& series) const {
    auto seen = series.idle(spec_.idle);
    if (seen) return seen;
    return std::unexpected(with_meter("idle power was not measured", std::move(seen).error(),
                                      out_.meter, not_written_));
  }

  // Of the first rung; how many follow is not known.
  void report(std::size_t done, Seconds length) const {
    if (!place_.callbacks.progress) return;
    constexpr double kAround = 1.6; // s: settling, pre-roll, and waiting for samples
    const double all = static_cast<double>(out_.candidate.size()) + 3;
    const double left = std::max(0.0, all - static_cast<double>(done));
    place_.callbacks.progress({"search of " + shape_.spec->shape.name,
                               1 - left / all,
                               Seconds(left * (length.value() + kAround)),
                               {}});
  }

  PreparedShape& shape_;
  const TuneSpec& spec_;
  const SearchPlace& place_;
  std::uint64_t seed_;
  const std::string& not_written_;
  measure::Tier tier_;
  measure::Supervision supervision_;
  SearchedShape out_;
};

} // namespace

Result<MeterIdentity> search_meter(const evidence::DataRoot& root,
                                   const campaign::Machine& machine) {
  const auto name = machine.meter().samples_source().name;
  const auto& board = machine.meter().board();
  if (machine.simulated()) return MeterIdentity{name, "primary", Provenance::simulated};
  HEBE_TRY(const auto boot, machine.boot());
  auto stored = evidence::current_qualification(root, evidence::QualificationKind::meter,
                                                board.uuid, board.driver, boot);
  if (!stored) {
    stored.error().next = "qualify it with `hebe probe-meter` (about a minute)";
    return std::unexpected(std::move(stored).error());
  }
  for (const auto& source : stored->json.at("findings").at("sources"))
    if (source.at("name") == name)
      return MeterIdentity{name, source.at("verdict").get<std::string>(), board.provenance};
  return refuse(RefusalCode::meter_not_qualified,
                "the board's qualification says nothing of " + name,
                "qualify it again with `hebe probe-meter`", stored->file.string());
}

Result<SearchedShape> search_readings(const ReadingSource& source, std::size_t contenders,
                                      const TuneSpec& spec, const MeterIdentity& meter,
                                      std::uint64_t seed, const std::string& not_written) {
  SearchedShape out;
  out.meter = meter;
  out.loaded_clock_mhz = source.loaded_clock_mhz;
  HEBE_TRY(out.idles.emplace_back(), source.idle());
  HEBE_TRY(out.idle, idle_power(out.idles, out.loaded_clock_mhz));
  SearchSettings settings;
  settings.method = spec.method;
  settings.window = spec.window;
  settings.longest_window = spec.longest_window;
  settings.floor = spec.protocol.margins.energy_percent / 100;
  settings.seed = seed;
  settings.objective = spec.objective;
  settings.latency_bound = spec.latency_bound;
  const auto price = [&](std::span<const CandidateWindow> windows) {
    return cost_of(windows, {out.idle, meter, spec.objective, not_written, spec.idle_power});
  };
  HEBE_TRY(out.outcome, search(contenders, 0, settings, source.window, price));
  // Again, as the board is now: leakage follows temperature.
  HEBE_TRY(out.idles.emplace_back(), source.idle());
  HEBE_TRY(out.idle, idle_power(out.idles, out.loaded_clock_mhz));
  for (auto& c : out.outcome.contenders) {
    HEBE_TRY(c.cost, price(c.windows));
  }
  return out;
}

Result<SearchedShape> search_shape(PreparedShape& shape, const TuneSpec& spec,
                                   const SearchPlace& place, std::uint64_t seed,
                                   const std::string& not_written) {
  return ShapeSearch(shape, spec, place, seed, not_written).run();
}

} // namespace hebe::tune
