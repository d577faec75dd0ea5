// hebe run-verify: digests, schemas, and the analysis computed again from the samples.
#include "cli/context.hpp"
#include "evidence/verify.hpp"

namespace hebe::cli {
namespace {

int run(const Context& c, const std::string& name) {
  const evidence::DataRoot root(c.data_root);
  const auto directory = name.empty() ? [&]() -> Result<std::filesystem::path> {
    if (auto newest = root.newest_run()) return *newest;
    return refuse(RefusalCode::not_found, "there is no run in this data root",
                  "measure one with `hebe run-aa`", root.runs().string());
  }()
      : root.find_run(name);
  if (!directory) return c.refused(directory.error());
  const auto report = evidence::verify_run(*directory);
  if (!report) return c.refused(report.error());
  if (c.json) {
    Json problems = Json::array();
    for (const auto& p : report->problems)
      problems.push_back({{"code", name_of(p.code)}, {"what", p.what}, {"where", p.where}});
    c.print_json(
        {{"directory", report->directory.string()},
         {"seal", report->seal},
         {"valid", report->valid()},
         {"passed", report->passed},
         {"not_checked", report->not_checked},
         {"problems", problems},
         {"verdict", report->analysis.is_object() ? report->analysis.at("verdict") : Json(nullptr)},
         {"qualified",
          report->analysis.is_object() ? report->analysis.at("qualified") : Json(nullptr)}});
  } else {
    c.print(report->directory.string());
    for (const auto& text : report->passed) c.print("  ok           " + text);
    for (const auto& text : report->not_checked) c.print("  not checked  " + text);
    for (const auto& p : report->problems) c.print("  BAD          " + p.where + ": " + p.what);
    c.print(report->valid() ? "verified" : "NOT what was sealed");
  }
  return static_cast<int>(report->valid() ? ExitCode::done : ExitCode::bad_data);
}

} // namespace

Command run_verify_command() {
  return {
      "run-verify",
      "Verify a sealed run: every digest and schema, then the analysis recomputed from the samples",
      [](CLI::App& app, Context& c) {
        auto name = std::make_shared<std::string>();
        app.add_option("run", *name,
                       "run directory, run id, or a unique part of one (default: the newest)");
        return [&c, name] { return run(c, *name); };
      }};
}

} // namespace hebe::cli
