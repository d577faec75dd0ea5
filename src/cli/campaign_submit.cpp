// hebe campaign-submit and hebe resume: a frozen campaign's pending jobs, here or through Slurm.
#include "campaign/submission.hpp"
#include "cli/campaign_request.hpp"
#include "cli/ladder_report.hpp"
#include "cli/study_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace {

struct CampaignSubmitOptions {
  std::string campaign, engine;
  std::string study; ///< of a fixed name: the newest pending campaign of it will do
  campaign::SlurmOptions slurm;
  bool redact = false, accept_clock = false;
};

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0;;) {
    const auto end = text.find(',', begin);
    out.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return out;
    begin = end + 1;
  }
}

Json json_of_campaign_submit(const campaign::FrozenCampaign& campaign,
                             const campaign::SubmitOutcome& o) {
  Json jobs = Json::array();
  for (std::size_t i = 0; i < campaign.jobs.size(); ++i) {
    const auto& job = o.state.jobs[i];
    Json row{
        {"id", campaign.jobs[i].id}, {"state", name_of(job.state)}, {"attempts", job.attempts}};
    if (job.state == campaign::JobState::sealed)
      row.update({{"run", job.run}, {"seal", job.seal}, {"verdict", job.verdict}});
    if (!job.refusal.empty() && job.state != campaign::JobState::sealed)
      row.update({{"refusal", job.refusal}, {"what", job.what}});
    jobs.push_back(std::move(row));
  }
  return {{"campaign", campaign.id},
          {"engine", o.engine},
          {"sealed_now", o.work.sealed_now},
          {"pending", o.state.pending()},
          {"slurm_jobs", o.slurm.job_ids},
          {"analysis", o.analysis.empty() ? Json(nullptr) : Json(o.analysis)},
          {"jobs", jobs}};
}

void tell_campaign_submit(const Context& c, const campaign::FrozenCampaign& campaign,
                          const campaign::SubmitOutcome& o) {
  if (o.engine == "slurm" && o.state.pending() > 0) {
    std::string ids;
    for (const auto& id : o.slurm.job_ids) ids += (ids.empty() ? "" : ", ") + id;
    c.print(fmt::format("campaign {}: {} jobs queued in Slurm ({})", campaign.id, o.state.pending(),
                        ids));
    c.print("next: hebe queue-status " + campaign.id + " --watch");
    return;
  }
  c.print(fmt::format("campaign {}: {} of {} jobs sealed ({} now)", campaign.id,
                      o.state.count(campaign::JobState::sealed), o.state.jobs.size(),
                      o.work.sealed_now));
  for (std::size_t i = 0; i < campaign.jobs.size() && campaign.jobs.size() <= 50; ++i) {
    const auto& job = o.state.jobs[i];
    c.print(fmt::format("  {:<24} {:<12} {}", campaign.jobs[i].id, name_of(job.state),
                        job.state == campaign::JobState::sealed ? job.verdict + "  " + job.run
                                                                : job.refusal));
  }
  if (!o.analysis.empty()) c.print("analysis: " + o.analysis);
  if (o.work.held_elsewhere > 0)
    c.print(fmt::format("{} jobs are being measured by other processes (hebe queue-status)",
                        o.work.held_elsewhere));
  if (o.state.pending() > 0) c.print("next: hebe resume " + campaign.id);
}

int run_campaign_submit(const Context& c, const CampaignSubmitOptions& o, bool resume) {
  const evidence::DataRoot root(c.data_root);
  const auto campaign = o.study.empty() || !o.campaign.empty()
                            ? campaign::load_campaign(root, o.campaign)
                            : campaign::pending_study(root, o.study);
  if (!campaign) return c.refused(campaign.error());
  if (!o.study.empty() && campaign->name != o.study)
    return c.refused({RefusalCode::bad_argument,
                      fmt::format("campaign {} is of \"{}\", not of \"{}\"", campaign->id,
                                  campaign->name, o.study),
                      campaign->directory.string(),
                      "go on with it by `hebe resume`",
                      {}});
  ProgressBar bar(c.quiet);
  campaign::SubmitRequest request;
  request.resume = resume;
  request.accept_clock = o.accept_clock;
  request.engine = o.engine;
  request.slurm = o.slurm;
  request.program = own_program();
  request.devices = split_at_commas(c.device);
  auto first = c;
  first.device = request.devices.front();
  auto work = work_request(first, bar);
  if (!work) return c.refused(work.error());
  work->sealer = sealer_of(c);
  work->ingest = ingest_of(c);
  work->redact = o.redact;
  request.work = std::move(*work);
  for (const auto& fault : c.faults)
    request.worker_options.insert(request.worker_options.end(), {"--sim-fault", fault});
  if (o.redact) request.worker_options.push_back("--redact");
  for (const char* name : {"HEBE_HOME", "HEBE_PYTHON", "TMPDIR", "LD_LIBRARY_PATH"})
    if (const auto hit = c.variables.find(name); hit != c.variables.end())
      request.slurm_environment[name] = hit->second;
  if (c.dry_run) {
    const auto state = campaign::Journal::glance(*campaign);
    if (!state) return c.refused(state.error());
    const auto text = fmt::format("would measure {} of {} jobs; nothing was begun",
                                  state->pending(), campaign->jobs.size());
    if (c.json)
      c.print_json({{"campaign", campaign->id}, {"pending", state->pending()}});
    else
      c.print(text);
    return static_cast<int>(ExitCode::done);
  }
  watch_for_interrupt();
  const auto outcome = campaign::submit_campaign(root, *campaign, request, callbacks_of(bar));
  bar.finish();
  if (!outcome) return c.refused(outcome.error());
  if (campaign->ladder && outcome->engine == "local") return report_ladder(c, *campaign, *outcome);
  if (!campaign->design.is_null() && outcome->engine == "local")
    return report_study(c, *campaign, *outcome);
  for (const auto& r : outcome->work.refusals) cli::tell("hebe: " + to_text(r) + "\n");
  if (c.json)
    c.print_json(json_of_campaign_submit(*campaign, *outcome));
  else
    tell_campaign_submit(c, *campaign, *outcome);
  if (outcome->engine == "slurm" && outcome->state.pending() > 0)
    return static_cast<int>(ExitCode::done);
  if (!outcome->work.refusals.empty())
    return static_cast<int>(exit_code_of(outcome->work.refusals.back().code));
  return static_cast<int>(exit_code_of(outcome->state));
}

Command command(const char* name, const char* help, bool resume) {
  return {
      name, help, [resume](CLI::App& app, Context& c) {
        auto o = std::make_shared<CampaignSubmitOptions>();
        app.add_option("campaign", o->campaign, "campaign id, or a unique part of one")->required();
        app.add_option("--engine", o->engine,
                       resume ? "local or slurm (default: the one before)"
                              : "local or slurm (default: local)")
            ->check(CLI::IsMember({"local", "slurm"}));
        app.add_option("--partition", o->slurm.partition, "slurm: partition");
        app.add_option("--account", o->slurm.account, "slurm: account");
        app.add_option("--gres", o->slurm.gres, "slurm: generic resources of a task")
            ->capture_default_str();
        app.add_option("--time-limit", o->slurm.time_limit, "slurm: time limit of a task");
        app.add_option("--max-parallel", o->slurm.max_parallel,
                       "slurm: tasks at a time (default: as many as there is room for)")
            ->check(whole_number_from(0));
        app.add_option("--sbatch-option", o->slurm.extra,
                       "slurm: a further option of sbatch (repeatable)");
        if (resume)
          app.add_flag("--accept-clock", o->accept_clock,
                       "the wall clock is right now and stood ahead once: go on from now");
        app.add_flag("--redact", o->redact, "hash host name and UUIDs in the records");
        return [&c, o, resume] { return run_campaign_submit(c, *o, resume); };
      }};
}

} // namespace

Command campaign_submit_command() {
  return command(
      "campaign-submit",
      "Measure a frozen campaign: here, on one GPU or several (--device A,B), or through "
      "Slurm",
      false);
}

Command resume_study_command() {
  return {"resume-layernorm-reintegration-study",
          "Go on with a reintegration study: exactly its pending jobs, in the same boot session",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<CampaignSubmitOptions>();
            o->study = "layernorm-reintegration-study";
            app.add_option("campaign", o->campaign,
                           "its campaign (default: the newest with pending jobs)");
            app.add_flag("--redact", o->redact, "hash host name and UUIDs in the records");
            return [&c, o] { return run_campaign_submit(c, *o, true); };
          }};
}

Command resume_command() {
  return command("resume",
                 "Go on with a campaign: exactly its pending jobs, if everything it depends on is "
                 "what it was",
                 true);
}

} // namespace hebe::cli
