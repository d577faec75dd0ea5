// hebe ingest: seals finished measurements (compaction to Parquet, verified) and indexes them.
#include "campaign/reconcile.hpp"
#include "cli/campaign_request.hpp"
#include "cli/context.hpp"

namespace hebe::cli {
namespace {

struct IngestOptions {
  std::vector<std::string> names;
  bool for_worker = false;
};

Json json_of_ingest(const evidence::SealedRun& run) {
  return {{"run_id", run.run_id},
          {"seal", run.seal},
          {"directory", run.directory.string()},
          {"bytes", run.bytes}};
}

// The worker that calls holds the job's lock and writes the journal itself.
Result<std::optional<evidence::SealedRun>> seal(const Context& c, const IngestOptions& o,
                                                const std::filesystem::path& captured) {
  const evidence::DataRoot root(c.data_root);
  const campaign::JobCallbacks callbacks{
      {}, {}, [](const std::string& text) { tell("hebe: " + text + "\n"); }, {}};
  if (!o.for_worker) return campaign::ingest_captured(root, captured, ingest_of(c), callbacks);
  HEBE_TRY(auto run, evidence::seal_captured(root, captured));
  if (const auto added = ingest_of(c)(run.directory); !added)
    callbacks.notice("sealed, but not in the catalog (`hebe catalog-rebuild`): " +
                     to_text(added.error()));
  return std::optional(std::move(run));
}

int run_ingest(const Context& c, const IngestOptions& o) {
  std::vector<std::filesystem::path> captured;
  for (const auto& name : o.names) captured.push_back(std::filesystem::absolute(name));
  if (o.names.empty()) captured = evidence::DataRoot(c.data_root).captured();
  Json sealed = Json::array(), waiting = Json::array();
  std::optional<Refusal> refused; // the last one; the others are not kept from being sealed
  for (const auto& directory : captured) {
    if (c.dry_run) {
      waiting.push_back(directory.string());
      if (!c.json) c.print("would seal " + directory.string());
      continue;
    }
    const auto run = seal(c, o, directory);
    if (!run && run.error().code == RefusalCode::not_found && o.names.empty())
      continue; // sealed meanwhile
    if (!run) {
      if (refused) tell("hebe: " + to_text(*refused) + "\n");
      refused = run.error();
    } else if (*run) {
      sealed.push_back(json_of_ingest(**run));
      if (!c.json) c.print("sealed: " + (*run)->directory.string());
    } else {
      waiting.push_back(directory.string());
      if (!c.json) c.print("left to the living process that has its job: " + directory.string());
    }
  }
  if (refused) return c.refused(*refused);
  if (c.json) c.print_json({{"sealed", sealed}, {"waiting", waiting}});
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
        auto o = std::make_shared<IngestOptions>();
        app.add_option("captured", o->names,
                       "captured directories (default: all of the data root)");
        app.add_flag("--for-worker", o->for_worker)->group(""); // not for people
        return [&c, o] { return run_ingest(c, *o); };
      }};
}

} // namespace hebe::cli
