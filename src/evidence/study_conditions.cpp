#include "evidence/study_conditions.hpp"

#include "evidence/qualified_arms.hpp"
#include "evidence/study_agreement.hpp"

#include <fmt/format.h>

#include <map>

namespace hebe::evidence {
namespace {
using measure::Condition;

constexpr const char* kTier = "confirmation-v1";
constexpr std::size_t kDigits = 12; ///< of a digest that is as it must be
constexpr const char* kNoEnergy = "none: nothing was measured";

void add(std::string& list, const std::string& item, const char* between = "; ") {
  list += (list.empty() ? "" : between) + item;
}

Condition one_tier(const StudyRuns& s) {
  Condition c{std::string("tier is ") + kTier, true, {}};
  for (const char* role : {"aa", "primary", "control"})
    if (const auto* j = s.of_role(role)) {
      const auto& tier = j->run.plan.at("tier");
      c.holds = c.holds && tier.at("name") == kTier && tier.value("is_evidence", false);
      add(c.evidence, j->job + " " + tier.at("name").get<std::string>(), ", ");
    }
  return c;
}

std::string effect_words(const Json& analysis, const char* quantity) {
  const auto& e = analysis.at(quantity);
  const auto& ends = e.at("interval_" + e.at("interval_shown").get<std::string>());
  return fmt::format("{} {:+.4f} % [{:+.4f}, {:+.4f}] {}", quantity,
                     e.at("effect_percent").get<double>(), ends.at("low_percent").get<double>(),
                     ends.at("high_percent").get<double>(), e.at("verdict").get<std::string>());
}

Condition aa_equivalent(const StudyRuns& s) {
  const auto& a = s.aa().run.analysis;
  return {"A/A equivalent in energy and latency",
          a.at("energy").at("verdict") == "equivalent" &&
              a.at("latency").at("verdict") == "equivalent",
          effect_words(a, "energy") + ", " + effect_words(a, "latency")};
}

// What its own analysis says, and all that it says of a condition that does not hold there.
Condition run_qualified(std::string_view name, const StudyJob* j) {
  if (j == nullptr) return {std::string(name), false, "the study has none"};
  const auto& a = j->run.analysis;
  std::size_t hold = 0;
  std::string fails;
  for (const auto& c : a.at("conditions"))
    if (c.at("holds").get<bool>())
      ++hold;
    else
      add(fails,
          c.at("name").get<std::string>() + " (" + c.at("evidence").get<std::string>() + ")");
  return {std::string(name), a.at("qualified"),
          fmt::format("{}: verdict {}, {} of its {} conditions hold{}", j->job,
                      a.at("verdict").get<std::string>(), hold, a.at("conditions").size(),
                      fails.empty() ? "" : "; not: " + fails)};
}

Condition control_seen(const StudyRuns& s) {
  const auto* j = s.of_role("control");
  if (j == nullptr) return {"control seen", false, "the study has no control"};
  const auto& control = j->run.analysis.at("control");
  const auto predicted = [&](const char* quantity) {
    const auto& p = control.at("predicted").at(quantity);
    return fmt::format("predicted {:+.2f} to {:+.2f} %", p.at("low_percent").get<double>(),
                       p.at("high_percent").get<double>());
  };
  return {"control seen", control.at("seen"),
          fmt::format("{}, {}; {}, {}", effect_words(j->run.analysis, "energy"),
                      predicted("energy"), effect_words(j->run.analysis, "latency"),
                      predicted("latency"))};
}

Condition cubins_are_the_qualified(const StudyRuns& s) {
  Condition c{"every measured cubin is the qualified one", true, {}};
  for (const auto* j : s.judged()) {
    if (j->role == "control") continue; // its kernel is no candidate
    const auto& q = j->qualification();
    for (const auto& [arm, variant] : {std::pair("A", q.at("a")), {"B", q.at("b")}}) {
      const std::string measured = j->run.plan.at("arms").at(arm).at("cubin_sha256");
      const auto& found = *qualified_kernel(s.qualification, q.at("point"), variant);
      const auto due =
          found.at("artifacts").is_object() ? found.at("artifacts").at("cubin") : Json();
      const auto who = fmt::format("{} arm {} ({} at {})", j->job, arm, variant.get<std::string>(),
                                   q.at("point").get<std::string>());
      if (due == measured) {
        add(c.evidence, who + " " + measured.substr(0, kDigits));
      } else {
        c.holds = false;
        add(c.evidence, fmt::format("{}: measured {}, qualified {}", who, measured,
                                    due.is_null() ? "none" : due.get<std::string>()));
      }
    }
  }
  return c;
}

Condition qualification_holds(const StudyRuns& s) {
  const auto& r = s.qualification;
  Condition c{"qualification passed on a GPU and knows no energy",
              r.at("qualified").get<bool>() && r.at("provenance") == "gpu" &&
                  r.at("energy_labels") == kNoEnergy,
              fmt::format("{}: {}, provenance {}, energy {}", r.at("name").get<std::string>(),
                          r.at("qualified").get<bool>() ? "qualified" : "not qualified",
                          r.at("provenance").get<std::string>(),
                          r.at("energy_labels").get<std::string>())};
  for (const auto* j : s.contrasts()) {
    const auto& q = j->qualification();
    for (const char* arm : {"a", "b"}) {
      const auto& v = *qualified_kernel(r, q.at("point"), q.at(arm));
      if (v.at("qualified").get<bool>()) continue;
      c.holds = false;
      add(c.evidence, fmt::format("{} at {} is not qualified: {}", q.at(arm).get<std::string>(),
                                  q.at("point").get<std::string>(), v.at("failed").dump()));
    }
    for (const auto& row : r.at("measurement_cases").at("cases"))
      if (row.at("point") == q.at("point") && row.at("a") == q.at("a") &&
          row.at("b") == q.at("b") && !row.at("eligible").get<bool>()) {
        c.holds = false;
        add(c.evidence, j->job + " is not eligible: " + row.at("why_not").get<std::string>());
      }
  }
  return c;
}

// The check compares output by output where the arms' launches differ; the digests of each arm's
// outputs are there in any case.
std::pair<bool, std::string> equal_bits(const Json& check) {
  bool equal = true;
  std::string text;
  const auto against = check.value("B_against_A", Json::object());
  for (const auto& [output, said] : against.items()) {
    equal = equal && said == "equal bits";
    add(text, output + ": " + (said.is_string() ? said.get<std::string>() : said.dump()), ", ");
  }
  const auto digests = [&](const char* arm) {
    std::map<std::string, Json> out;
    const auto outputs = check.value(arm, Json());
    if (outputs.is_object())
      for (const auto& [output, found] : outputs.items())
        if (found.is_object() && found.contains("sha256")) out[output] = found.at("sha256");
    return out;
  };
  const auto a = digests("A"), b = digests("B");
  if (a != b || text.empty())
    for (const auto& [output, digest] : a) {
      const auto other = b.find(output);
      const bool same = other != b.end() && other->second == digest;
      equal = equal && same;
      add(text,
          same ? output + ": both " + digest.get<std::string>().substr(0, kDigits)
               : fmt::format("{}: {} and {}", output, digest.dump(),
                             other == b.end() ? "none" : other->second.dump()),
          ", ");
    }
  equal = equal && a.size() == b.size();
  if (text.empty()) return {false, "not known: the check names no output"};
  return {equal, text};
}

Condition outputs_equal(const StudyRuns& s) {
  Condition c{"outputs of both arms have equal bits where the qualification says so", true, {}};
  for (const auto* j : s.contrasts()) {
    if (!j->qualification().at("equal_bits").get<bool>()) {
      add(c.evidence, j->job + ": within tolerance, as qualified");
      continue;
    }
    const auto [equal, text] = equal_bits(j->run.acquisition.at("check"));
    c.holds = c.holds && equal;
    add(c.evidence, j->job + ": " + text);
  }
  return c;
}

} // namespace

std::vector<Condition> study_conditions(const StudyRuns& s) {
  std::vector<Condition> out = {
      one_tier(s),
      {"provenance is measured", s.primary().run.provenance() == "measured",
       fmt::format("all {} runs are {}", s.jobs.size(), s.primary().run.provenance())},
      aa_equivalent(s),
      run_qualified("A/A run qualified", &s.aa()),
      control_seen(s),
      run_qualified("control's run qualified", s.of_role("control")),
      run_qualified(kPrimaryQualified, &s.primary())};
  for (auto& c : jobs_agree(s)) out.push_back(std::move(c));
  out.push_back(cubins_are_the_qualified(s));
  out.push_back(qualification_holds(s));
  out.push_back(outputs_equal(s));
  return out;
}

} // namespace hebe::evidence
