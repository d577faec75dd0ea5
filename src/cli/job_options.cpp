#include "cli/job_options.hpp"

#include "cli/campaign_request.hpp"
#include "cli/case_name.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

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

} // namespace

Result<campaign::JobRequest> job_request(const Context& c, const JobOptions& o) {
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

void tell_conditions(const Context& c, const measure::Analysis& a) {
  if (a.qualified) return c.print("  qualified: every condition holds");
  c.print("  not qualified as evidence:");
  for (const auto& k : a.conditions)
    if (!k.holds) c.print(fmt::format("    {}: {}", k.name, k.evidence));
}

int exit_for(const measure::Analysis& a) {
  if (a.claim_holds) return static_cast<int>(ExitCode::done);
  return static_cast<int>(a.verdict == measure::Verdict::inconclusive ? ExitCode::inconclusive
                                                                      : ExitCode::claim_fails);
}

void add_job_options(CLI::App& app, JobOptions& o) {
  app.add_option("--case", o.subject, "kernel case: a name in kernels/, or file.py[:function]")
      ->capture_default_str();
  app.add_option("--set", o.parameters, "case parameter NAME=VALUE (repeatable)");
  app.add_option("--option", o.options,
                 "Triton compile option NAME=VALUE, e.g. num_warps=8 (repeatable)");
  app.add_option("--protocol-tier", o.tier, "smoke-v1 or confirmation-v1")->capture_default_str();
  app.add_option("--pairs", o.pairs, "pairs of windows (default: the tier's minimum)");
  app.add_option("--batch-seconds", o.window,
                 "length of a window in seconds (default: the tier's minimum)");
  app.add_option("--warm-up-seconds", o.warm_up,
                 "at least this long (default: the tier's minimum)");
  add_seed(app, o.seed,
           "of order, phases, resampling and simulated noise (default: random; 0 "
           "on the simulated GPU)");
  app.add_option("--energy-margin", o.energy_margin, "equivalence margin in percent")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 50.0));
  app.add_option("--latency-margin", o.latency_margin, "equivalence margin in percent")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 50.0));
  app.add_flag("--redact", o.redact, "hash host name and UUIDs in the record");
}

} // namespace hebe::cli
