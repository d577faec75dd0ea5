#include "cli/probe_report.hpp"

#include "cli/case_name.hpp"

namespace hebe::cli {

void add_probe_options(CLI::App& app, ProbeOptions& o) {
  app.add_option("--case", o.subject,
                 "the kernel that loads the board: a name in kernels/, or "
                 "file.py[:function]")
      ->capture_default_str();
  app.add_option("--set", o.parameters, "case parameter NAME=VALUE (repeatable)");
  add_seed(app, o.seed, "of the simulated board's noise (default 0)");
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

Refusal with_not_written(Refusal refusal) {
  if (refusal.not_written.empty() && refusal.code != RefusalCode::interrupted)
    refusal.not_written = "the qualification";
  return refusal;
}

int refused_probe(const Context& c, Refusal refusal) {
  return c.refused(with_not_written(std::move(refusal)));
}

namespace {

Json json_of_probe_report(const evidence::VerifyReport& report) {
  Json problems = Json::array();
  for (const auto& p : report.problems)
    problems.push_back({{"code", hebe::name_of(p.code)}, {"what", p.what}, {"where", p.where}});
  return {{"id", report.seal},
          {"file", report.directory.string()},
          {"valid", report.valid()},
          {"passed", report.passed},
          {"problems", problems}};
}

void print_report(const Context& c, const evidence::VerifyReport& report) {
  c.print(report.directory.string());
  for (const auto& text : report.passed) c.print("  ok           " + text);
  for (const auto& p : report.problems) c.print("  BAD          " + p.where + ": " + p.what);
  c.print(report.valid() ? "verified" : "NOT what was recorded");
}

} // namespace

int verify_qualification(const Context& c, evidence::QualificationKind kind,
                         const std::string& name, const evidence::FindAgain& find) {
  const evidence::DataRoot root(c.data_root);
  std::vector<std::string> names{name};
  if (name.empty()) {
    auto newest = evidence::newest_of_each_board(root, kind);
    if (!newest) return c.refused(newest.error());
    if (!newest->empty()) names = std::move(*newest);
  }
  Json records = Json::array();
  bool valid = true;
  for (const auto& one : names) {
    const auto report = evidence::verify_qualification(root, kind, one, find);
    if (!report) return c.refused(report.error());
    valid = valid && report->valid();
    records.push_back(json_of_probe_report(*report));
    if (!c.json) print_report(c, *report);
  }
  if (c.json && records.size() == 1)
    c.print_json(records.front());
  else if (c.json)
    c.print_json({{"records", records}, {"valid", valid}});
  return static_cast<int>(valid ? ExitCode::done : ExitCode::bad_data);
}

} // namespace hebe::cli
