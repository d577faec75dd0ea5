#include "report/origin_section.hpp"

#include "report/markup.hpp"
#include "report/members.hpp"
#include "report/quantity_text.hpp"
#include "report/verdict_words.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

namespace hebe::report {
namespace {

std::string shown(const Json& json, const char* why = "not in the analysis") {
  const auto words = text(json);
  return words.empty() ? unknown(why) : escaped(words);
}

std::string code(const Json& json, const char* why = "not in the analysis") {
  return text(json).empty() ? unknown(why) : element("code", shown(json));
}

std::string row(const char* name, const std::string& value) {
  return element("tr", element("th", name, R"(scope="row")") + element("td", value)) + "\n";
}

// Members beyond those of the format are shown as they are: a later version's say something too.
std::string platform_rows(const Json& platform) {
  std::string out;
  std::set<std::string_view> told;
  for (const auto& [name, title] :
       {std::pair("board", "board"), std::pair("device_uuid", "board's UUID"),
        std::pair("boot_id", "boot session"), std::pair("driver", "driver"),
        std::pair("hebe", "Hebe"), std::pair("leases", "leases")}) {
    out += row(title, shown(member(platform, {name})));
    told.insert(name);
  }
  if (platform.is_object())
    for (const auto& [name, value] : platform.items())
      if (!told.contains(name)) out += row(escaped(name).c_str(), shown(value));
  return out;
}

std::string calibration(const Json& study) {
  const auto& found = member(study, {"study", "calibration"});
  if (found.is_null())
    return member(study, {"control"}).is_null()
               ? std::string("none: the specification has no control")
               : unknown("the analysis names none");
  return fmt::format("run {}, seal {}", code(member(found, {"run_id"})),
                     code(member(found, {"seal"})));
}

std::string family(const Json& study) {
  const auto& m = member(study, {"multiplicity"});
  const auto alpha = number(member(m, {"alpha"}));
  return fmt::format("{} over {}, alpha {}", shown(member(m, {"method"})),
                     shown(member(m, {"family"})), alpha ? ecmascript_number(*alpha) : unknown(""));
}

std::string facts_table(const Json& study) {
  const auto& s = member(study, {"study"});
  return element(
      "table",
      row("provenance", shown(member(study, {"provenance"}))) +
          row("label", shown(member(study, {"label"}))) +
          row("tier", text(member(study, {"tier"})) == text(member(s, {"tier"}))
                          ? shown(member(study, {"tier"}))
                          : fmt::format("{} (the study's plan: {})", shown(member(study, {"tier"})),
                                        shown(member(s, {"tier"})))) +
          platform_rows(member(study, {"platform"})) +
          row("campaign", code(member(study, {"campaign"}))) +
          row("kernel qualification",
              fmt::format("{}, record {}", shown(member(s, {"qualification_name"})),
                          code(member(s, {"qualification"})))) +
          row("calibration of the control", calibration(study)) +
          row("adjusted for several contrasts", family(study)) +
          row("schema", shown(member(study, {"schema"}))),
      R"(class="facts")");
}

std::vector<const Json*> jobs_of(const Json& study) {
  std::vector<const Json*> out;
  const auto add = [&](const Json& job) {
    if (job.is_object()) out.push_back(&job);
  };
  add(member(study, {"aa"}));
  if (const auto& contrasts = member(study, {"contrasts"}); contrasts.is_array())
    for (const auto& c : contrasts) add(c);
  add(member(study, {"control"}));
  add(member(study, {"floor"}));
  return out;
}

// What the plan says of the job; nothing where its name says it already.
std::string role_of(const Json& planned, const std::string& job) {
  if (!planned.is_array()) return unknown("role");
  for (const auto& p : planned) {
    if (text(member(p, {"job"})) != job) continue;
    const auto role = text(member(p, {"role"}));
    return role.empty() ? unknown("role") : role == job ? "" : escaped(role);
  }
  return unknown("not among the study's jobs");
}

std::string run_row(const Json& job, const std::string& role) {
  auto lines =
      fmt::format("run {}<br/>seal {}", code(member(job, {"run_id"})), code(member(job, {"seal"})));
  if (job.contains("plan_id")) lines += "<br/>plan " + code(member(job, {"plan_id"}));
  return element("tr", element("th", shown(member(job, {"job"})) + " " + element("small", role),
                               R"(scope="row")") +
                           element("td", lines)) +
         "\n";
}

// Each run, and each job of the plan that has none.
std::string runs_table(const Json& study) {
  const auto& planned = member(study, {"study", "jobs"});
  std::string rows;
  std::set<std::string> seen;
  for (const auto* job : jobs_of(study)) {
    const auto name = text(member(*job, {"job"}));
    seen.insert(name);
    rows += run_row(*job, role_of(planned, name));
  }
  if (planned.is_array())
    for (const auto& p : planned)
      if (!seen.contains(text(member(p, {"job"}))))
        rows += element("tr", element("th",
                                      shown(member(p, {"job"})) + " <small>" +
                                          shown(member(p, {"role"})) + "</small>",
                                      R"(scope="row")") +
                                  element("td", unknown("the analysis has no run of this job"))) +
                "\n";
  return element("table", rows, R"(class="facts")");
}

} // namespace

std::string origin_section(const Json& study) {
  const auto& spec = member(study, {"study", "spec"});
  auto out = "<section><h2>Provenance</h2>\n" + facts_table(study) + "<h3>Runs and seals</h3>\n" +
             runs_table(study) + "<h3>The study as specified</h3>\n";
  if (spec.is_null())
    out += element("p", unknown("not in the analysis"));
  else
    out += element(
        "details",
        "<summary>specification</summary>" +
            element("pre", escaped(spec.dump(1, ' ', false, Json::error_handler_t::replace))));
  return out + "</section>\n";
}

} // namespace hebe::report
