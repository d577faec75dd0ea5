// hebe calibrate placement: what a reference operation costs on each member of this machine.
#include "cli/campaign_request.hpp"
#include "cli/case_name.hpp"
#include "cli/packages.hpp"
#include "tune/calibrate_placement.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace hebe::cli {
namespace fs = std::filesystem;
namespace {

struct CalibrateOptions {
  std::string what, out, show, subject = "matmul";
  std::vector<std::string> members{"cpu", "triton"}, meters;
  std::int64_t m = 256, n = 4096, k = 4096;
  double idle = 2, window = 1, warm_up = 5;
  int windows = 5;
  bool redact = false;
  std::string openblas, cublaslt;
  std::string board, board_uuid, cpu, driver, os, hebe, triton, date;
  std::int64_t days = -1;
};

std::optional<std::string> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<tune::PlacementNow> now_of(const CalibrateOptions& o) {
  tune::PlacementNow now;
  now.cpu = given(o.cpu);
  now.gpu.board = given(o.board);
  now.gpu.board_uuid = given(o.board_uuid);
  now.gpu.driver = given(o.driver);
  now.gpu.os = given(o.os);
  now.gpu.hebe = given(o.hebe);
  now.gpu.triton = given(o.triton);
  if (o.days >= 0) now.gpu.most_days = o.days;
  now.gpu.date = o.date.empty()
                     ? fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))
                     : o.date;
  for (const auto& text : o.meters) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("\"{}\" is no meter with a status", text),
                    "write --meter NAME=STATUS, as `hebe probe-meter` says them");
    if (!now.gpu.meters) now.gpu.meters.emplace();
    (*now.gpu.meters)[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return now;
}

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
  const auto now = now_of(o);
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

// Asked before the machine is held for a minute, not when its figures are there.
Status can_write_to(const std::string& file) {
  if (file.empty()) return {};
  std::error_code ec;
  const auto path = fs::absolute(file);
  const bool folder = fs::is_directory(path, ec);
  if (!folder && fs::is_directory(path.parent_path(), ec) &&
      ::access(path.parent_path().c_str(), W_OK) == 0)
    return {};
  return refuse(RefusalCode::bad_argument,
                folder ? "--out: this is a folder" : "--out: its folder cannot be written to",
                "give a file in a folder that is there and yours", path.string());
}

int run_calibrate(const Context& c, const CalibrateOptions& o) {
  if (!o.show.empty()) return show(c, o);
  if (auto usable = can_write_to(o.out); !usable) {
    usable.error().not_written = o.out;
    return c.refused(usable.error());
  }
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

std::vector<std::string> beside_show() {
  return {"what",           "--board",          "--board-uuid", "--cpu",  "--driver", "--os",
          "--hebe-version", "--triton-version", "--meter",      "--days", "--date"};
}

CLI::Option* add_present(CLI::App& app, CalibrateOptions& o) {
  auto* show = app.add_option("--show", o.show,
                              "hold a placement file against the machine of now (exit 1: a "
                              "row no longer holds)");
  app.add_option("--board", o.board, "show: the GPU's name; what is not given is not checked");
  app.add_option("--board-uuid", o.board_uuid, "show: its UUID, or what --redact has in its place");
  app.add_option("--cpu", o.cpu, "show: the processor's name, as /proc/cpuinfo has it");
  app.add_option("--driver", o.driver, "show: the GPU's driver");
  app.add_option("--os", o.os, "show: the operating system");
  app.add_option("--hebe-version", o.hebe, "show: Hebe's version");
  app.add_option("--triton-version", o.triton, "show: Triton's version");
  app.add_option("--meter", o.meters,
                 "show: NAME=STATUS of a meter (repeatable; given one, all others are not here)")
      ->take_all();
  app.add_option("--days", o.days, "show: how old a row may be")->check(whole_number_from(0));
  app.add_option("--date", o.date, "show: the time of now, UTC (2026-11-30T04:20:00Z)");
  return show;
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
        auto* show = add_present(app, *o);
        const auto with_show = beside_show();
        stands_alone(app, show, with_show);
        for (auto* option : app.get_options())
          if (option->get_name() != "what" &&
              std::ranges::find(with_show, option->get_name()) != with_show.end())
            option->needs(show);
        return [o, &c] { return run_calibrate(c, *o); };
      }};
}

} // namespace hebe::cli
