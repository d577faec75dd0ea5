#include "evidence/study_arms.hpp"

#include "evidence/telemetry.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace hebe::evidence {
namespace {

// The idle stretch before the first launch lasts 0.6 s (measure/experiment.cpp). At its beginning
// the meter still shows the checks' own work; at its end it must not yet show the load.
constexpr double kIdleFromS = 0.45, kIdleToS = 0.1;
constexpr std::size_t kFewestIdleSamples = 5;
constexpr const char* kIdleFrom =
    "samples 0.45 to 0.1 s before the job's first launch, context open";
constexpr double kSameBytes = 0.05; ///< a copy of this many bytes more or less is of the same bytes

Json unavailable(std::string why) { return {{"unavailable", std::move(why)}}; }

// --- what was read at the edges of the accepted windows
// -------------------------------------------

std::optional<double> reading(const Json& boundary, const char* field) {
  const auto& value = boundary.at(field);
  if (value.is_object()) return std::nullopt;
  const auto integer = integer_from(value, field);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

std::vector<const Json*> accepted_windows(const StoredRun& run, const std::string& arm) {
  std::vector<const Json*> out;
  for (const auto& w : run.windows)
    if (w.at("arm") == arm && w.at("pair_accepted").get<bool>()) out.push_back(&w);
  return out;
}

Json mean_at_edges(const std::vector<const Json*>& windows, const char* field) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto* w : windows)
    for (const char* edge : {"begin", "end"})
      if (const auto value = reading(w->at(edge), field)) sum += *value, ++count;
  return count == 0 ? Json(nullptr) : Json(sum / static_cast<double>(count));
}

// Share of the time between a window's reads for which the counters advanced. A window that did not
// read all of them counts for nothing: missing is not 0.
Result<Json> share_of_time(const std::vector<const Json*>& windows,
                           std::initializer_list<const char*> counters) {
  double advanced = 0, time = 0;
  for (const auto* w : windows) {
    const auto &begin = w->at("begin"), &end = w->at("end");
    double sum = 0;
    bool all = true;
    for (const char* counter : counters) {
      const auto from = reading(begin, counter), to = reading(end, counter);
      all = all && from && to;
      if (all) sum += *to - *from;
    }
    if (!all) continue;
    double span = 0;
    for (const char* side : {"before_ns", "after_ns"}) {
      HEBE_TRY(const auto from, integer_from(begin.at(side), side));
      HEBE_TRY(const auto to, integer_from(end.at(side), side));
      span += static_cast<double>(to - from) / 2;
    }
    advanced += sum;
    time += span;
  }
  return time > 0 ? Json(advanced / time) : Json(nullptr);
}

// --- idle and active
// ------------------------------------------------------------------------------

// Mean power of the idle board, or why there is none.
Result<Json> idle_power(const StoredRun& run) {
  const auto& warm_up = run.acquisition.at("warm_up");
  if (warm_up.at("blocks").empty()) return unavailable("the warm-up has no blocks");
  HEBE_TRY(const auto warm, integer_from(warm_up.at("blocks").back().at("end_ns"), run.run_id));
  const double begin =
      static_cast<double>(warm) - warm_up.at("duration_s").get<double>() * 1e9; // of the load
  HEBE_TRY(const auto samples,
           samples_from_parquet(run.telemetry, run.acquisition.at("primary").at("name"),
                                run.run_id + "/telemetry.parquet"));
  double sum = 0;
  std::size_t count = 0;
  for (const auto& s : samples) {
    const auto before_s = (begin - static_cast<double>(s.t_mono_ns)) * 1e-9;
    if (before_s <= kIdleFromS && before_s >= kIdleToS)
      sum += static_cast<double>(s.raw_mw) * 1e-3, ++count;
  }
  if (count < kFewestIdleSamples)
    return unavailable(fmt::format("{} samples before the first launch, {} are needed", count,
                                   kFewestIdleSamples));
  return Json(sum / static_cast<double>(count));
}

Json split_json(const Json& idle, const Json& cost) {
  if (idle.is_object()) return idle;
  const double idle_w = idle, power = cost.at("power_w"), energy = cost.at("energy_per_launch_j"),
               idle_j = idle_w * cost.at("latency_s").get<double>();
  if (!(idle_w < power) || !(idle_j < energy))
    return unavailable(fmt::format("the idle board drew {:.1f} W, the arm {:.1f} W: no idle share "
                                   "of that can be told",
                                   idle_w, power));
  return {{"idle_w", idle_w},
          {"idle_j", idle_j},
          {"active_j", energy - idle_j},
          {"idle_share_ratio", idle_j / energy},
          {"idle_from", kIdleFrom}};
}

// --- the floor
// ------------------------------------------------------------------------------------

struct MovedBytes {
  double bytes = 0;
  const char* how = "";
};

// 0: the case does not declare its work.
Result<double> declared_bytes(const Json& subject) {
  const auto work = subject.at("launch").value("work", Json());
  if (!work.is_object()) return 0;
  HEBE_TRY(const auto read, integer_from(work.at("bytes_read"), "work.bytes_read"));
  HEBE_TRY(const auto written, integer_from(work.at("bytes_written"), "work.bytes_written"));
  return static_cast<double>(read) + static_cast<double>(written);
}

// Bytes that have to move: each of them once, as counted; where nobody counted, as declared.
Result<MovedBytes> moved_bytes(const Json& subject) {
  const auto mechanism = subject.value("mechanism", Json());
  const auto counted = mechanism.is_object() ? mechanism.value("bytes", Json()) : Json();
  const auto number = [&](const char* name) {
    const auto value = counted.is_object() ? counted.value(name, Json()) : Json();
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  };
  const auto loaded = number("unique_loaded"), stored = number("unique_stored");
  if (loaded && stored) {
    const double bytes = *loaded + *stored;
    if (counted.value("counted_at", Json()).is_null())
      return MovedBytes{bytes, "unique bytes counted at this launch"};
    const auto programs = number("programs"), of = number("programs_counted");
    if (programs && of && *of > 0)
      return MovedBytes{bytes * *programs / *of,
                        "unique bytes counted at a smaller launch, scaled by its programs"};
  }
  HEBE_TRY(const auto bytes, declared_bytes(subject));
  return MovedBytes{bytes, "bytes that the launch declares"};
}

Json floor_json(const Json& cost, const MovedBytes& moved, const PlainCopies& copies) {
  const auto against = [&](const PlainCopy& copy, double scale, const std::string& provenance,
                           std::string how) {
    return Json{
        {"energy_ratio", cost.at("energy_per_launch_j").get<double>() / (copy.energy_j * scale)},
        {"time_ratio", cost.at("latency_s").get<double>() / (copy.latency_s * scale)},
        {"floor_energy_j", copy.energy_j * scale},
        {"provenance", provenance},
        {"how", fmt::format("{}; the arm's {:.0f}: {}", how, moved.bytes, moved.how)}};
  };
  if (!(moved.bytes > 0)) return unavailable("how many bytes the arm has to move is not known");
  if (const auto& f = copies.floor; f && std::abs(f->bytes / moved.bytes - 1) <= kSameBytes)
    return against(*f, 1, f->provenance,
                   fmt::format("job {}'s arm A, {}, {:.0f} bytes", f->job, f->case_name, f->bytes));
  if (const auto& c = copies.control; c && c->bytes > 0)
    return against(*c, moved.bytes / c->bytes, "estimated",
                   fmt::format("the control's arm A, {:.0f} bytes, scaled by bytes: linear only "
                               "where both exceed the L2",
                               c->bytes));
  return unavailable(copies.floor
                         ? fmt::format("the study's floor moves {:.0f} bytes, this arm {:.0f}, and "
                                       "there is no control to scale from",
                                       copies.floor->bytes, moved.bytes)
                         : "the study has neither a floor job nor a control");
}

Result<std::optional<PlainCopy>> plain_copy(const StudyJob* j) {
  if (j == nullptr) return std::nullopt;
  const auto& subject = j->subject("A");
  const auto& cost = j->run.analysis.at("arms").at("A");
  HEBE_TRY(const auto bytes, declared_bytes(subject));
  return PlainCopy{j->job,
                   subject.at("launch").at("name"),
                   j->run.provenance(),
                   j->run.plan.at("tier").at("name"),
                   bytes,
                   cost.at("energy_per_launch_j"),
                   cost.at("latency_s"),
                   cost.at("power_w")};
}

Result<Json> arm_json(const StudyJob& j, const std::string& arm, const Json& idle,
                      const PlainCopies& copies) {
  const auto& cost = j.run.analysis.at("arms").at(arm);
  const auto& subject = j.subject(arm);
  const auto windows = accepted_windows(j.run, arm);
  HEBE_TRY(auto capped, share_of_time(windows, {"power_cap_ns"}));
  HEBE_TRY(auto throttled,
           share_of_time(windows, {"thermal_ns", "hw_thermal_ns", "power_brake_ns", "sync_ns"}));
  HEBE_TRY(const auto moved, moved_bytes(subject));
  return Json{{"variant", j.qualification().at(arm == "A" ? "a" : "b")},
              {"cubin_sha256", j.run.plan.at("arms").at(arm).at("cubin_sha256")},
              {"energy_per_launch_j", cost.at("energy_per_launch_j")},
              {"latency_s", cost.at("latency_s")},
              {"power_w", cost.at("power_w")},
              {"sm_clock_mhz", mean_at_edges(windows, "sm_clock_mhz")},
              {"memory_clock_mhz", mean_at_edges(windows, "memory_clock_mhz")},
              {"power_capped_ratio", capped},
              {"throttled_ratio", throttled},
              {"split", split_json(idle, cost)},
              {"floor", floor_json(cost, moved, copies)},
              {"mechanism", subject.value("mechanism", Json())}};
}

} // namespace

Result<PlainCopies> plain_copies_of(const StudyRuns& s) {
  PlainCopies out;
  HEBE_TRY(out.floor, plain_copy(s.of_role("floor")));
  HEBE_TRY(out.control, plain_copy(s.of_role("control")));
  return out;
}

Result<Json> study_arms(const StudyJob& contrast, const PlainCopies& copies) {
  HEBE_TRY(const auto idle, idle_power(contrast.run));
  HEBE_TRY(auto a, arm_json(contrast, "A", idle, copies));
  HEBE_TRY(auto b, arm_json(contrast, "B", idle, copies));
  return Json{{"A", a}, {"B", b}};
}

} // namespace hebe::evidence
