// hebe probe-response: how late and how smooth the board's meters are, and which periods alias.
#include "campaign/probe_response.hpp"
#include "cli/campaign_request.hpp"
#include "cli/context.hpp"
#include "cli/probe_report.hpp"
#include "cli/progress_bar.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

struct ProbeResponseOptions {
  ProbeOptions probe;
  std::optional<std::string> verify;
};

std::string ms(const std::optional<double>& s) {
  return s ? fmt::format("{:.1f}", 1e3 * *s) : std::string("-");
}

std::string aliasing_list(const measure::SourceResponse& s) {
  std::string out;
  for (const auto& a : s.aliasing)
    if (a.aliases && a.duty == 0.5)
      out += fmt::format("{}{:.0f}->{}", out.empty() ? "" : ", ", 1e3 * a.period_s,
                         a.locked ? "locked" : fmt::format("{:.0f}", 1e3 * a.apparent_period_s));
  return out.empty() ? "none seen" : out;
}

void print_sources(const Context& c, const measure::Response& r) {
  c.print(fmt::format("{:<28} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}  {}", "source (ms)", "delay",
                      "window", "rise", "95 % on", "95 % off", "tail W",
                      "aliases (period->seen as)"));
  for (const auto& s : r.sources) {
    if (!s.fit) {
      c.print(fmt::format("{:<28} {}", s.name, s.why_not));
      continue;
    }
    c.print(fmt::format("{:<28} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}  {}", s.name,
                        ms(s.fit->delay_s), ms(s.fit->window_s), ms(s.on.rise_s()), ms(s.on.t95_s),
                        ms(s.off.t95_s), s.tail ? fmt::format("{:.2f}", s.tail->watts) : "none",
                        aliasing_list(s)));
  }
}

int tell_of(const Context& c, const campaign::ResponseProbe& probe) {
  const auto& r = probe.found;
  const auto code = static_cast<int>(r.qualified() ? ExitCode::done : ExitCode::claim_fails);
  if (c.json) {
    c.print_json({{"id", probe.stored.id},
                  {"file", probe.stored.file.string()},
                  {"plot", probe.plot.string()},
                  {"response", probe.stored.json}});
    return code;
  }
  print_sources(c, r);
  c.print(r.qualified()
              ? fmt::format(
                    "\n{} ({}): lag {:.1f} ms; pre-roll {:.0f} ms; without pre-roll a window "
                    "of {:.2f} s keeps the edges' error below {:.1f} %",
                    r.primary, probe.stored.json.at("provenance").get<std::string>(), 1e3 * r.lag_s,
                    1e3 * r.pre_roll_s, r.minimum_window_s, 100 * measure::kEdgeError)
              : "\nNOT qualified: " + r.refusal);
  c.print("record: " + probe.stored.file.string());
  c.print("plot:   " + probe.plot.string());
  return code;
}

int run_probe_response(const Context& c, const ProbeResponseOptions& o) {
  const evidence::DataRoot root(c.data_root);
  if (o.verify)
    return verify_qualification(c, evidence::QualificationKind::response, *o.verify,
                                campaign::response_findings);
  const auto request = probe_request(c, o.probe);
  if (!request) return c.refused(request.error());
  const measure::ResponseSchedule schedule;
  if (c.dry_run) {
    const auto machine = campaign::Machine::open(request->machine);
    if (!machine) return c.refused(machine.error());
    if (const auto free = campaign::board_is_free(**machine); !free) return c.refused(free.error());
    if (c.json)
      c.print_json({{"board", (*machine)->info().name},
                    {"uuid", (*machine)->info().uuid},
                    {"estimated_s", schedule.total().value()}});
    else
      c.print(fmt::format("{}: {} steps and {} square waves, about {:.0f} s; nothing was run",
                          (*machine)->info().name, schedule.steps,
                          schedule.periods.size() + schedule.duties.size(),
                          schedule.total().value()));
    return static_cast<int>(ExitCode::done);
  }
  watch_for_interrupt();
  ProgressBar bar(c.quiet);
  const auto probe = campaign::probe_response(root, *request, schedule, callbacks_of(bar));
  bar.finish();
  if (!probe) return refused_probe(c, probe.error());
  return tell_of(c, *probe);
}

} // namespace

Command probe_response_command() {
  return {"probe-response",
          "Step the board's load and see how late and how smooth its meters show it; exit 1 where "
          "the primary does not",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<ProbeResponseOptions>();
            add_probe_options(app, o->probe);
            stands_alone(app, app.add_option("--verify", o->verify,
                                             "compute a stored response's findings again (part of "
                                             "its id)"));
            return [&c, o] { return run_probe_response(c, *o); };
          }};
}

} // namespace hebe::cli
