// hebe probe-meter: which of each board's sources can be believed.
#include "campaign/probe_boards.hpp"
#include "cli/campaign_request.hpp"
#include "cli/context.hpp"
#include "cli/probe_report.hpp"
#include "cli/progress_bar.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace {

struct ProbeMeterOptions {
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

Json json_of_probe_meter(const campaign::MeterProbe& probe) {
  return {{"id", probe.stored.id},
          {"file", probe.stored.file.string()},
          {"qualification", probe.stored.json}};
}

void print_probe(const Context& c, const campaign::MeterProbe& probe) {
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
}

Json json_of_probe_meter(const campaign::BoardOutcome& o) {
  Json j = o.probe ? json_of_probe_meter(*o.probe) : Json::object();
  if (o.refusal) j["refused"] = refusal_json(with_not_written(*o.refusal));
  if (!o.why_not_needed.empty()) j["not_needed"] = o.why_not_needed;
  return j;
}

std::string title_of(const campaign::BoardOutcome& o) {
  return o.board.empty() ? o.selector : fmt::format("{} ({})", o.board, o.uuid);
}

int tell_one(const Context& c, const campaign::BoardOutcome& o) {
  if (o.refusal) return refused_probe(c, *o.refusal);
  if (c.json)
    c.print_json(json_of_probe_meter(o));
  else if (o.probe)
    print_probe(c, *o.probe);
  else
    c.print(title_of(o) + ": " + o.why_not_needed);
  return static_cast<int>(o.exit_code());
}

// Every board's own result, then all of them in a line each.
int tell_all(const Context& c, const std::vector<campaign::BoardOutcome>& outcomes) {
  const auto code = static_cast<int>(worst_exit(outcomes));
  if (c.json) {
    Json devices = Json::array();
    for (const auto& o : outcomes) {
      auto j = json_of_probe_meter(o);
      j.update({{"device", o.selector}, {"exit", static_cast<int>(o.exit_code())}});
      if (!o.uuid.empty()) j.update({{"board", o.board}, {"uuid", o.uuid}});
      devices.push_back(std::move(j));
    }
    c.print_json({{"devices", devices}, {"exit", code}});
    return code;
  }
  for (const auto& o : outcomes) {
    if (o.refusal)
      cli::tell("hebe: " + title_of(o) + ": " + to_text(with_not_written(*o.refusal)) + "\n");
    if (!o.probe) continue;
    c.print("== " + title_of(o));
    print_probe(c, *o.probe);
    c.print("");
  }
  for (const auto& o : outcomes)
    c.print(fmt::format("{}: {}", title_of(o),
                        o.refusal ? fmt::format("refused ({})", name_of(o.refusal->code))
                        : !o.why_not_needed.empty()  ? o.why_not_needed
                        : o.probe->found.qualified() ? "qualified, " + o.probe->stored.id
                                                     : "NOT qualified: " + o.probe->found.refusal));
  return code;
}

int preview_probe_meter(const Context& c, const campaign::ProbeRequest& request,
                        const std::vector<std::string>& selectors) {
  Json devices = Json::array();
  auto worst = ExitCode::done;
  double total_s = 0;
  for (const auto& selector : selectors) {
    auto one = request;
    one.machine.selector = selector;
    const auto p = campaign::preview_probe(one);
    if (!p && selectors.size() == 1) return c.refused(p.error());
    if (!p) {
      worst = std::max(worst, exit_code_of(p.error().code));
      devices.push_back({{"device", selector}, {"refused", refusal_json(p.error())}});
      if (!c.json) cli::tell("hebe: " + selector + ": " + to_text(p.error()) + "\n");
      continue;
    }
    total_s += p->duration.value();
    devices.push_back({{"board", p->board},
                       {"uuid", p->uuid},
                       {"sources", p->sources},
                       {"estimated_s", p->duration.value()}});
    if (selectors.size() > 1) devices.back()["device"] = selector;
    if (!c.json)
      c.print(fmt::format("{} ({}): {} sources for about {:.0f} s; nothing was run", p->board,
                          p->uuid, p->sources.size(), p->duration.value()));
  }
  if (c.json && selectors.size() == 1)
    c.print_json(devices.front());
  else if (c.json)
    c.print_json(
        {{"devices", devices}, {"estimated_s", total_s}, {"exit", static_cast<int>(worst)}});
  else if (selectors.size() > 1)
    c.print(fmt::format("one after the other: about {:.0f} s", total_s));
  return static_cast<int>(worst);
}

Status take_external(const std::string& log, std::size_t devices, campaign::ProbeRequest& request) {
  if (devices > 1)
    return std::unexpected(Refusal{RefusalCode::bad_argument,
                                   fmt::format("an external meter's log is of one board, and {} "
                                               "would be probed one after the other",
                                               devices),
                                   "--external", "say which board with --device",
                                   "the qualification"});
  request.external = log;
  request.schedule.signature_slot = Seconds(0.3);
  std::error_code ec;
  if (std::filesystem::exists(std::filesystem::absolute(log).parent_path(), ec)) return {};
  return std::unexpected(Refusal{RefusalCode::not_found, "the external log's folder does not exist",
                                 log, "give the file that the external meter writes",
                                 "the qualification"});
}

int run_probe_meter(Context c, const ProbeMeterOptions& o, bool device_given) {
  const evidence::DataRoot root(c.data_root);
  if (o.verify)
    return verify_qualification(
        c, evidence::QualificationKind::meter, *o.verify,
        [](const measure::Recording& r, const Json&) { return campaign::meter_findings(r); });
  if (!device_given) c.device = "all";
  const auto selectors = campaign::selectors_in(c.device);
  if (!selectors) return refused_probe(c, selectors.error());
  auto request = probe_request(c, o.probe);
  if (!request) return c.refused(request.error());
  if (o.external)
    if (const auto taken = take_external(*o.external, selectors->size(), *request); !taken)
      return c.refused(taken.error());
  if (c.dry_run) return preview_probe_meter(c, *request, *selectors);
  watch_for_interrupt();
  ProgressBar bar(c.quiet);
  const bool several = selectors->size() > 1;
  const auto outcomes = campaign::probe_boards(
      root, *request, *selectors, o.if_needed,
      {callbacks_of(bar), [&](const std::string& selector, std::size_t number, std::size_t of) {
         if (several) bar.line(fmt::format("hebe: device {} ({} of {})", selector, number, of));
       }});
  bar.finish();
  return several ? tell_all(c, outcomes) : tell_one(c, outcomes.front());
}

} // namespace

Command probe_meter_command() {
  return {"probe-meter",
          "Find out which power and energy sources of every board (or of --device's) can be "
          "believed; exit 1 where none can",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<ProbeMeterOptions>();
            add_probe_options(app, o->probe);
            app.add_option("--external", o->external,
                           "log of an external meter (CSV: time, watts) that runs meanwhile; the "
                           "probe plays a signature for it and reads the log at the end; one board "
                           "only");
            app.add_flag("--if-needed", o->if_needed,
                         "leave a board alone where its qualification holds, or it is simulated");
            stands_alone(app, app.add_option("--verify", o->verify,
                                             "compute a stored qualification's findings again: "
                                             "part of its id, or \"\" for the newest of each "
                                             "board"));
            app.footer("Without --device every device that CUDA shows is probed, one after the "
                       "other; --device takes several with commas.\nEach board has its own lease "
                       "and record, and all are tried. The exit code is the worst of theirs, in "
                       "this order:\n0 qualified or not needed, 1 not qualified, 2 usage, 3 unfit "
                       "or busy, 5 bad data, 70 a bug, 130 interrupted.");
            const auto* device = app.get_parent()->get_option("--device");
            return [&c, o, device] { return run_probe_meter(c, *o, device->count() > 0); };
          }};
}

} // namespace hebe::cli
