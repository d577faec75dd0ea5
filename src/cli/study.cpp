// hebe study and hebe run: contrasts of one qualification, as a study or the primary one alone; and
// the fixed names that are rows of them.
#include "campaign/study.hpp"
#include "cli/campaign_request.hpp"
#include "cli/case_name.hpp"
#include "cli/job_options.hpp"
#include "cli/qualify.hpp"
#include "cli/study_report.hpp"
#include "evidence/dataset.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace fs = std::filesystem;
namespace {

struct StudyOptions {
  std::string spec, qualification;
  std::optional<std::string> verify, tier;
  std::optional<int> pairs;
  std::optional<double> window, warm_up, energy_margin, latency_margin;
  std::optional<std::uint64_t> seed;
  bool redact = false;
};

// The file's protocol, with what the command line says instead; another tier has its own minima.
Status override_protocol(campaign::JobSpec& protocol, const StudyOptions& o) {
  if (o.tier && *o.tier != protocol.tier.name) {
    HEBE_TRY(protocol.tier, measure::tier_named(*o.tier));
    protocol.pairs = protocol.tier.min_pairs;
    protocol.window = protocol.tier.min_window;
    protocol.warm_up = protocol.tier.min_warm_up;
  }
  if (o.pairs) protocol.pairs = *o.pairs;
  if (o.window) protocol.window = Seconds(*o.window);
  if (o.warm_up) protocol.warm_up = Seconds(*o.warm_up);
  if (o.energy_margin) protocol.margins.energy_percent = *o.energy_margin;
  if (o.latency_margin) protocol.margins.latency_percent = *o.latency_margin;
  if (o.seed) protocol.seed = o.seed;
  return {};
}

Result<campaign::StudyRequest> request_from_study(const Context& c, const StudyOptions& o,
                                                  ProgressBar& bar) {
  campaign::StudyRequest r;
  if (o.spec.empty())
    return refuse(RefusalCode::bad_argument, "no study was named",
                  "give a file, or the name of one in studies/");
  HEBE_TRY(const auto file, spec_named(c, o.spec));
  const auto resolve = [&c](const std::string& name, const fs::path& base) {
    return case_named(c, name, base);
  };
  HEBE_TRY(r.spec, campaign::read_study_spec(file, resolve));
  HEBE_CHECK(override_protocol(r.spec.protocol, o));
  r.find_case = [&c, folder = r.spec.folder](const std::string& name) {
    return case_named(c, name, folder);
  };
  r.qualification = o.qualification;
  r.dry_run = c.dry_run;
  HEBE_TRY(r.job.machine, c.machine(r.spec.protocol.seed.value_or(0)));
  r.job.worker = c.worker();
  r.job.scratch = c.scratch();
  r.job.argv = c.recorded_argv();
  r.job.variables = c.variables;
  r.job.redact = o.redact;
  r.job.sealer = sealer_of(c);
  HEBE_TRY(r.submit, local_submission(c, bar, o.redact));
  return r;
}

int refused(const Context& c, Refusal r, const char* what) {
  if (r.not_written.empty() && r.code != RefusalCode::interrupted) r.not_written = what;
  return c.refused(r);
}

void preview_study(const Context& c, const campaign::StudyRequest& r, Seconds estimated) {
  Json contrasts = Json::array();
  for (const auto& k : r.spec.contrasts)
    contrasts.push_back({{"point", k.point}, {"a", k.a}, {"b", k.b}});
  if (c.json)
    c.print_json({{"study", r.spec.name},
                  {"tier", r.spec.protocol.tier.name},
                  {"contrasts", contrasts},
                  {"estimated_s", estimated.value()}});
  else
    c.print(fmt::format("study {} ({}): A/A, {} contrasts{}{}; about {:.0f} s on the GPU; nothing "
                        "was run",
                        r.spec.name, r.spec.protocol.tier.name, r.spec.contrasts.size(),
                        r.spec.control ? ", control" : "", r.spec.floor ? ", floor" : "",
                        estimated.value()));
}

int study(const Context& c, const StudyOptions& o) {
  if (o.verify) return verify_study(c, *o.verify);
  ProgressBar bar(c.quiet);
  const auto request = request_from_study(c, o, bar);
  if (!request) return refused(c, request.error(), "the study");
  watch_for_interrupt();
  const auto outcome =
      campaign::run_study(evidence::DataRoot(c.data_root), *request, callbacks_of(bar));
  bar.finish();
  if (!outcome) return refused(c, outcome.error(), "the study");
  if (c.dry_run) return preview_study(c, *request, outcome->estimated), 0;
  return report_study(c, outcome->campaign, outcome->submitted);
}

void tell_study(const Context& c, const campaign::StudyRequest& r, const campaign::JobOutcome& o,
                const evidence::StoredDataset& dataset) {
  const auto& k = r.spec.contrasts.front();
  const auto& a = o.analysis;
  c.print(fmt::format(
      "{} against {} at {}: energy is {}{}{}", k.b, k.a, k.point, name_of(a.verdict),
      a.reason.empty() ? "" : " (" + a.reason + ")",
      r.spec.protocol.tier.is_evidence ? "" : " (smoke: checks the plumbing, never evidence)"));
  c.print(contrast_line("energy", a.energy));
  c.print(contrast_line("latency", a.latency));
  c.print(contrast_line("power", a.power));
  for (const char* arm : {"A", "B"}) {
    const auto& of = a.json.at("arms").at(arm);
    c.print(fmt::format("  arm {}: {:.6g} J per launch ({}), {:.6g} s, {:.1f} W", arm,
                        of.at("energy_per_launch_j").get<double>(),
                        name_of(o.acquisition.provenance), of.at("latency_s").get<double>(),
                        of.at("power_w").get<double>()));
  }
  tell_conditions(c, a);
  c.print("seal:    " + o.run.seal);
  c.print("dataset: " + dataset.id);
  c.print("record:  " + o.run.directory.string());
}

int contrast(const Context& c, const StudyOptions& o) {
  ProgressBar bar(c.quiet);
  const auto request = request_from_study(c, o, bar);
  if (!request) return refused(c, request.error(), "the run's record");
  const evidence::DataRoot root(c.data_root);
  watch_for_interrupt();
  if (c.dry_run) {
    const auto looked = campaign::run_study(root, *request, callbacks_of(bar));
    if (!looked) return refused(c, looked.error(), "the run's record");
    auto job = request->spec.protocol;
    job.kind = "ab";
    job.subject_b = job.subject;
    const auto plan = campaign::drafted(job);
    if (!plan) return c.refused(plan.error());
    return preview_study(c, *request, campaign::estimated_duration(*plan)), 0;
  }
  const auto outcome = campaign::run_contrast(root, *request, callbacks_of(bar));
  bar.finish();
  if (!outcome) return refused(c, outcome.error(), "the run's record");
  evidence::DatasetRequest wanted;
  wanted.runs = {outcome->run.run_id};
  const auto planned = evidence::plan_dataset(root, wanted);
  if (!planned) return c.refused(planned.error());
  const auto dataset = evidence::take_dataset(root, *planned);
  if (!dataset) return c.refused(dataset.error());
  if (c.json)
    c.print_json({{"run_id", outcome->run.run_id},
                  {"seal", outcome->run.seal},
                  {"directory", outcome->run.directory.string()},
                  {"bytes", outcome->run.bytes},
                  {"dataset", dataset->id},
                  {"analysis", outcome->analysis.json}});
  else
    tell_study(c, *request, *outcome, *dataset);
  return exit_for(outcome->analysis);
}

void add_options(CLI::App& app, StudyOptions& o) {
  app.add_option("--qualification", o.qualification,
                 "the kernel qualification to measure from: its file, its id, or part of it");
  app.add_option("--protocol-tier", o.tier, "in place of the specification's tier");
  app.add_option("--pairs", o.pairs, "pairs of windows a job (default: the specification's)");
  app.add_option("--batch-seconds", o.window, "length of a window in seconds");
  app.add_option("--warm-up-seconds", o.warm_up, "warm up at least this long");
  add_seed(app, o.seed, "of orders, phases, resampling and simulated noise");
  app.add_option("--energy-margin", o.energy_margin, "equivalence margin in percent")
      ->check(CLI::Range(1e-6, 50.0));
  app.add_option("--latency-margin", o.latency_margin, "equivalence margin in percent")
      ->check(CLI::Range(1e-6, 50.0));
  app.add_flag("--redact", o.redact, "hash host name and UUIDs in the records");
}

// spec: of a fixed name; null: the user names one.
Command command(const char* name, const char* help, const char* spec,
                int (*what)(const Context&, const StudyOptions&)) {
  return {name, help, [spec, what](CLI::App& app, Context& c) {
            auto o = std::make_shared<StudyOptions>();
            if (spec != nullptr)
              o->spec = spec;
            else
              app.add_option("spec", o->spec, "a study: a TOML file, or a name in studies/");
            add_options(app, *o);
            if (what == study)
              stands_alone(app, app.add_option("--verify", o->verify,
                                               "look at a sealed study again, from its samples "
                                               "on: part of its id, its folder, or \"\" for the "
                                               "newest"));
            return [&c, o, what] { return what(c, *o); };
          }};
}

} // namespace

std::vector<Command> study_commands() {
  return {command("study",
                  "Measure a qualified pair of kernels as a causal study: A/A, contrasts, positive "
                  "control under one lease; one sealed answer",
                  nullptr, study),
          command("run", "Measure a study's primary contrast alone, as one sealed run", nullptr,
                  contrast),
          command("run-layernorm-retention",
                  "LayerNorm reading X in every pass against keeping it in registers, as one run",
                  "layernorm-retention-study", contrast),
          command("run-layernorm-retention-study",
                  "The same as a causal study: A/A, primary, control", "layernorm-retention-study",
                  study),
          command("run-layernorm-reintegration-study",
                  "The official LayerNorm against itself with one hoisted load, as a causal study",
                  "layernorm-reintegration-study", study)};
}

} // namespace hebe::cli
