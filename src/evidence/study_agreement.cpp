#include "evidence/study_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace hebe::evidence {
namespace {
using measure::Condition;
using Jobs = std::vector<const StudyJob*>;

// Equal over the jobs of a study, or the study is of several platforms. The meter's qualification
// is one of them: another board state was qualified otherwise.
constexpr std::array kPlatform = {"device.name",
                                  "device.cuda_driver",
                                  "board.driver",
                                  "board.vbios",
                                  "board.power_limit_w",
                                  "board.ecc_mode",
                                  "board.mig_enabled",
                                  "board.persistence_mode",
                                  "board.compute_mode",
                                  "board.clock_sm_application_mhz",
                                  "board.clock_memory_application_mhz",
                                  "host.kernel",
                                  "hebe.version",
                                  "hebe.git",
                                  "meter.primary",
                                  "meter.cross_check",
                                  "meter.qualification"};

void add(std::string& list, const std::string& item, const char* between = "; ") {
  list += (list.empty() ? "" : between) + item;
}

// One thing in every job: equal everywhere, or each value with its jobs.
struct Compared {
  bool same = true, known = true;
  std::string text;
};
Compared compared(const Jobs& jobs, std::string_view name,
                  const std::function<Json(const StudyJob&)>& value_of) {
  std::vector<std::pair<Json, std::string>> groups;
  for (const auto* j : jobs) {
    const auto value = value_of(*j);
    const auto hit =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == value; });
    if (hit == groups.end())
      groups.emplace_back(value, j->job);
    else
      hit->second += ", " + j->job;
  }
  Compared out{groups.size() == 1, true, {}};
  for (const auto& [value, in] : groups) {
    out.known = out.known && !value.is_null();
    const auto shown = value.is_null() ? std::string("not known") : value.dump();
    add(out.text, out.same ? shown : shown + " in " + in, " and ");
  }
  out.text = std::string(name) + " " + out.text;
  return out;
}

Compared compared_fact(const Jobs& jobs, std::string_view name) {
  return compared(jobs, name, [&](const StudyJob& j) { return fact_value(j.run, name); });
}

std::string names_of(const Jobs& jobs) {
  std::string out;
  for (const auto* j : jobs) add(out, j->job, ", ");
  return out;
}

// An identity has to be known: two unknown ones are not the same.
Condition same_identity(const char* name, const char* fact, const Jobs& jobs) {
  const auto c = compared_fact(jobs, fact);
  return {name, c.same && c.known, c.text + (c.same ? " in " + names_of(jobs) : "")};
}

Condition all_same(const char* name, const std::vector<Compared>& list, const Jobs& jobs) {
  std::string same, different;
  for (const auto& c : list) add(c.same ? same : different, c.text);
  return {name, different.empty(),
          different.empty() ? same + " in " + names_of(jobs) : "differs: " + different};
}

Condition one_protocol(const Jobs& jobs) {
  std::vector<Compared> list;
  for (const char* member : {"tier", "window_s", "warm_up_s", "analysis"})
    list.push_back(
        compared(jobs, member, [&](const StudyJob& j) { return j.run.plan.at(member); }));
  for (const char* source : {"primary", "cross_check"})
    list.push_back(compared(jobs, std::string(source) + " source",
                            [&](const StudyJob& j) { return j.run.acquisition.at(source); }));
  list.push_back(compared(jobs, "response record", [](const StudyJob& j) {
    const auto response = j.run.acquisition.at("meter").value("response", Json());
    return response.is_object() ? response.value("id", Json()) : Json();
  }));
  // A tier is long, and named: only where it differs its thresholds say how.
  if (list.front().same)
    list.front().text = "tier " + jobs.front()->run.plan.at("tier").at("name").get<std::string>();
  return all_same("same acquisition protocol", list, jobs);
}

Condition platform_stable(const Jobs& jobs) {
  std::vector<Compared> list;
  for (const char* fact : kPlatform) list.push_back(compared_fact(jobs, fact));
  return all_same("stable platform", list, jobs);
}

} // namespace

Json fact_value(const StoredRun& run, std::string_view name) {
  for (const auto& f : run.environment.at("facts"))
    if (f.at("name") == name) return f.value("value", Json());
  return {};
}

namespace {
// NaN: it declares none.
double declared_bytes(const Json& subject) {
  if (!subject.is_object() || !subject.contains("launch")) return std::nan("");
  const auto work = subject.at("launch").value("work", Json());
  if (!work.is_object()) return std::nan("");
  const auto read = integer_from(work.value("bytes_read", Json()), "bytes_read"),
             written = integer_from(work.value("bytes_written", Json()), "bytes_written");
  return read && written ? static_cast<double>(*read) + static_cast<double>(*written)
                         : std::nan("");
}
} // namespace

std::vector<std::string> calibration_faults(const StoredRun& calibration,
                                            const StoredRun& control) {
  std::vector<std::string> out;
  for (const char* fact : {"device.uuid", "host.boot_id"}) {
    const auto then = fact_value(calibration, fact), now = fact_value(control, fact);
    if (then != now) // unknown in both: the study's own conditions do not hold
      out.push_back(fmt::format("{} is {}, the control's {}", fact, then.dump(), now.dump()));
  }
  const auto started = fact_value(calibration, "run.started"),
             after = fact_value(control, "run.started");       // UTC, so that text compares as time
  const bool simulated = started.is_null() && after.is_null(); // where no clock is told
  if (!simulated && (!started.is_string() || !after.is_string() || started > after))
    out.push_back(fmt::format("it started at {}, the control at {}", started.dump(), after.dump()));
  const auto member = [](const Json& subject, const char* object, const char* name) {
    const auto in = subject.value(object, Json::object());
    return in.is_object() ? in.value(name, Json()) : Json();
  };
  const auto &plan = calibration.plan, &due = control.plan;
  if (const auto source = member(plan.at("subject"), "artifacts", "source"),
      controls = member(due.at("subject"), "artifacts", "source");
      source != controls)
    out.push_back(fmt::format("its kernel is of source {}, the control's {}", source.dump(),
                              controls.dump()));
  if (due.value("prediction", Json()).is_null())
    return out.emplace_back("the control predicts nothing"), out;
  const auto& points = due.at("prediction").at("calibration");
  const double plain = points.at("plain_bytes");
  for (const auto& [subject, point] : {std::pair("subject", "low"), {"subject_b", "high"}}) {
    const double named = points.at(point).at("fraction"),
                 ran = declared_bytes(plan.value(subject, Json())) / plain - 1;
    // A case moves whole elements: its declared bytes are near the fraction, not at it.
    if (!(std::abs(ran - named) <= 0.01 * named + 1e-6))
      out.push_back(fmt::format("arm {} declares {:.6g} of extra traffic, the prediction names {}",
                                subject == std::string_view("subject") ? "A" : "B", ran, named));
  }
  return out;
}

std::vector<Condition> jobs_agree(const StudyRuns& s) {
  const auto jobs = s.judged();
  return {same_identity("one boot session", "host.boot_id", jobs),
          same_identity("one board", "device.uuid", jobs), platform_stable(jobs),
          one_protocol(jobs)};
}

} // namespace hebe::evidence
