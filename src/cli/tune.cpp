// hebe tune: the implementation of an operation that costs least, by shape; as a profile.
#include "tune/tune.hpp"
#include "campaign/job.hpp"
#include "cli/campaign_request.hpp"
#include "cli/case_name.hpp"
#include "cli/packages.hpp"
#include "cli/qualify.hpp"
#include "cli/tune_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace fs = std::filesystem;
namespace {

struct Options {
  std::string spec;
  std::vector<std::string> shapes;
  std::optional<std::string> verify, tier;
  std::optional<int> pairs;
  std::optional<double> window, warm_up;
  std::optional<std::uint64_t> seed;
  bool redact = false;
};

// The file's protocol, with what the command line says instead; another tier has its own minima.
Status override_protocol(campaign::JobSpec& protocol, const Options& o) {
  if (o.tier && *o.tier != protocol.tier.name) {
    HEBE_TRY(protocol.tier, measure::tier_named(*o.tier));
    protocol.pairs = protocol.tier.min_pairs;
    protocol.window = protocol.tier.min_window;
    protocol.warm_up = protocol.tier.min_warm_up;
  }
  if (o.pairs) protocol.pairs = *o.pairs;
  if (o.window) protocol.window = Seconds(*o.window);
  if (o.warm_up) protocol.warm_up = Seconds(*o.warm_up);
  if (o.seed) protocol.seed = o.seed;
  return {};
}

Result<tune::TuneRequest> request_from(const Context& c, const Options& o) {
  tune::TuneRequest r;
  if (o.spec.empty())
    return refuse(RefusalCode::bad_argument, "no specification was named",
                  "give a file, or the name of one in studies/");
  HEBE_TRY(const auto file, spec_named(c, o.spec));
  HEBE_TRY(r.spec, tune::read_tune_spec(file, [&c](const std::string& name, const fs::path& base) {
             return case_named(c, name, base);
           }));
  HEBE_CHECK(override_protocol(r.spec.protocol, o));
  HEBE_CHECK(tune::keep_shapes(r.spec, o.shapes));
  const auto& all = r.spec.backends;
  if (std::ranges::any_of(all, [](auto& b) { return b.kind == "cublaslt"; }))
    r.spec.packages = python_packages(c);
  r.dry_run = c.dry_run;
  HEBE_TRY(r.job.machine, c.machine(r.spec.protocol.seed.value_or(0)));
  r.job.worker = c.worker();
  r.job.scratch = c.scratch();
  r.job.argv = c.recorded_argv();
  r.job.variables = c.variables;
  r.job.redact = o.redact;
  r.job.sealer = sealer_of(c);
  return r;
}

int refused(const Context& c, Refusal r) {
  if (r.not_written.empty() && r.code != RefusalCode::interrupted) r.not_written = "the profile";
  return c.refused(r);
}

int run(const Context& c, const Options& o) {
  if (o.verify) return verify_tune(c, *o.verify);
  const auto request = request_from(c, o);
  if (!request) return refused(c, request.error());
  ProgressBar bar(c.quiet);
  watch_for_interrupt();
  const auto outcome = tune::run_tune(evidence::DataRoot(c.data_root), *request, callbacks_of(bar));
  bar.finish();
  if (!outcome) return refused(c, outcome.error());
  if (c.dry_run) return tell_tune_preview(c, outcome->record), 0;
  return report_tune(c, *outcome);
}

} // namespace

Command tune_command() {
  return {"tune", "choose the implementation that costs least, by shape: a profile",
          [](CLI::App& app, Context& c) -> std::function<int()> {
            auto o = std::make_shared<Options>();
            app.add_option("spec", o->spec, "specification: a file, or a name in studies/");
            app.add_option("--shape", o->shapes, "only this shape (repeatable)");
            app.add_option("--protocol-tier", o->tier, "of finalists: smoke-v1 or confirmation-v1");
            app.add_option("--pairs", o->pairs, "of finalists: pairs of windows");
            app.add_option("--batch-seconds", o->window, "of finalists: length of a window");
            app.add_option("--warm-up-seconds", o->warm_up, "of finalists: at least this long");
            add_seed(app, o->seed,
                     "of order, phases and simulated noise (default: random; 0 on the "
                     "simulated GPU)");
            app.add_flag("--redact", o->redact,
                         "hash host name and UUIDs in the sealed runs, the "
                         "record and the profile");
            stands_alone(app, app.add_option("--verify", o->verify,
                                             "look at a stored tune again, from its readings and "
                                             "samples on: part of its id, its file, or \"\" for "
                                             "the newest"));
            return [o, &c] { return run(c, *o); };
          }};
}

} // namespace hebe::cli
