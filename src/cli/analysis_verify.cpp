// hebe analysis-verify: digest, schema, and the analysis computed again from its runs.
#include "cli/context.hpp"
#include "evidence/analysis_store.hpp"

namespace hebe::cli {
namespace {

Json json_of_analysis_verify(const evidence::VerifyReport& report) {
  Json problems = Json::array();
  for (const auto& p : report.problems)
    problems.push_back({{"code", name_of(p.code)}, {"what", p.what}, {"where", p.where}});
  return {{"id", report.directory.filename().string()},
          {"directory", report.directory.string()},
          {"valid", report.valid()},
          {"passed", report.passed},
          {"not_checked", report.not_checked},
          {"problems", problems}};
}

void print_analysis_verify(const Context& c, const evidence::VerifyReport& report) {
  c.print(report.directory.string());
  for (const auto& text : report.passed) c.print("  ok           " + text);
  for (const auto& text : report.not_checked) c.print("  not checked  " + text);
  for (const auto& p : report.problems) c.print("  BAD          " + p.where + ": " + p.what);
}

int run_analysis_verify(const Context& c, const std::string& name, bool all) {
  const evidence::DataRoot root(c.data_root);
  if (all && !name.empty())
    return c.refused({RefusalCode::bad_argument,
                      "an id and --all exclude each other",
                      {},
                      "give one of them",
                      {}});
  auto ids = all ? evidence::analysis_ids(root) : std::vector<std::string>();
  if (ids.empty()) {
    const auto id = evidence::find_analysis(root, name);
    if (!id) return c.refused(id.error());
    ids.push_back(*id);
  }
  bool valid = true;
  Json list = Json::array();
  for (const auto& id : ids) {
    const auto report = evidence::verify_analysis(root, id);
    if (!report) return c.refused(report.error());
    valid = valid && report->valid();
    list.push_back(json_of_analysis_verify(*report));
    if (!c.json) print_analysis_verify(c, *report);
  }
  if (c.json) c.print_json({{"valid", valid}, {"analyses", list}});
  if (!c.json) c.print(valid ? "verified" : "NOT what was stored");
  return static_cast<int>(valid ? ExitCode::done : ExitCode::bad_data);
}

} // namespace

Command analysis_verify_command() {
  return {"analysis-verify",
          "Verify stored analyses: digest and schema, then computed again from their runs",
          [](CLI::App& app, Context& c) {
            auto name = std::make_shared<std::string>();
            auto all = std::make_shared<bool>(false);
            app.add_option("analysis", *name,
                           "analysis id, or a unique part of one (default: the newest)");
            app.add_flag("--all", *all, "every analysis of the data root");
            return [&c, name, all] { return run_analysis_verify(c, *name, *all); };
          }};
}

} // namespace hebe::cli
