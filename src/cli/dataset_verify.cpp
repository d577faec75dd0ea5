// hebe dataset-verify: digests, schemas, counts, and the rows against the runs that are still
// there.
#include "evidence/dataset_verify.hpp"
#include "cli/context.hpp"
#include "evidence/dataset.hpp"

namespace hebe::cli {
namespace {

int run_dataset_verify(const Context& c, const std::string& name) {
  const evidence::DataRoot root(c.data_root);
  const auto directory = evidence::find_dataset(root, name);
  if (!directory) return c.refused(directory.error());
  const auto report = evidence::verify_dataset(root, *directory);
  if (!report) return c.refused(report.error());
  if (c.json) {
    Json problems = Json::array();
    for (const auto& p : report->problems)
      problems.push_back({{"code", name_of(p.code)}, {"what", p.what}, {"where", p.where}});
    c.print_json({{"directory", report->directory.string()},
                  {"id", report->directory.filename().string()},
                  {"valid", report->valid()},
                  {"passed", report->passed},
                  {"not_checked", report->not_checked},
                  {"problems", problems}});
  } else {
    c.print(report->directory.string());
    for (const auto& text : report->passed) c.print("  ok           " + text);
    for (const auto& text : report->not_checked) c.print("  not checked  " + text);
    for (const auto& p : report->problems) c.print("  BAD          " + p.where + ": " + p.what);
    c.print(report->valid() ? "verified" : "NOT what was frozen");
  }
  return static_cast<int>(report->valid() ? ExitCode::done : ExitCode::bad_data);
}

} // namespace

Command dataset_verify_command() {
  return {"dataset-verify",
          "Verify a dataset: every digest, schema and count, then its rows against their runs",
          [](CLI::App& app, Context& c) {
            auto name = std::make_shared<std::string>();
            app.add_option("dataset", *name,
                           "dataset directory, id, or a unique part of one (default: the newest)");
            return [&c, name] { return run_dataset_verify(c, *name); };
          }};
}

} // namespace hebe::cli
