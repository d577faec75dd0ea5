// hebe calibrate placement: what a reference operation costs on each member of this machine.
#include "cli/campaign_request.hpp"
#include "cli/case_name.hpp"
#include "cli/packages.hpp"
#include "core/files.hpp"
#include "tune/calibrate_placement.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace fs = std::filesystem;
namespace {

struct CalibrateOptions {
  std::string what, out, show, subject = "matmul";
  std::vector<std::string> members{"cpu", "triton"};
  std::int64_t m = 256, n = 4096, k = 4096;
  double idle = 2, window = 1, warm_up = 5;
  int windows = 5;
  bool redact = false;
  std::string openblas, cublaslt;
  PresentOptions present;
};

void print_row(const Context& c, const tune::PlacementRow& p) {
  const auto& r = p.row;
  c.print(fmt::format("{}: {} {} {} on {}", p.member, r.key.operation, r.key.shape, r.key.dtype,
                      r.key.board));
  c.print(fmt::format("  {} {} {}", r.implementation.name, p.version.value_or(""),
                      r.implementation.configuration.dump()));
  c.print(fmt::format("  {} nJ [{:.1f}, {:.1f}] ({}), {} ns; idle {:.3f} ± {:.3f} W ({})",
                      r.energy_nj.value, r.energy_nj.low, r.energy_nj.high,
                      name_of(r.meter.provenance), r.time_ns.value, p.idle_power.value(),
                      p.idle_error.value(), tune::name_of(r.idle)));
  c.print(fmt::format("  meter {} ({}), driver {}, {}, Hebe {}, {}", r.meter.name, r.meter.status,
                      r.platform.driver, r.platform.os, r.platform.hebe, r.date));
}

int show(const Context& c, const CalibrateOptions& o) {
  const auto placement = tune::read_placement(o.show);
  if (!placement) return c.refused(placement.error());
  const auto now = present_of(c, o.present);
  if (!now) return c.refused(now.error());
  const auto held = tune::hold_placement(*placement, *now);
  if (!held) return c.refused(held.error());
  tune::Placement usable;
  Json rows = Json::array();
  bool all_hold = true;
  for (const auto& h : *held) {
    if (!h.rejected) usable.rows.push_back(h.row);
    if (!h.reasons.empty()) {
      all_hold = false;
      rows.push_back({{"member", h.row.member},
                      {"outcome", h.rejected ? "rejected" : "downgraded"},
                      {"reasons", h.reasons}});
    }
    if (c.json) continue;
    print_row(c, h.row);
    for (const auto& reason : h.reasons)
      c.print(fmt::format("  {}: {}", h.rejected ? "REJECTED" : "DOWNGRADED", reason));
  }
  if (c.json) c.print_json({{"placement", tune::json_of(usable)}, {"expired", std::move(rows)}});
  return static_cast<int>(all_hold ? ExitCode::done : ExitCode::claim_fails);
}

Result<tune::CalibrationRequest> request_from_calibrate(const Context& c,
                                                        const CalibrateOptions& o) {
  tune::CalibrationRequest r;
  r.members = o.members;
  HEBE_TRY(r.subject, case_named(c, o.subject, fs::current_path()));
  r.m = o.m;
  r.n = o.n;
  r.k = o.k;
  r.idle = Seconds(o.idle);
  r.window = Seconds(o.window);
  r.warm_up = Seconds(o.warm_up);
  r.windows = o.windows;
  r.openblas = o.openblas;
  r.cublaslt = o.cublaslt;
  r.packages = python_packages(c);
  r.not_written = o.out.empty() ? "the placement" : o.out;
  HEBE_TRY(r.job.machine, c.machine(0));
  r.job.worker = c.worker();
  r.job.scratch = c.scratch();
  r.job.redact = o.redact;
  return r;
}

int run_calibrate(const Context& c, const CalibrateOptions& o) {
  if (!o.show.empty()) return show(c, o);
  // Asked before the machine is held for a minute, not when its figures are there.
  if (!o.out.empty())
    if (const auto usable = can_be_written(o.out); !usable) return c.refused(usable.error());
  auto request = request_from_calibrate(c, o);
  if (!request) return c.refused(request.error());
  if (c.dry_run) {
    c.print(fmt::format("would measure {} x {} x {} on: {}", o.m, o.n, o.k,
                        fmt::join(o.members, ", ")));
    return static_cast<int>(ExitCode::done);
  }
  ProgressBar bar(c.quiet);
  watch_for_interrupt();
  const auto placement =
      tune::calibrate_placement(evidence::DataRoot(c.data_root), *request, callbacks_of(bar));
  bar.finish();
  if (!placement) return c.refused(placement.error());
  if (o.out.empty() && !c.quiet) {
    tell("hebe: the placement is shown, and kept nowhere: --out FILE keeps it\n");
  } else if (!o.out.empty()) {
    if (const auto written = tune::write_placement(o.out, *placement); !written)
      return c.refused(written.error());
  }
  if (c.json)
    c.print_json(tune::json_of(*placement));
  else
    for (const auto& row : placement->rows) print_row(c, row);
  return static_cast<int>(ExitCode::done);
}

} // namespace

Command calibrate_command() {
  return {
      "calibrate", "Measure what a reference operation costs on each member of this machine",
      [](CLI::App& app, Context& c) -> std::function<int()> {
        auto o = std::make_shared<CalibrateOptions>();
        app.add_option("what", o->what, "placement")
            ->required()
            ->check(CLI::IsMember({"placement"}));
        app.add_option("-o,--out", o->out, "write the placement (hebe.placement/1) there");
        app.add_option("--members", o->members, "of cpu, triton, cublaslt")->delimiter(',');
        app.add_option("--case", o->subject, "the GPU's kernel: a product with m, n and k");
        app.add_option("--m", o->m, "rows")->check(whole_number_from(1));
        app.add_option("--n", o->n, "columns")->check(whole_number_from(1));
        app.add_option("--k", o->k, "terms")->check(whole_number_from(1));
        app.add_option("--idle-seconds", o->idle, "an idle window")->check(CLI::Range(0.5, 600.));
        app.add_option("--window-seconds", o->window, "a window")->check(CLI::Range(0.5, 600.));
        app.add_option("--windows", o->windows, "of each member")->check(CLI::Range(3, 1000));
        app.add_option("--warm-up-seconds", o->warm_up, "of the GPU")->check(CLI::Range(0., 600.));
        app.add_flag("--redact", o->redact, "hash the board's UUID in the placement");
        app.add_option("--openblas", o->openblas, "OpenBLAS's file (default: libopenblas.so.0)");
        app.add_option("--cublaslt", o->cublaslt, "cuBLASLt's file (default: looked for)");
        auto* show = app.add_option("--show", o->show,
                                    "hold a placement file against the machine of now (exit 1: a "
                                    "row no longer holds)");
        add_present(app, o->present, "show", true);
        auto with_show = present_names(true);
        with_show.emplace_back("what");
        stands_alone(app, show, with_show);
        for (auto* option : app.get_options())
          if (option->get_name() != "what" &&
              std::ranges::find(with_show, option->get_name()) != with_show.end())
            option->needs(show);
        return [o, &c] { return run_calibrate(c, *o); };
      }};
}

} // namespace hebe::cli
