// hebe run-positive-control: extra memory traffic of a known fraction, predicted, measured, sealed.
#include "campaign/positive_control.hpp"
#include "cli/campaign_request.hpp"
#include "cli/job_options.hpp"
#include "cli/progress_bar.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

struct RunPositiveControlOptions : JobOptions {
  double fraction = 1.0;
};

void tell_run_positive_control(const Context& c, const campaign::ControlOutcome& o) {
  const auto& job = o.control;
  const auto& a = job.analysis;
  const auto& control = a.json.at("control");
  const std::string smoke =
      job.analysis.conditions.front().holds ? "" : " (smoke: checks the plumbing, never evidence)";
  c.print(fmt::format("positive control, {:.4g} % extra traffic ({}): {}{}",
                      100 * control.at("fraction").get<double>(),
                      name_of(job.acquisition.provenance),
                      control.at("seen").get<bool>()                ? "seen"
                      : a.verdict == measure::Verdict::inconclusive ? "inconclusive"
                                                                    : "NOT seen",
                      smoke));
  for (const auto& [name, contrast] :
       {std::pair("energy", &a.energy), std::pair("latency", &a.latency)}) {
    const auto& due = control.at("predicted").at(name);
    c.print(fmt::format(
        "  {:<8} {:+.4f} %  [{:+.4f}, {:+.4f}]  predicted {:+.2f} %  ({:+.2f} to {:+.2f})", name,
        measure::percent(contrast->effect), measure::percent(contrast->shown().low),
        measure::percent(contrast->shown().high), due.at("percent").get<double>(),
        due.at("low_percent").get<double>(), due.at("high_percent").get<double>()));
  }
  if (!a.reason.empty()) c.print("  " + a.reason);
  c.print("  " + control.at("power_cap").at("evidence").get<std::string>());
  tell_conditions(c, a);
  c.print("calibration: " + o.calibration.run.directory.string());
  c.print("seal:   " + job.run.seal);
  c.print("record: " + job.run.directory.string());
}

Json json_of_run_positive_control(const campaign::JobOutcome& o) {
  return {{"run_id", o.run.run_id},
          {"seal", o.run.seal},
          {"directory", o.run.directory.string()},
          {"bytes", o.run.bytes},
          {"analysis", o.analysis.json}};
}

Result<campaign::JobRequest> request_from_run_positive_control(const Context& c,
                                                               const RunPositiveControlOptions& o) {
  HEBE_TRY(auto protocol, job_request(c, o));
  return campaign::control_request(std::move(protocol), o.fraction);
}

int run_positive_control(const Context& c, const RunPositiveControlOptions& o) {
  const auto request = request_from_run_positive_control(c, o);
  if (!request) return c.refused(request.error());
  if (c.dry_run) {
    const auto of = [](const campaign::JobSpec& spec) {
      return campaign::estimated_duration(campaign::drafted(spec).value()).value();
    };
    const double calibration = of(campaign::calibration_request(*request, o.fraction)),
                 control = of(*request);
    if (c.json)
      c.print_json({{"fraction", o.fraction},
                    {"calibration_estimated_s", calibration},
                    {"estimated_s", calibration + control}});
    else
      c.print(fmt::format("calibration about {:.0f} s, control about {:.0f} s on the GPU; nothing "
                          "was run",
                          calibration, control));
    return static_cast<int>(ExitCode::done);
  }
  watch_for_interrupt();
  ProgressBar bar(c.quiet);
  const auto outcome = campaign::run_positive_control(evidence::DataRoot(c.data_root), *request,
                                                      o.fraction, callbacks_of(bar));
  bar.finish();
  if (!outcome) {
    auto refusal = outcome.error();
    if (refusal.not_written.empty() && refusal.code != RefusalCode::interrupted)
      refusal.not_written = "the control's record";
    return c.refused(refusal);
  }
  if (c.json) {
    auto json = json_of_run_positive_control(outcome->control);
    json["calibration"] = {{"run_id", outcome->calibration.run.run_id},
                           {"seal", outcome->calibration.run.seal},
                           {"directory", outcome->calibration.run.directory.string()}};
    c.print_json(json);
  } else {
    tell_run_positive_control(c, *outcome);
  }
  return exit_for(outcome->control.analysis);
}

} // namespace

Command run_positive_control_command() {
  return {"run-positive-control",
          "Measure a known extra memory traffic: predicted first from a calibration, then seen or "
          "not, sealed",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<RunPositiveControlOptions>();
            o->subject = "traffic-control";
            add_job_options(app, *o);
            app.add_option("--fraction", o->fraction,
                           "extra traffic of arm B over arm A's; 1 is as much again")
                ->capture_default_str();
            return [&c, o] { return run_positive_control(c, *o); };
          }};
}

} // namespace hebe::cli
