#include "report/study_page.hpp"

#include "report/arm_table.hpp"
#include "report/effect_table.hpp"
#include "report/markup.hpp"
#include "report/members.hpp"
#include "report/origin_section.hpp"
#include "report/page_style.hpp"
#include "report/quantity_text.hpp"
#include "report/verdict_words.hpp"

#include <fmt/format.h>

namespace hebe::report {
namespace {

std::string shown(const Json& json) {
  const auto words = text(json);
  return words.empty() ? unknown("not in the analysis") : escaped(words);
}

std::string section(const char* title, const std::string& body) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", title, body);
}

std::string head(const Json& study) {
  auto out = warning_banner(study);
  out += element("h1", "Study " + shown(member(study, {"study", "name"}))) + "\n";
  if (const auto& words = member(study, {"study", "description"}); !text(words).empty())
    out += element("p", shown(words)) + "\n";
  out += element("p", verdict_sentence(study), R"(class="verdict")") + "\n";
  out += element(
      "p", fmt::format("{} The claim: {}. Verdict on energy: {}.", qualification_sentence(study),
                       yes_or_no(member(study, {"claim_holds"}), "holds", "does not hold"),
                       shown(member(study, {"verdict"}))));
  return element("header", out) + "\n";
}

std::string conditions(const Json& study) {
  const auto& all = member(study, {"conditions"});
  if (!all.is_array() || all.empty()) return element("p", unknown("no condition is listed"));
  std::string rows;
  for (const auto& c : all)
    rows += element("tr", element("th", shown(member(c, {"name"})), R"(scope="row")") +
                              element("td", yes_or_no(member(c, {"holds"}))) +
                              element("td", shown(member(c, {"evidence"})))) +
            "\n";
  return element("table",
                 R"(<thead><tr><th scope="col">condition</th><th scope="col">holds</th>)"
                 R"(<th scope="col">evidence</th></tr></thead>)" +
                     element("tbody", rows),
                 R"(class="conditions")");
}

// Verdict and claim of one job; what keeps it from being qualified stands beside it.
std::string judgement(const Json& job) {
  auto out = fmt::format("Verdict: {}. The claim: {}. ", shown(member(job, {"verdict"})),
                         yes_or_no(member(job, {"claim_holds"}), "holds", "does not hold"));
  if (job.contains("run_qualified"))
    out += fmt::format("Its run: {}. With the study's conditions: ",
                       yes_or_no(member(job, {"run_qualified"}), "qualified", "not qualified"));
  out += yes_or_no(member(job, {"qualified"}), "qualified", "not qualified") + ".";
  if (const auto reason = text(member(job, {"reason"})); !reason.empty())
    out += " Reason: " + escaped(reason) + ".";
  return element("p", out);
}

std::string contrast(const Json& c) {
  auto out = element("h3", fmt::format("{}: {} against {} <small>{}</small>",
                                       shown(member(c, {"point"})), shown(member(c, {"b"})),
                                       shown(member(c, {"a"})), shown(member(c, {"role"})))) +
             "\n" + judgement(c);
  if (const auto& words = member(c, {"words"}); words.is_array() && !words.empty()) {
    std::string items;
    for (const auto& w : words) items += element("li", shown(w));
    out += element("ul", items);
  }
  return out + "\n" + arm_table(member(c, {"arms"})) + "\n";
}

std::string contrasts(const Json& study) {
  const auto& all = member(study, {"contrasts"});
  if (!all.is_array() || all.empty()) return element("p", unknown("the analysis has no contrast"));
  std::string out;
  for (const auto& c : all) out += contrast(c);
  return out;
}

std::string checks(const Json& study) {
  std::string out;
  for (const auto& [name, title, none] :
       {std::tuple("aa", "A/A", "the analysis has no A/A"),
        std::tuple("control", "Control", "the study has no control")}) {
    const auto& job = member(study, {name});
    out += element("h3", title) + (job.is_object() ? judgement(job) : element("p", unknown(none))) +
           "\n";
  }
  const auto& floor = member(study, {"floor"});
  out += element("h3", "Floor");
  if (!floor.is_object()) return out + element("p", unknown("the study has no floor job"));
  const auto quantity = [&](const char* name, const char* unit) {
    const auto v = number(member(floor, {name}));
    return v ? with_prefix(*v, unit) : unknown("not in the analysis");
  };
  const auto bytes = number(member(floor, {"bytes"}));
  return out +
         element("p", fmt::format("{} moves {} bytes and computes nothing: {} a launch, {}, {} "
                                  "({}). No kernel that moves as much goes below it.",
                                  shown(member(floor, {"case"})),
                                  bytes ? count_text(*bytes) : unknown("not in the analysis"),
                                  quantity("energy_per_launch_j", "J"), quantity("latency_s", "s"),
                                  quantity("power_w", "W"), shown(member(floor, {"tier"}))));
}

} // namespace

std::string study_page(const Json& study) {
  return fmt::format(
             "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>"
             "<meta charset=\"utf-8\"/>\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
             "<title>Study {}</title>\n<style>{}</style></head>\n<body>\n",
             escaped(text(member(study, {"study", "name"}))), kPageStyle) +
         head(study) + section("Effects", study_svg(study) + effect_table(study)) +
         section("Conditions", conditions(study)) + section("Contrasts", contrasts(study)) +
         section("A/A, control and floor", checks(study)) + origin_section(study) +
         "</body>\n</html>\n";
}

} // namespace hebe::report
