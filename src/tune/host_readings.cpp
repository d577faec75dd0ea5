#include "tune/host_readings.hpp"

#include <fmt/format.h>

namespace hebe::tune {
namespace {

constexpr const char* kHostIdleColumns[] = {"begin_counts", "end_counts", "duration_s"};
constexpr const char* kHostWindowColumns[] = {"begin_counts", "end_counts", "duration_s",
                                              "operations", "worked_s"};

Watts power_in(const HostStretch& s, std::span<const HostCounter> counters) {
  Joules energy(0);
  for (std::size_t i = 0; i < counters.size(); ++i)
    energy += Joules(static_cast<double>(s.end[i] - s.begin[i]) * counters[i].joules_per_count);
  return energy / s.duration;
}

// One count of every counter.
Watts resolution_of(const HostStretch& s, std::span<const HostCounter> counters) {
  double joules = 0;
  for (const auto& c : counters) joules += c.joules_per_count;
  return Joules(joules) / s.duration;
}

measure::IdleStretch idle_in(const HostStretch& s, std::span<const HostCounter> counters) {
  measure::IdleStretch out;
  out.duration = s.duration;
  out.power = power_in(s, counters);
  out.power_error = resolution_of(s, counters);
  return out;
}

measure::SeriesWindow window_in(const HostStretch& s, std::span<const HostCounter> counters) {
  measure::SeriesWindow out;
  out.duration = s.duration;
  out.power = power_in(s, counters);
  out.power_error = resolution_of(s, counters);
  out.launches = s.operations;
  out.latency = Seconds(s.worked.value() / static_cast<double>(s.operations));
  out.latency_error = out.latency * 1e-6;
  return out;
}

std::unexpected<Refusal> not_so(std::string what, std::string where) {
  return refuse(RefusalCode::analysis_mismatch, std::move(what), "restore the record from a copy",
                std::move(where));
}

// Every counter advances within a stretch, and never falls back before the one that came before.
Status check_edges(const HostStretch& s, const HostStretch* before, std::size_t counters,
                   const std::string& where) {
  if (s.begin.size() != counters || s.end.size() != counters)
    return not_so(fmt::format("recorded {} and {} counts at its edges; there are {} counters",
                              s.begin.size(), s.end.size(), counters),
                  where);
  for (std::size_t i = 0; i < counters; ++i) {
    if (s.end[i] <= s.begin[i])
      return not_so(
          fmt::format("counter {} went from {} to {}: a machine draws power doing nothing", i,
                      s.begin[i], s.end[i]),
          where);
    if (before != nullptr && s.begin[i] < before->end[i])
      return not_so(fmt::format("counter {} begins at {}, before the {} that it had reached", i,
                                s.begin[i], before->end[i]),
                    where);
  }
  return {};
}

Status check_length(const HostStretch& s, Seconds due, bool is_idle, const std::string& where) {
  constexpr double kRounding =
      1e-6; // s: clocks count nanoseconds, lengths are asked for in seconds
  const auto asked = is_idle ? s.duration : s.worked;
  if (asked.value() < due.value() - kRounding)
    return not_so(
        fmt::format("lasted {:.6g} s where {:.6g} s were due", asked.value(), due.value()), where);
  if (s.worked.value() > s.duration.value() + kRounding)
    return not_so(fmt::format("worked {:.6g} s in a window of {:.6g} s", s.worked.value(),
                              s.duration.value()),
                  where);
  return {};
}

HostStretch stretch_from(const Json& row) {
  HostStretch out;
  out.begin = row[0].get<std::vector<std::int64_t>>();
  out.end = row[1].get<std::vector<std::int64_t>>();
  out.duration = Seconds(row[2].get<double>());
  if (row.size() <= std::size(kHostIdleColumns)) return out;
  out.operations = row[3];
  out.worked = Seconds(row[4].get<double>());
  return out;
}

} // namespace

MeterIdentity host_identity(std::span<const HostCounter> counters, Provenance provenance) {
  MeterIdentity out{{}, "usable", provenance};
  for (const auto& c : counters) out.name += (out.name.empty() ? "" : " + ") + c.name;
  return out;
}

Result<HostCost> host_cost(HostReadings readings, const MeterIdentity& meter, Objective objective,
                           const std::string& not_written) {
  std::vector<measure::IdleStretch> idles;
  std::vector<measure::SeriesWindow> windows;
  for (const auto& s : readings.idles) idles.push_back(idle_in(s, readings.counters));
  for (const auto& s : readings.windows) windows.push_back(window_in(s, readings.counters));
  HostCost out;
  HEBE_TRY(out.idle, idle_power(idles, {}));
  out.idle.state = Idle::no_context;
  const auto noise = noise_of(windows).value_or(WindowNoise{});
  std::vector<CandidateWindow> priced;
  for (const auto& w : windows) priced.push_back(with_noise(w, noise));
  HEBE_TRY(out.cost, cost_of(priced, {out.idle, meter, objective, not_written}));
  out.readings = std::move(readings);
  return out;
}

Status check_host_readings(const HostReadings& r, const HostWindows& due,
                           const std::string& where) {
  const auto count = static_cast<std::size_t>(due.count);
  constexpr std::size_t kIdles = 2;
  if (r.windows.size() != count || r.idles.size() != kIdles || r.counters.empty())
    return not_so(fmt::format("recorded {} windows and {} idle stretches of {} counters; {} and {} "
                              "were due",
                              r.windows.size(), r.idles.size(), r.counters.size(), count, kIdles),
                  where);
  const HostStretch* before = nullptr;
  const auto check = [&](const HostStretch& s, bool is_idle, const std::string& at) -> Status {
    HEBE_CHECK(check_edges(s, before, r.counters.size(), where + at));
    HEBE_CHECK(check_length(s, is_idle ? due.idle : due.busy, is_idle, where + at));
    before = &s;
    return {};
  };
  HEBE_CHECK(check(r.idles.front(), true, ".idle[0]"));
  for (std::size_t i = 0; i < count; ++i)
    HEBE_CHECK(check(r.windows[i], false, fmt::format(".windows[{}]", i)));
  return check(r.idles.back(), true, ".idle[1]");
}

Json json_of(const HostReadings& r) {
  Json counters = Json::array(), idles = Json::array(), windows = Json::array();
  for (const auto& c : r.counters)
    counters.push_back({{"name", c.name}, {"joules_per_count", c.joules_per_count}});
  for (const auto& s : r.idles)
    idles.push_back(Json::array({Json(s.begin), Json(s.end), s.duration.value()}));
  for (const auto& s : r.windows)
    windows.push_back(Json::array(
        {Json(s.begin), Json(s.end), s.duration.value(), s.operations, s.worked.value()}));
  return {{"counters", counters},
          {"idle_columns", kHostIdleColumns},
          {"idle", idles},
          {"window_columns", kHostWindowColumns},
          {"windows", windows}};
}

HostReadings host_readings_from(const Json& json) {
  HostReadings out;
  for (const auto& c : json.at("counters"))
    out.counters.push_back({c.at("name"), c.at("joules_per_count").get<double>()});
  for (const auto& row : json.at("idle")) out.idles.push_back(stretch_from(row));
  for (const auto& row : json.at("windows")) out.windows.push_back(stretch_from(row));
  return out;
}

} // namespace hebe::tune
