// hebe ingest: seals finished measurements (compaction to Parquet, verified) and indexes them.
#include "cli/context.hpp"
#include "evidence/captured_run.hpp"
#include "evidence/catalog.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

int run(const Context& c, const std::vector<std::string>& names) {
  const evidence::DataRoot root(c.data_root);
  std::vector<std::filesystem::path> captured;
  for (const auto& name : names) captured.push_back(std::filesystem::absolute(name));
  if (names.empty()) captured = root.captured();
  Json sealed = Json::array();
  for (const auto& directory : captured) {
    if (c.dry_run) {
      c.print("would seal " + directory.string());
      continue;
    }
    const auto run = evidence::seal_captured(root, directory);
    if (!run) return c.refused(run.error());
    sealed.push_back({{"run_id", run->run_id},
                      {"seal", run->seal},
                      {"directory", run->directory.string()},
                      {"bytes", run->bytes}});
    // The run is safe; an index that cannot be written is made anew later.
    if (const auto added = evidence::Catalog::add(root, run->directory); !added)
      tell("hebe: sealed, but not in the catalog (`hebe catalog-rebuild`): " +
           to_text(added.error()) + "\n");
    if (!c.json) c.print("sealed: " + run->directory.string());
  }
  if (c.json) c.print_json({{"sealed", sealed}});
  if (!c.json && captured.empty()) c.print("nothing waits to be sealed");
  return static_cast<int>(ExitCode::done);
}

} // namespace

Command ingest_command() {
  return {
      "ingest",
      "Seal finished measurements that a dead process left: compact their telemetry to Parquet, "
      "verify, index",
      [](CLI::App& app, Context& c) {
        auto names = std::make_shared<std::vector<std::string>>();
        app.add_option("captured", *names, "captured directories (default: all of the data root)");
        return [&c, names] { return run(c, *names); };
      }};
}

} // namespace hebe::cli
