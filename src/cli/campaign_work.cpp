// hebe campaign-work: what queue engines start; one process, one board, one job or all pending
// ones.
#include "campaign/submission.hpp"
#include "cli/campaign_request.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

struct CampaignWorkOptions {
  std::string campaign;
  std::optional<std::size_t> task;
  bool redact = false;
};

int run_campaign_work(const Context& c, const CampaignWorkOptions& o) {
  const evidence::DataRoot root(c.data_root);
  const auto campaign = campaign::load_campaign(root, o.campaign);
  if (!campaign) return c.refused(campaign.error());
  if (o.task && *o.task >= campaign->jobs.size())
    return c.refused(
        {RefusalCode::bad_argument,
         fmt::format("the campaign has jobs 0 to {}, not {}", campaign->jobs.size() - 1, *o.task),
         "--task",
         {},
         {}});
  ProgressBar bar(c.quiet);
  auto request = work_request(c, bar);
  if (!request) return c.refused(request.error());
  if (o.task) request->only = {*o.task};
  request->redact = o.redact;
  watch_for_interrupt();
  const auto callbacks = callbacks_of(bar);
  const auto outcome = campaign::work_on_campaign(root, *campaign, *request, callbacks);
  bar.finish();
  if (!outcome) return c.refused(outcome.error());
  for (const auto& r : outcome->refusals) tell("hebe: " + to_text(r) + "\n");
  auto journal = campaign::Journal::open(*campaign);
  if (!journal) return c.refused(journal.error());
  // Whoever seals the last job finishes the campaign.
  if (const auto finished = campaign::finish_campaign(root, *campaign, *journal); !finished)
    return c.refused(finished.error());
  if (c.json)
    c.print_json({{"campaign", campaign->id},
                  {"sealed_now", outcome->sealed_now},
                  {"held_elsewhere", outcome->held_elsewhere},
                  {"pending", journal->state().pending()}});
  else
    c.print(fmt::format("campaign {}: {} jobs sealed now, {} pending", campaign->id,
                        outcome->sealed_now, journal->state().pending()));
  if (!outcome->refusals.empty())
    return static_cast<int>(exit_code_of(outcome->refusals.back().code));
  return static_cast<int>(ExitCode::done);
}

} // namespace

Command campaign_work_command() {
  return {"campaign-work",
          "What queue engines start: measure one job of a campaign (--task), or all pending ones",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<CampaignWorkOptions>();
            app.add_option("campaign", o->campaign, "campaign id")->required();
            app.add_option("--task", o->task, "index of one job in the plan, from 0");
            app.add_flag("--redact", o->redact, "hash host name and UUIDs in the records");
            return [&c, o] { return run_campaign_work(c, *o); };
          }};
}

} // namespace hebe::cli
