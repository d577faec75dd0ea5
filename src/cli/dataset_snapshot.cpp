// hebe dataset-snapshot: freeze windows, telemetry, mechanism features and labels of sealed runs.
#include "cli/context.hpp"
#include "evidence/dataset.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

int preview_dataset_snapshot(const Context& c, const evidence::DatasetPlan& plan) {
  Json runs = Json::array(), same = Json::array();
  for (const auto& r : plan.runs)
    runs.push_back({{"run_id", r.run_id},
                    {"seal", r.seal},
                    {"provenance", r.provenance},
                    {"kind", r.kind},
                    {"directory", r.directory.string()}});
  for (const auto& [run_id, seal] : plan.origin.same_content)
    same.push_back({{"run_id", run_id}, {"seal", seal}});
  if (c.json) {
    c.print_json({{"dry_run", true}, {"runs", runs}, {"same_content", same}});
    return static_cast<int>(ExitCode::done);
  }
  c.print(fmt::format("would take {} runs, each verified:", plan.runs.size()));
  for (const auto& r : plan.runs)
    c.print(fmt::format("  {}  {}  {}", r.run_id, r.kind, r.provenance));
  for (const auto& [run_id, seal] : plan.origin.same_content)
    c.print(fmt::format("  {}  left out: the same content as another", run_id));
  return static_cast<int>(ExitCode::done);
}

int run_dataset_snapshot(const Context& c, const evidence::DatasetRequest& request) {
  const evidence::DataRoot root(c.data_root);
  const auto plan = evidence::plan_dataset(root, request);
  if (!plan) return c.refused(plan.error());
  if (c.dry_run) return preview_dataset_snapshot(c, *plan);
  const auto taken = evidence::take_dataset(root, *plan);
  if (!taken) return c.refused(taken.error());
  Json rows = Json::object();
  for (const auto& [table, count] : taken->rows) rows[std::string(name_of(table))] = count;
  if (c.json) {
    c.print_json({{"id", taken->id},
                  {"directory", taken->directory.string()},
                  {"existed", taken->existed},
                  {"runs", taken->runs},
                  {"same_content", plan->origin.same_content.size()},
                  {"rows", rows},
                  {"bytes", taken->bytes}});
  } else {
    c.print(taken->directory.string());
    c.print(fmt::format("  {} runs, {} windows, {} telemetry rows, {} bytes", taken->runs,
                        rows.value("windows", 0), rows.value("telemetry", std::int64_t{0}),
                        taken->bytes));
    if (!plan->origin.same_content.empty())
      c.print(fmt::format("  {} runs with the content of another were left out",
                          plan->origin.same_content.size()));
    c.print(taken->existed ? "it exists already, and is whole" : "frozen");
  }
  return static_cast<int>(ExitCode::done);
}

} // namespace

Command dataset_snapshot_command() {
  return {"dataset-snapshot",
          "Freeze windows, telemetry, mechanism features and labels of sealed runs as Parquet",
          [](CLI::App& app, Context& c) {
            auto request = std::make_shared<evidence::DatasetRequest>();
            app.add_option("run", request->runs,
                           "run directories, run ids, or unique parts of one");
            app.add_option("--campaign", request->campaign, "every sealed run of this campaign");
            app.add_flag("--all", request->all, "every sealed run of the data root");
            return [&c, request] { return run_dataset_snapshot(c, *request); };
          }};
}

} // namespace hebe::cli
