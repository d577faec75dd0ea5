#include "cli/probe_report.hpp"

#include "cli/case_name.hpp"

namespace hebe::cli {

void add_probe_options(CLI::App& app, ProbeOptions& o) {
  app.add_option("--case", o.subject,
                 "the kernel that loads the board: a name in kernels/, or "
                 "file.py[:function]")
      ->capture_default_str();
  app.add_option("--set", o.parameters, "case parameter NAME=VALUE (repeatable)");
  app.add_option("--seed", o.seed, "of the simulated board's noise (default 0)")
      ->check(CLI::NonNegativeNumber);
}

Result<campaign::ProbeRequest> probe_request(const Context& c, const ProbeOptions& o) {
  campaign::ProbeRequest r;
  HEBE_TRY(r.machine, c.machine(o.seed.value_or(0)));
  HEBE_TRY(r.subject, case_named(c, o.subject, std::filesystem::current_path()));
  r.subject.parameters = Json::object();
  for (const auto& text : o.parameters) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return refuse(RefusalCode::bad_argument, "\"" + text + "\" is not NAME=VALUE", {}, "--set");
    const auto value = text.substr(equals + 1);
    const auto parsed = Json::parse(value, nullptr, false);
    r.subject.parameters[text.substr(0, equals)] = parsed.is_discarded() ? Json(value) : parsed;
  }
  r.subject.options = Json::object();
  r.worker = c.worker();
  r.scratch = c.scratch();
  return r;
}

int refused_probe(const Context& c, Refusal refusal) {
  if (refusal.not_written.empty() && refusal.code != RefusalCode::interrupted)
    refusal.not_written = "the qualification";
  return c.refused(refusal);
}

int verify_qualification(const Context& c, evidence::QualificationKind kind,
                         const std::string& name, const evidence::FindAgain& find) {
  const auto report =
      evidence::verify_qualification(evidence::DataRoot(c.data_root), kind, name, find);
  if (!report) return c.refused(report.error());
  if (c.json) {
    Json problems = Json::array();
    for (const auto& p : report->problems)
      problems.push_back({{"code", hebe::name_of(p.code)}, {"what", p.what}, {"where", p.where}});
    c.print_json({{"id", report->seal},
                  {"file", report->directory.string()},
                  {"valid", report->valid()},
                  {"passed", report->passed},
                  {"problems", problems}});
  } else {
    c.print(report->directory.string());
    for (const auto& text : report->passed) c.print("  ok           " + text);
    for (const auto& p : report->problems) c.print("  BAD          " + p.where + ": " + p.what);
    c.print(report->valid() ? "verified" : "NOT what was recorded");
  }
  return static_cast<int>(report->valid() ? ExitCode::done : ExitCode::bad_data);
}

} // namespace hebe::cli
