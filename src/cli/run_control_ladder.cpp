// hebe run-control-ladder: fractions of extra traffic, replicated, as a frozen campaign; measured,
// analysed, kept as a dataset and drawn.
#include "campaign/control_ladder.hpp"
#include "cli/campaign_request.hpp"
#include "cli/job_options.hpp"
#include "cli/ladder_report.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

struct RunControlLadderOptions : JobOptions {
  // None, the smallest that a few percent of noise still shows, and up to as much again: small ones
  // say where detection ends, large ones give the line its length.
  std::vector<double> fractions = {0, 0.05, 0.1, 0.25, 0.5, 1};
  int replicates = 3;
};

Result<campaign::CampaignSpec> spec_from(const Context& c, const RunControlLadderOptions& o) {
  HEBE_TRY(auto job, job_request(c, o));
  return campaign::ladder_spec({job, o.fractions, o.replicates, o.seed.value_or(0)});
}

Result<campaign::PlanRequest> plan_request(const Context& c) {
  campaign::PlanRequest r;
  HEBE_TRY(const auto wanted, c.machine(0));
  HEBE_TRY(const auto machine, campaign::Machine::open(wanted));
  r.target = {machine->simulated(), machine->info().arch, wanted.faults};
  r.memory = machine->memory();
  r.worker = c.worker();
  r.scratch = c.scratch();
  r.dry_run = c.dry_run;
  r.interrupted = [] { return interrupted(); };
  return r;
}

int run_control_ladder(const Context& c, const RunControlLadderOptions& o) {
  const auto spec = spec_from(c, o);
  if (!spec) return c.refused(spec.error());
  auto request = plan_request(c);
  if (!request) return c.refused(request.error());
  watch_for_interrupt();
  ProgressBar bar(c.quiet);
  request->progress = [&](std::size_t done, std::size_t all) {
    bar.show({"planning", static_cast<double>(done) / static_cast<double>(all), Seconds(0), {}});
  };
  const evidence::DataRoot root(c.data_root);
  const auto planned = campaign::plan_campaign(root, *spec, *request);
  if (!planned) {
    bar.finish();
    auto refusal = planned.error();
    if (refusal.not_written.empty()) refusal.not_written = "the campaign";
    return c.refused(refusal);
  }
  if (c.dry_run) {
    bar.finish();
    if (c.json)
      c.print_json({{"campaign", planned->campaign.id},
                    {"jobs", planned->campaign.jobs.size()},
                    {"estimated_s", planned->estimated.value()}});
    else
      c.print(fmt::format("ladder {}: {} jobs, about {:.0f} s of GPU time; nothing was run",
                          planned->campaign.id, planned->campaign.jobs.size(),
                          planned->estimated.value()));
    return static_cast<int>(ExitCode::done);
  }
  bar.line(
      fmt::format("hebe: ladder {}: {} jobs, about {:.0f} s of GPU time; if it stops, go on with "
                  "`hebe resume {}`",
                  planned->campaign.id, planned->campaign.jobs.size(), planned->estimated.value(),
                  planned->campaign.id));
  const auto submit = local_submission(c, bar, o.redact);
  if (!submit) return c.refused(submit.error());
  const auto outcome =
      campaign::submit_campaign(root, planned->campaign, *submit, callbacks_of(bar));
  bar.finish();
  if (!outcome) return c.refused(outcome.error());
  return report_ladder(c, planned->campaign, *outcome);
}

} // namespace

Command run_control_ladder_command() {
  return {"run-control-ladder",
          "Measure known fractions of extra memory traffic, replicated: the response, its line and "
          "the smallest fraction that is seen",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<RunControlLadderOptions>();
            o->subject = "traffic-control";
            add_job_options(app, *o);
            app.add_option("--fractions", o->fractions,
                           "extra traffic of arm B over arm A's, with commas")
                ->delimiter(',')
                ->capture_default_str();
            app.add_option("--replicates", o->replicates, "jobs at each fraction")
                ->capture_default_str();
            return [&c, o] { return run_control_ladder(c, *o); };
          }};
}

} // namespace hebe::cli
