// hebe run-aa: one A/A job, sealed.
#include "campaign/job.hpp"
#include "cli/campaign_request.hpp"
#include "cli/context.hpp"
#include "cli/job_options.hpp"
#include "cli/progress_bar.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace {

void tell_run_aa(const Context& c, const campaign::JobOutcome& o) {
  const auto& a = o.analysis;
  const auto& arm = a.json.at("arms").at("A");
  const auto provenance = std::string(name_of(o.acquisition.provenance));
  c.print(fmt::format("A/A verdict: {}{}", measure::name_of(a.verdict),
                      a.reason.empty() ? "" : " (" + a.reason + ")"));
  c.print(contrast_line("energy", a.energy));
  c.print(contrast_line("latency", a.latency));
  c.print(fmt::format("  arm A: {:.6g} J per launch ({}), {:.6g} s, {:.1f} W",
                      arm.at("energy_per_launch_j").get<double>(), provenance,
                      arm.at("latency_s").get<double>(), arm.at("power_w").get<double>()));
  const auto& w = a.json.at("windows");
  c.print(fmt::format(
      "  largest GPU idle before a window {:.3f} ms; counter within {:.2f} % of the samples; "
      "latency cv {:.4f} %; sampler {}",
      1e3 * w.at("largest_idle_s").get<double>(),
      100 * w.at("largest_meter_disagreement_ratio").get<double>(),
      100 * arm.at("latency_cv_ratio").get<double>(),
      o.acquisition.sampler_cpu_share
          ? fmt::format("{:.2f} % of a core", 100 * *o.acquisition.sampler_cpu_share)
          : "in virtual time"));
  tell_conditions(c, a);
  c.print("seal:   " + o.run.seal);
  c.print("record: " + o.run.directory.string());
}

int run_aa(const Context& c, const JobOptions& o) {
  const auto request = job_request(c, o);
  if (!request) return c.refused(request.error());
  const evidence::DataRoot root(c.data_root);
  ProgressBar bar(c.quiet);
  const auto callbacks = callbacks_of(bar);
  if (c.dry_run) {
    const auto preview = campaign::preview_job(root, *request, callbacks);
    if (!preview) return c.refused(preview.error());
    if (c.json)
      c.print_json({{"plan_id", preview->plan_id},
                    {"plan", preview->plan},
                    {"estimated_s", preview->estimated.value()}});
    else
      c.print(fmt::format("plan {}: about {:.0f} s on the GPU; nothing was run", preview->plan_id,
                          preview->estimated.value()));
    return static_cast<int>(ExitCode::done);
  }
  watch_for_interrupt();
  const auto outcome = campaign::run_job(root, *request, callbacks);
  bar.finish();
  if (!outcome) {
    auto refusal = outcome.error();
    if (refusal.not_written.empty() && refusal.code != RefusalCode::interrupted)
      refusal.not_written = "the run's record";
    return c.refused(refusal);
  }
  if (c.json)
    c.print_json({{"run_id", outcome->run.run_id},
                  {"seal", outcome->run.seal},
                  {"directory", outcome->run.directory.string()},
                  {"bytes", outcome->run.bytes},
                  {"analysis", outcome->analysis.json}});
  else
    tell_run_aa(c, *outcome);
  return exit_for(outcome->analysis);
}

} // namespace

Command run_aa_command() {
  return {"run-aa",
          "Measure a kernel against itself: the noise floor of this board, as a sealed equivalence "
          "test",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<JobOptions>();
            add_job_options(app, *o);
            return [&c, o] { return run_aa(c, *o); };
          }};
}

} // namespace hebe::cli
