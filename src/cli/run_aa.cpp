// hebe run-aa: one A/A job, sealed.
#include "campaign/job.hpp"
#include "cli/campaign_request.hpp"
#include "cli/case_name.hpp"
#include "cli/context.hpp"
#include "cli/progress_bar.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace {

struct Options {
  std::string subject = "vector-add", tier = "confirmation-v1";
  std::optional<int> pairs;
  std::optional<double> window, warm_up;
  std::optional<std::uint64_t> seed;
  double energy_margin = 0.5, latency_margin = 0.25;
  std::vector<std::string> parameters, options;
  bool redact = false;
};

Result<Json> assignments(const std::vector<std::string>& texts, const char* option) {
  Json out = Json::object();
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return refuse(RefusalCode::bad_argument, "\"" + text + "\" is not NAME=VALUE", {}, option);
    // Options of Triton are typed JSON where they look like it; case parameters are converted by
    // the case.
    const auto value = text.substr(equals + 1);
    const auto parsed = Json::parse(value, nullptr, false);
    out[text.substr(0, equals)] = parsed.is_discarded() ? Json(value) : parsed;
  }
  return out;
}

Result<campaign::JobRequest> request_from(const Context& c, const Options& o) {
  campaign::JobRequest r;
  HEBE_TRY(r.tier, measure::tier_named(o.tier));
  r.pairs = o.pairs.value_or(r.tier.min_pairs);
  r.window = Seconds(o.window.value_or(r.tier.min_window.value()));
  r.warm_up = Seconds(o.warm_up.value_or(r.tier.min_warm_up.value()));
  r.seed = o.seed;
  r.margins = {o.energy_margin, o.latency_margin};
  HEBE_TRY(r.subject, case_named(c, o.subject, std::filesystem::current_path()));
  HEBE_TRY(r.subject.parameters, assignments(o.parameters, "--set"));
  HEBE_TRY(r.subject.options, assignments(o.options, "--option"));
  HEBE_TRY(r.machine, c.machine(o.seed.value_or(0)));
  r.worker = c.worker();
  r.scratch = c.scratch();
  r.argv = c.recorded_argv();
  r.variables = c.variables;
  r.redact = o.redact;
  r.sealer = sealer_of(c);
  return r;
}

std::string contrast_line(const char* what, const measure::Contrast& k) {
  return fmt::format("  {:<8} {:+.4f} %  [{:+.4f}, {:+.4f}]  margin ±{:.3g} %  TOST p {:.2g}  "
                     "spread {:.4f} %  -> {}",
                     what, measure::percent(k.effect), measure::percent(k.shown().low),
                     measure::percent(k.shown().high), measure::percent(k.margin), k.tost.p,
                     100 * k.spread, measure::name_of(k.verdict));
}

void tell(const Context& c, const campaign::JobOutcome& o) {
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
  if (!a.qualified) {
    c.print("  not qualified as evidence:");
    for (const auto& k : a.conditions)
      if (!k.holds) c.print(fmt::format("    {}: {}", k.name, k.evidence));
  } else {
    c.print("  qualified: every condition holds");
  }
  c.print("seal:   " + o.run.seal);
  c.print("record: " + o.run.directory.string());
}

int exit_for(const measure::Analysis& a) {
  if (a.claim_holds) return static_cast<int>(ExitCode::done);
  return static_cast<int>(a.verdict == measure::Verdict::inconclusive ? ExitCode::inconclusive
                                                                      : ExitCode::claim_fails);
}

int run(const Context& c, const Options& o) {
  const auto request = request_from(c, o);
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
    tell(c, *outcome);
  return exit_for(outcome->analysis);
}

} // namespace

Command run_aa_command() {
  return {"run-aa",
          "Measure a kernel against itself: the noise floor of this board, as a sealed equivalence "
          "test",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<Options>();
            app.add_option("--case", o->subject,
                           "kernel case: a name in kernels/, or file.py[:function]")
                ->capture_default_str();
            app.add_option("--set", o->parameters, "case parameter NAME=VALUE (repeatable)");
            app.add_option("--option", o->options,
                           "Triton compile option NAME=VALUE, e.g. num_warps=8 (repeatable)");
            app.add_option("--protocol-tier", o->tier, "smoke-v1 or confirmation-v1")
                ->capture_default_str();
            app.add_option("--pairs", o->pairs, "pairs of windows (default: the tier's minimum)");
            app.add_option("--batch-seconds", o->window,
                           "length of a window in seconds (default: the tier's minimum)");
            app.add_option("--warm-up-seconds", o->warm_up,
                           "at least this long (default: the tier's minimum)");
            app.add_option("--seed", o->seed,
                           "of order, phases, resampling and simulated noise (default: random; 0 "
                           "on the simulated GPU)")
                ->check(CLI::NonNegativeNumber);
            app.add_option("--energy-margin", o->energy_margin, "equivalence margin in percent")
                ->capture_default_str()
                ->check(CLI::Range(1e-6, 50.0));
            app.add_option("--latency-margin", o->latency_margin, "equivalence margin in percent")
                ->capture_default_str()
                ->check(CLI::Range(1e-6, 50.0));
            app.add_flag("--redact", o->redact, "hash host name and UUIDs in the record");
            return [&c, o] { return run(c, *o); };
          }};
}

} // namespace hebe::cli
