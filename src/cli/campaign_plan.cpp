// hebe campaign-plan: validates a campaign and freezes it; nothing is written where a job is wrong.
#include "campaign/frozen_campaign.hpp"
#include "cli/case_name.hpp"
#include "cli/context.hpp"
#include "cli/progress_bar.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

struct CampaignPlanOptions {
  std::string spec;
  std::optional<int> arch;
};

// The machine here says what the plans are for, unless the campaign is for another one: --arch.
Result<campaign::PlanRequest> request_from_campaign_plan(const Context& c,
                                                         const CampaignPlanOptions& o) {
  campaign::PlanRequest r;
  HEBE_TRY(const auto machine_request, c.machine(0));
  r.target.faults = machine_request.faults;
  if (o.arch) {
    if (c.device != "auto" || !c.faults.empty())
      return refuse(RefusalCode::bad_argument,
                    "--arch plans for a real GPU that is not here; --device and --sim-fault are "
                    "about one that is",
                    "give one or the other", "--arch");
    r.target.arch = *o.arch;
    r.memory = {1ULL << 40}; // checked where it runs
  } else {
    HEBE_TRY(const auto machine, campaign::Machine::open(machine_request));
    r.target.simulated = machine->simulated();
    r.target.arch = machine->info().arch;
    r.memory = machine->memory();
  }
  r.worker = c.worker();
  r.scratch = c.scratch();
  r.dry_run = c.dry_run;
  r.interrupted = [] { return interrupted(); };
  return r;
}

int run_campaign_plan(const Context& c, const CampaignPlanOptions& o) {
  const auto spec = campaign::read_campaign_spec(
      o.spec, [&c](const std::string& name, const std::filesystem::path& base) {
        return case_named(c, name, base);
      });
  if (!spec) return c.refused(spec.error());
  auto request = request_from_campaign_plan(c, o);
  if (!request) return c.refused(request.error());
  watch_for_interrupt();
  ProgressBar bar(c.quiet);
  request->progress = [&](std::size_t done, std::size_t all) {
    bar.show({"planning", static_cast<double>(done) / static_cast<double>(all), Seconds(0), {}});
  };
  const auto outcome = campaign::plan_campaign(evidence::DataRoot(c.data_root), *spec, *request);
  bar.finish();
  if (!outcome) {
    auto refusal = outcome.error();
    if (refusal.not_written.empty()) refusal.not_written = "the campaign";
    return c.refused(refusal);
  }
  const auto& campaign = outcome->campaign;
  const bool real = !request->target.simulated;
  if (c.json) {
    Json jobs = Json::array();
    for (const auto& job : campaign.jobs)
      jobs.push_back({{"id", job.id}, {"plan_id", job.plan_id}});
    c.print_json({{"campaign", campaign.id},
                  {"directory", campaign.directory.string()},
                  {"session", campaign.study ? "study" : "free"},
                  {"provenance", real ? "measured" : "simulated"},
                  {"existed", outcome->existed},
                  {"written", !c.dry_run && !outcome->existed},
                  {"estimated_s", outcome->estimated.value()},
                  {"jobs", jobs}});
  } else {
    c.print(fmt::format("campaign {}: {} jobs for a {} GPU (sm_{}), {}; about {:.0f} s of GPU time",
                        campaign.id, campaign.jobs.size(), real ? "real" : "simulated",
                        request->target.arch,
                        campaign.study ? "one study" : "in any order, on any such board",
                        outcome->estimated.value()));
    if (c.dry_run)
      c.print("nothing was frozen (--dry-run)");
    else
      c.print((outcome->existed ? "frozen before: " : "frozen: ") + campaign.directory.string());
    if (!c.dry_run) c.print("next: hebe campaign-submit " + campaign.id);
  }
  return static_cast<int>(ExitCode::done);
}

} // namespace

Command campaign_plan_command() {
  return {
      "campaign-plan",
      "Validate a campaign (TOML or JSON) and freeze it: every job compiled, checked and hashed",
      [](CLI::App& app, Context& c) {
        auto o = std::make_shared<CampaignPlanOptions>();
        app.add_option("spec", o->spec, "campaign file (docs/campaigns.md)")->required();
        app.add_option("--arch", o->arch,
                       "plan for a real GPU of this compute capability (90: sm_90) that is not "
                       "in this machine")
            ->check(CLI::Range(50, 999));
        return [&c, o] { return run_campaign_plan(c, *o); };
      }};
}

} // namespace hebe::cli
