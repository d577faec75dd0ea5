// hebe catalog-rebuild: the index of the data root, made anew from the directories alone.
#include "cli/context.hpp"
#include "core/parallel.hpp"
#include "evidence/catalog.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

int run_catalog_rebuild(const Context& c) {
  const evidence::DataRoot root(c.data_root);
  if (c.dry_run) {
    c.print("would make " + evidence::Catalog::file_of(root).string() + " from the directories");
    return static_cast<int>(ExitCode::done);
  }
  const auto report = evidence::rebuild_catalog(root, core_count());
  if (!report) return c.refused(report.error());
  auto catalog = evidence::Catalog::open(root);
  if (!catalog) return c.refused(catalog.error());
  Json problems = Json::array();
  const auto listed = catalog->for_each_problem([&](const evidence::CatalogProblem& p) {
    if (c.json)
      problems.push_back({{"path", p.path}, {"kind", p.kind}, {"what", p.what}});
    else
      c.print(fmt::format("  {:<14} {}: {}", p.kind, p.path, p.what));
  });
  if (!listed) return c.refused(listed.error());
  if (c.json)
    c.print_json({{"catalog", report->file.string()},
                  {"version", evidence::kCatalogVersion},
                  {"runs", report->runs},
                  {"campaigns", report->campaigns},
                  {"datasets", report->datasets},
                  {"analyses", report->analyses},
                  {"bytes", report->bytes},
                  {"problems", problems}});
  else
    c.print(fmt::format("{} runs, {} campaigns, {} datasets, {} analyses, {} problems in {}",
                        report->runs, report->campaigns, report->datasets, report->analyses,
                        report->problems, report->file.string()));
  return static_cast<int>(ExitCode::done);
}

} // namespace

Command catalog_rebuild_command() {
  return {"catalog-rebuild",
          "Make the data root's index (catalog.sqlite) anew from the directories alone",
          [](CLI::App&, Context& c) { return [&c] { return run_catalog_rebuild(c); }; }};
}

} // namespace hebe::cli
