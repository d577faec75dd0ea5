// hebe compare: whether two or more stored studies repeat each other.
#include "cli/context.hpp"
#include "evidence/study_comparison.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

// Numbers, for A and B are the arms.
std::string numbered(const Json& study) { return fmt::format("study {}", study.get<int>() + 1); }

std::string optional_number(const Json& v, const char* format) {
  return v.is_null() ? std::string("-") : fmt::format(fmt::runtime(format), v.get<double>());
}

void quantity(const Context& c, const std::string& name, const Json& q) {
  for (const auto& e : q.at("effects"))
    c.print(fmt::format("  {:<8} {} {:+.4f} %  [{:+.4f}, {:+.4f}]  {} pairs", name,
                        numbered(e.at("study")), e.at("effect_percent").get<double>(),
                        e.at("low_percent").get<double>(), e.at("high_percent").get<double>(),
                        e.at("pairs").get<int>()));
  for (const auto& d : q.at("between")) {
    const auto one = numbered(d.at("studies")[0]), two = numbered(d.at("studies")[1]);
    const auto in = [](const Json& inside) { return inside.get<bool>() ? "inside" : "outside"; };
    c.print(
        fmt::format("           {} lies {} the interval of {}, {} {} that of {}; the intervals {}",
                    one, in(d.at("first_inside_second")), two, two, in(d.at("second_inside_first")),
                    one, d.at("intervals_overlap").get<bool>() ? "overlap" : "do not overlap"));
    c.print(fmt::format(
        "           {} less {}: {:+.4f} ± {:.4f} %, t {}, p {}{}", two, one,
        d.at("difference_percent").get<double>(), d.at("standard_error_percent").get<double>(),
        optional_number(d.at("t"), "{:+.2f}"), optional_number(d.at("p"), "{:.2g}"),
        d.contains("p_holm") ? " (Holm " + optional_number(d.at("p_holm"), "{:.2g}") + ")"
                             : std::string()));
  }
  const auto& s = q.at("spread");
  c.print(fmt::format("           spread between studies {} %; the pairs lead to expect {:.4f} %",
                      optional_number(s.at("between_studies_percent"), "{:.4f}"),
                      s.at("expected_from_pairs_percent").get<double>()));
}

void arm(const Context& c, const char* name, const Json& a) {
  std::string values;
  for (const auto& v : a.at("values"))
    values += fmt::format("{}{} {}", values.empty() ? "" : ", ", numbered(v.at("study")),
                          optional_number(v.at("energy_per_launch_j"), "{:.7g} J"));
  const auto& s = a.at("spread");
  c.print(fmt::format("  arm {} ({}), a launch: {}{}", name, a.at("variant").get<std::string>(),
                      values,
                      s.is_null() ? ""
                                  : fmt::format("; spread {:.3f} %, range {:.3f} %",
                                                s.at("sd_percent").get<double>(),
                                                s.at("range_percent").get<double>())));
}

void heading(const Context& c, const Json& comparison) {
  int number = 0;
  for (const auto& s : comparison.at("studies")) {
    c.print(fmt::format("{}: {} ({}, {}, {})", numbered(Json(number++)),
                        s.at("study").get<std::string>(), s.at("provenance").get<std::string>(),
                        s.at("tier").get<std::string>(),
                        s.at("study_qualified").get<bool>() ? "qualified" : "NOT qualified"));
    c.print("  " + s.at("id").get<std::string>());
    for (const auto& name : s.at("only_here")) c.print("  only here: " + name.get<std::string>());
  }
  for (const auto& row : comparison.at("platform")) {
    const auto& equal = row.at("equal");
    c.print(fmt::format("{:<8} {}: {}", row.at("what").get<std::string>(),
                        equal.is_null()     ? "not known of each"
                        : equal.get<bool>() ? "equal"
                                            : "DIFFERS",
                        equal.is_boolean() && equal.get<bool>() ? row.at("values")[0].dump()
                                                                : row.at("values").dump()));
  }
  for (const auto& note : comparison.at("notes")) c.print("note: " + note.get<std::string>());
}

void print_compare(const Context& c, const Json& comparison) {
  heading(c, comparison);
  for (const auto& contrast : comparison.at("contrasts")) {
    c.print(fmt::format("{}: {} against {}{}", contrast.at("point").get<std::string>(),
                        contrast.at("b").get<std::string>(), contrast.at("a").get<std::string>(),
                        contrast.at("primary").get<bool>() ? " (primary)" : ""));
    for (const char* name : {"energy", "latency", "power"})
      quantity(c, name, contrast.at("quantities").at(name));
    for (const char* name : {"A", "B"}) arm(c, name, contrast.at("arms").at(name));
  }
  c.print("A/A");
  for (const auto& [name, q] : comparison.at("aa").items()) quantity(c, name, q);
  c.print(fmt::format("{}: {}", comparison.at("result").get<std::string>(),
                      comparison.at("reason").get<std::string>()));
  c.print("  rule: " + comparison.at("rule").get<std::string>());
}

int run_compare(const Context& c, const std::vector<std::string>& names) {
  const evidence::DataRoot root(c.data_root);
  std::vector<evidence::ComparedStudy> studies;
  for (const auto& name : names) {
    auto study = evidence::find_compared_study(root, name);
    if (!study) return c.refused(study.error());
    studies.push_back(std::move(*study));
  }
  const auto comparison = evidence::study_comparison(studies);
  if (!comparison) return c.refused(comparison.error());
  if (c.json)
    c.print_json(*comparison);
  else
    print_compare(c, *comparison);
  const auto& result = comparison->at("result");
  return static_cast<int>(result == "inside"    ? ExitCode::done
                          : result == "outside" ? ExitCode::claim_fails
                                                : ExitCode::inconclusive);
}

} // namespace

Command compare_command() {
  return {"compare", "Say whether two or more stored studies repeat each other",
          [](CLI::App& app, Context& c) {
            auto names = std::make_shared<std::vector<std::string>>();
            app.add_option("study", *names,
                           "a study's or an analysis's id, a unique part of one, its directory, or "
                           "a path to an analysis.json; two or more")
                ->required();
            return [&c, names] { return run_compare(c, *names); };
          }};
}

} // namespace hebe::cli
