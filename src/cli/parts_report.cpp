#include "cli/parts_report.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

Json parts_json(const evidence::PartsReport& whole) {
  Json rows = Json::array();
  for (const auto& [what, report] : whole.parts) {
    Json problems = Json::array();
    for (const auto& p : report.problems) problems.push_back(refusal_json(p));
    rows.push_back({{"what", what},
                    {"valid", report.valid()},
                    {"passed", report.passed},
                    {"not_checked", report.not_checked},
                    {"problems", problems}});
  }
  return rows;
}

void print_parts(const Context& c, const evidence::PartsReport& whole) {
  for (const auto& [what, report] : whole.parts) {
    c.print(what);
    for (const auto& text : report.passed) c.print("  ok           " + text);
    for (const auto& text : report.not_checked) c.print("  not checked  " + text);
    for (const auto& p : report.problems)
      c.print(fmt::format("  BAD          {}: {}", p.where, p.what));
  }
  c.print(!whole.valid()   ? "NOT what was sealed"
          : whole.complete ? "verified"
                           : "incomplete: what is not here was not checked, and nothing is said of "
                             "the whole");
}

} // namespace

int report_parts(const Context& c, Json named, const evidence::PartsReport& whole) {
  if (c.json) {
    named.update(
        {{"valid", whole.valid()}, {"complete", whole.complete}, {"parts", parts_json(whole)}});
    c.print_json(named);
  } else {
    print_parts(c, whole);
  }
  if (!whole.valid()) return static_cast<int>(ExitCode::bad_data);
  return static_cast<int>(whole.complete ? ExitCode::done : ExitCode::inconclusive);
}

} // namespace hebe::cli
