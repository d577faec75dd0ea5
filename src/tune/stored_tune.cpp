#include "tune/stored_tune.hpp"

#include "campaign/campaign_spec.hpp"
#include "tune/stored_host.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace hebe::tune {
namespace {

std::unexpected<Refusal> mismatch(std::string what, std::string where) {
  return refuse(RefusalCode::analysis_mismatch, std::move(what), "restore the record from a copy",
                std::move(where));
}

template <class T> std::optional<T> maybe(const Json& j) {
  return j.is_null() ? std::nullopt : std::optional(j.get<T>());
}

double number(const Json& j) { return j.get<double>(); }
std::optional<std::string> text_in(const Json& j) { return maybe<std::string>(j); }

bool was_measured(const Json& candidate) { return !candidate.at("cost").is_null(); }

Refusal refusal_in(const Json& j) {
  return {refusal_named(j.at("code").get<std::string>()).value_or(RefusalCode::internal),
          j.at("what"),
          j.at("where"),
          j.at("next"),
          {}};
}

// A state that was reached before the search; every other follows from the search.
TriedCandidate::State state_in(const Json& candidate) {
  using State = TriedCandidate::State;
  for (const auto state : {State::unavailable, State::failed, State::not_drawn})
    if (candidate.at("state") == name_of(state)) return state;
  return State::ready;
}

measure::IdleStretch idle_from(const Json& row) {
  return {Watts(number(row[0])),
          Watts(number(row[1])),
          Seconds(number(row[2])),
          maybe<std::int64_t>(row[3]),
          {maybe<std::int64_t>(row[4]), maybe<std::int64_t>(row[5]), Seconds(number(row[6]))}};
}

measure::SeriesWindow window_from(const Json& row) {
  measure::SeriesWindow w;
  w.power = Watts(number(row[1]));
  w.power_error = Watts(number(row[2]));
  w.latency = Seconds(number(row[3]));
  w.latency_error = Seconds(number(row[4]));
  w.duration = Seconds(number(row[5]));
  w.launches = row[6];
  w.spent = Seconds(number(row[7]));
  w.attempts = row[8];
  w.counts = {maybe<std::int64_t>(row[9]), maybe<std::int64_t>(row[10]), Seconds(number(row[11]))};
  return w;
}

// What the gates saw of each window at the time must still be so.
Status check_counter(const measure::EdgeCounts& counts, const std::optional<Watts>& power,
                     const std::string& where) {
  if (!counts.begin_mj || !counts.end_mj) return {};
  const auto counted = *counts.end_mj - *counts.begin_mj;
  if (counted <= 0 || counts.between <= Seconds(0))
    return mismatch(fmt::format("the counter moved by {} mJ in {:.6g} s: a chip draws power doing "
                                "nothing",
                                counted, counts.between.value()),
                    where);
  if (!power) return {};
  HEBE_TRY(const auto tier, measure::tier_named("smoke-v1"));
  // Each read may be one update of the counter old, whichever way.
  const double limit =
      tier.meter_agreement + 2 * measure::MeterBehaviour{}.counter_period / counts.between;
  const auto by_counter = from_millijoules(counted) / counts.between;
  if (std::abs(by_counter / *power - 1) <= limit) return {};
  return mismatch(
      fmt::format("recorded a mean power of {:.6g} W, recomputed from the counter {:.6g} "
                  "W: further apart than {:.3g} %",
                  power->value(), by_counter.value(), 100 * limit),
      where);
}

Status check_window(const measure::SeriesWindow& w, Seconds length, const std::string& where) {
  if (w.duration < length * 0.5)
    return mismatch(fmt::format("lasted {:.6g} s where {:.6g} s were due in this rung",
                                w.duration.value(), length.value()),
                    where);
  constexpr double kRelative = 0.05; // host time between edges against the device's own
  const auto launched = w.latency * static_cast<double>(w.launches);
  if (std::abs((launched - w.duration).value()) > kRelative * w.duration.value() + 0.01)
    return mismatch(fmt::format("{} launches of {:.6g} s take {:.6g} s, the window is said to have "
                                "lasted {:.6g} s",
                                w.launches, w.latency.value(), launched.value(),
                                w.duration.value()),
                    where);
  return check_counter(w.counts, w.power, where);
}

// Candidates that the board's windows are of.
std::vector<std::size_t> contenders_in(const Json& shape, const TuneSpec& spec) {
  std::vector<std::size_t> out;
  const auto& all = shape.at("candidates");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (was_measured(all[i]) && !is_host_code(all[i], spec)) out.push_back(i);
  return out;
}

} // namespace

bool was_ready(const Json& candidate) {
  return state_in(candidate) == TriedCandidate::State::ready;
}

std::uint64_t StoredTune::seed_of(const std::string& what) const {
  return campaign::seed_for(std::to_string(place.seed), what);
}

Result<StoredTune> stored_tune(const Json& record, const std::string& where) {
  StoredTune out;
  HEBE_TRY(out.spec, stored_tune_spec(record.at("spec"), where + ": spec"));
  // A command line may have said otherwise than the specification.
  const auto only = record.value("only_shapes", std::vector<std::string>());
  if (const auto kept = keep_shapes(out.spec, only); !kept)
    return mismatch("only_shapes: " + kept.error().what, where);
  const auto& said = record.at("protocol");
  auto& p = out.spec.protocol;
  HEBE_TRY(p.tier, measure::tier_named(said.at("tier").get<std::string>()));
  p.pairs = said.at("pairs");
  p.window = Seconds(number(said.at("window_s")));
  p.warm_up = Seconds(number(said.at("warm_up_s")));
  const auto provenance = provenance_from(record.at("provenance").get<std::string>());
  out.place.platform = {record.at("board").at("uuid").get<std::string>(),
                        record.at("driver"),
                        record.at("os"),
                        record.at("hebe"),
                        {}};
  out.place.board = record.at("board").at("name");
  out.place.date = record.at("when");
  out.place.provenance = *provenance; // the schema knows both
  const auto seed = record.at("seed").get<std::string>();
  if (std::from_chars(seed.data(), seed.data() + seed.size(), out.place.seed).ec != std::errc())
    return refuse(RefusalCode::bad_schema, "seed " + seed + " is not below 2^64", {}, where);
  out.meter = {record.at("meter").at("name"), record.at("meter").at("status"), *provenance};
  return out;
}

PreparedShape candidates_in(const Json& shape, const ShapeSpec& spec) {
  PreparedShape out;
  out.spec = &spec;
  for (const auto& c : shape.at("candidates")) {
    TriedCandidate tried;
    tried.state = state_in(c);
    tried.candidate = {c.at("backend"), c.at("name"), c.at("configuration")};
    if (const auto& why = c.at("why"); !why.is_null()) tried.why = refusal_in(why);
    tried.prepared.emplace();
    tried.prepared->candidate = tried.candidate;
    tried.prepared->artifact_sha256 = text_in(c.at("artifact_sha256"));
    tried.prepared->version = text_in(c.at("library"));
    tried.prepared->triton = text_in(c.at("triton"));
    out.candidates.push_back(std::move(tried));
  }
  return out;
}

Result<SearchedShape> search_again(const Json& shape, const StoredTune& tune) {
  const auto name = shape.at("name").get<std::string>();
  const auto& readings = shape.at("search").at("readings");
  const auto& windows = readings.at("windows");
  auto candidate = contenders_in(shape, tune.spec); // contender to candidate
  if (candidate.empty() || candidate.front() != 0)
    return mismatch("the baseline was not measured", name);
  std::size_t next = 0, idles = 0;
  ReadingSource source;
  source.loaded_clock_mhz = maybe<std::int64_t>(readings.at("loaded_clock_mhz"));
  source.idle = [&]() -> Result<measure::IdleStretch> {
    const auto where = fmt::format("{}: readings.idle[{}]", name, idles);
    auto one = idle_from(readings.at("idle")[idles++]);
    HEBE_CHECK(check_counter(one.counts, {}, where));
    return one;
  };
  source.window = [&](std::size_t contender, Seconds length) -> Result<measure::SeriesWindow> {
    const auto where = fmt::format("{}: readings.windows[{}]", name, next);
    if (next >= windows.size())
      return mismatch(fmt::format("recorded {} windows; the search asks for another, of candidate "
                                  "{}",
                                  windows.size(), candidate[contender]),
                      where);
    const auto& row = windows[next++];
    if (row[0] != candidate[contender])
      return mismatch(fmt::format("recorded candidate {}; the search's order asks for candidate {}",
                                  row[0].dump(), candidate[contender]),
                      where);
    auto one = window_from(row);
    HEBE_CHECK(check_window(one, length, where));
    return one;
  };
  HEBE_TRY(auto out, search_readings(source, candidate.size(), tune.spec, tune.meter,
                                     tune.seed_of(name), {}));
  if (next != windows.size())
    return mismatch(
        fmt::format("recorded {} windows; the search asks for {}", windows.size(), next),
        name + ": readings.windows");
  out.candidate = std::move(candidate);
  HEBE_TRY(out.hosts, hosts_again(shape, tune));
  return out;
}

Result<Confirmed> confirm_again(const Json& shape, const SearchedShape& searched,
                                const StoredTune& tune,
                                const std::vector<campaign::JobOutcome>& measured) {
  const auto name = shape.at("name").get<std::string>();
  const auto& finalists = shape.at("finalists");
  const auto& runs = finalists.at("runs");
  std::size_t next = 0;
  const auto pair = [&](std::size_t a, std::size_t b) -> Result<campaign::JobOutcome> {
    const auto where = fmt::format("{}: finalists.runs[{}]", name, next);
    if (next == runs.size() && finalists.contains("not_compared"))
      return std::unexpected(refusal_in(finalists.at("not_compared"))); // confirm() says of which
    if (next >= runs.size())
      return mismatch(fmt::format("recorded {} pairs; the choice needs candidate {} against {}",
                                  runs.size(), b, a),
                      where);
    const auto& run = runs[next];
    if (run.at("a") != a || run.at("b") != b)
      return mismatch(fmt::format("recorded candidate {} against {}; the choice needs {} against "
                                  "{}",
                                  run.at("b").dump(), run.at("a").dump(), b, a),
                      where);
    return measured[next++];
  };
  HEBE_TRY(auto out, confirm(searched, tune.spec.objective, pair));
  if (next != runs.size())
    return mismatch(fmt::format("recorded {} pairs; the choice needs {}", runs.size(), next),
                    name + ": finalists.runs");
  HEBE_CHECK(weigh_again(out, shape, searched, tune));
  return out;
}

} // namespace hebe::tune
