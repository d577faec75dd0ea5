// hebe probe-meter: which of the board's sources can be believed.
#include "campaign/probe_meter.hpp"
#include "cli/campaign_request.hpp"
#include "cli/context.hpp"
#include "cli/probe_report.hpp"
#include "cli/progress_bar.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

struct Options {
  ProbeOptions probe;
  std::optional<std::string> verify, external;
  bool if_needed = false;
};

std::string milliseconds(const std::optional<measure::Spread>& s, bool tail) {
  if (!s) return "-";
  return tail ? fmt::format("{:.1f} ({:.1f})", 1e3 * s->median, 1e3 * s->p99)
              : fmt::format("{:.1f} ({:.0f}-{:.0f})", 1e3 * s->mean, 1e3 * s->p1, 1e3 * s->p99);
}

void print_table(const Context& c, const campaign::MeterProbe& probe) {
  c.print(fmt::format("{:<32} {:<4} {:>18} {:>8} {:>14}  {:<11} {}", "source", "unit", "period ms",
                      "step", "call ms", "verdict", "why"));
  for (std::size_t i = 0; i < probe.found.sources.size(); ++i) {
    const auto& f = probe.found.sources[i];
    const auto& t = f.statistics;
    const auto why = f.rejection == measure::Rejection::none
                         ? f.reason
                         : fmt::format("{}: {}", measure::name_of(f.rejection), f.reason);
    c.print(fmt::format(
        "{:<32} {:<4} {:>18} {:>8} {:>14}  {:<11} {}", f.name,
        probe.recording.sources[i].description.identity.unit, milliseconds(t.period_s, false),
        t.smallest_step ? std::to_string(*t.smallest_step) : "-",
        t.readings > 0 ? milliseconds(t.call_s, true) : "-", measure::name_of(f.verdict), why));
  }
}

void print_levels(const Context& c, const measure::Qualification& q) {
  for (const auto& f : q.sources) {
    std::string line;
    for (const auto& l : f.levels)
      line += fmt::format(
          "{}{} {:.1f} W{}", line.empty() ? "" : ", ", measure::name_of(l.level), l.watts,
          l.ratio ? fmt::format(" ({:+.2f} ± {:.2f} %)", 100 * (*l.ratio - 1), 100 * *l.ratio_error)
                  : "");
    if (f.observer)
      line += fmt::format("; reading it costs {:+.2f} ± {:.2f} W", f.observer->watts,
                          f.observer->error_w);
    if (!line.empty()) c.print(fmt::format("  {:<30} {}", f.name, line));
  }
}

int tell_of(const Context& c, const campaign::MeterProbe& probe) {
  const auto code =
      static_cast<int>(probe.found.qualified() ? ExitCode::done : ExitCode::claim_fails);
  if (c.json) {
    c.print_json({{"id", probe.stored.id},
                  {"file", probe.stored.file.string()},
                  {"qualification", probe.stored.json}});
    return code;
  }
  print_table(c, probe);
  c.print("");
  print_levels(c, probe.found);
  c.print("");
  if (const auto& e = probe.stored.json.at("findings").at("external"); e.is_object())
    c.print(e.at("aligned").get<bool>()
                ? fmt::format(
                      "external meter: gain {:.4f} ± {:.4f}, offset {:+.2f} ± {:.2f} W, residual "
                      "{:.2f} W",
                      e.at("gain_ratio").get<double>(), e.at("gain_standard_error").get<double>(),
                      e.at("offset_w").get<double>(), e.at("offset_standard_error_w").get<double>(),
                      e.at("residual_w").get<double>())
                : "external meter: " + e.at("refused").at("what").get<std::string>());
  c.print(probe.found.qualified()
              ? fmt::format("qualified ({}): primary {}, cross-check {}",
                            probe.stored.json.at("provenance").get<std::string>(),
                            probe.found.primary, probe.found.cross_check)
              : "NOT qualified: " + probe.found.refusal);
  c.print("record: " + probe.stored.file.string());
  return code;
}

int preview(const Context& c, const campaign::ProbeRequest& request) {
  const auto p = campaign::preview_probe(request);
  if (!p) return c.refused(p.error());
  if (c.json)
    c.print_json({{"board", p->board},
                  {"uuid", p->uuid},
                  {"sources", p->sources},
                  {"estimated_s", p->duration.value()}});
  else
    c.print(fmt::format("{} ({}): {} sources for about {:.0f} s; nothing was run", p->board,
                        p->uuid, p->sources.size(), p->duration.value()));
  return static_cast<int>(ExitCode::done);
}

int run(const Context& c, const Options& o) {
  const evidence::DataRoot root(c.data_root);
  if (o.verify)
    return verify_qualification(c, evidence::QualificationKind::meter, *o.verify,
                                campaign::meter_findings);
  auto request = probe_request(c, o.probe);
  if (!request) return c.refused(request.error());
  if (o.external) {
    request->external = *o.external;
    request->schedule.signature_slot = Seconds(0.3);
    std::error_code ec;
    if (!std::filesystem::exists(std::filesystem::absolute(*o.external).parent_path(), ec))
      return c.refused({RefusalCode::not_found, "the external log's folder does not exist",
                        *o.external, "give the file that the external meter writes",
                        "the qualification"});
  }
  if (c.dry_run) return preview(c, *request);
  if (o.if_needed) {
    const auto machine = campaign::Machine::open(request->machine);
    if (!machine) return c.refused(machine.error());
    measure::Tier evidence_tier;
    evidence_tier.is_evidence = true;
    if (campaign::qualified_meter(root, **machine, evidence_tier))
      return static_cast<int>(ExitCode::done);
  }
  watch_for_interrupt();
  ProgressBar bar(c.quiet);
  const auto probe = campaign::probe_meter(root, *request, callbacks_of(bar));
  bar.finish();
  if (!probe) return refused_probe(c, probe.error());
  return tell_of(c, *probe);
}

} // namespace

Command probe_meter_command() {
  return {"probe-meter",
          "Find out which of the board's power and energy sources can be believed; exit 1 where "
          "none can",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<Options>();
            add_probe_options(app, o->probe);
            app.add_option("--external", o->external,
                           "log of an external meter (CSV: time, watts) that runs meanwhile; the "
                           "probe plays a signature for it and reads the log at the end");
            app.add_flag("--if-needed", o->if_needed,
                         "do nothing where a qualification holds, or the GPU is simulated");
            app.add_option("--verify", o->verify,
                           "compute a stored qualification's findings again (part of its id)");
            return [&c, o] { return run(c, *o); };
          }};
}

} // namespace hebe::cli
