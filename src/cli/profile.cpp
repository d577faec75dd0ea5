// hebe profile: what profiles say, merged, compared, and held against the machine of now.
#include "cli/parts_report.hpp"
#include "tune/profile_diff.hpp"
#include "tune/profile_expiry.hpp"
#include "tune/profile_merge.hpp"
#include "tune/tune_verification.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace hebe::cli {
namespace {

struct Options {
  std::string action;
  std::vector<std::string> files, meters;
  std::string output;
  std::string board, board_uuid, driver, os, hebe, triton, date;
  std::int64_t days = -1;
};

std::optional<std::string> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<std::vector<tune::NamedProfile>> read_all(const Options& o) {
  std::vector<tune::NamedProfile> out;
  for (const auto& file : o.files) {
    HEBE_TRY(auto profile, tune::read_profile(file));
    out.push_back({file, std::move(profile)});
  }
  return out;
}

Result<tune::Present> present_of(const Options& o) {
  tune::Present p;
  p.board = given(o.board);
  p.board_uuid = given(o.board_uuid);
  p.driver = given(o.driver);
  p.os = given(o.os);
  p.hebe = given(o.hebe);
  p.triton = given(o.triton);
  if (o.days >= 0) p.most_days = o.days;
  p.date = o.date.empty() ? fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))
                          : o.date;
  for (const auto& text : o.meters) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("\"{}\" is no meter with a status", text),
                    "write --meter NAME=STATUS, as `hebe probe-meter` says them");
    if (!p.meters) p.meters.emplace();
    (*p.meters)[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return p;
}

// Writes the profile where one was asked for; says so, or what would be written.
Status keep(const Context& c, const Options& o, const tune::Profile& profile) {
  if (o.output.empty()) return {};
  if (c.dry_run) {
    if (!c.quiet) tell(fmt::format("would write {} rows to {}\n", profile.rows().size(), o.output));
    return {};
  }
  HEBE_CHECK(tune::write_profile(o.output, profile));
  if (!c.quiet) tell(fmt::format("wrote {} rows to {}\n", profile.rows().size(), o.output));
  return {};
}

std::string verdict_of(const tune::ProfileRow& row) {
  if (row.implementation == row.baseline->implementation) return "it is the baseline";
  if (row.baseline->meter)
    return "by " + row.baseline->meter->name + ", which nothing pairs with it";
  auto out = row.verdict.value_or("not judged");
  if (row.effect)
    out += fmt::format(", {:+.3f} % [{:+.3f}, {:+.3f}] in pairs, idle power included",
                       row.effect->percent, row.effect->low_percent, row.effect->high_percent);
  return out;
}

void show_row(const Context& c, const tune::ProfileRow& row) {
  c.print(tune::text_of(row.key));
  c.print(fmt::format("  {} {}", row.implementation.name, row.implementation.configuration.dump()));
  c.print(fmt::format("  {} nJ [{:.1f}, {:.1f}] beyond idle ({}, idle {}), {} ns "
                      "[{:.1f}, {:.1f}]",
                      row.energy_nj.value, row.energy_nj.low, row.energy_nj.high,
                      name_of(row.meter.provenance), tune::name_of(row.idle), row.time_ns.value,
                      row.time_ns.low, row.time_ns.high));
  c.print(fmt::format("  meter {} ({}), driver {}, {}, Hebe {}, Triton {}, {}", row.meter.name,
                      row.meter.status, row.platform.driver, row.platform.os, row.platform.hebe,
                      row.platform.triton.value_or("-"), row.date));
  if (row.baseline)
    c.print(fmt::format("  against {} at {} nJ, {} ns: {}", row.baseline->implementation.name,
                        row.baseline->energy_nj.value, row.baseline->time_ns.value,
                        verdict_of(row)));
  c.print(fmt::format("  rests on study {} and {} runs{}", row.study.value_or("-"), row.runs.size(),
                      !row.qualified   ? ""
                      : *row.qualified ? "; its pairs are qualified as evidence"
                                       : "; its pairs are not qualified as evidence"));
  for (const auto& reason : row.downgraded) c.print("  DOWNGRADED: " + reason);
}

int show(const Context& c, const std::vector<tune::NamedProfile>& profiles) {
  Json all = Json::array();
  for (const auto& [file, profile] : profiles) {
    all.push_back({{"file", file}, {"profile", tune::json_of(profile)}});
    if (c.json) continue;
    c.print(fmt::format("{}: {} rows", file, profile.rows().size()));
    for (const auto& [key, row] : profile.rows()) show_row(c, row);
  }
  if (c.json) c.print_json({{"profiles", std::move(all)}});
  return static_cast<int>(ExitCode::done);
}

int merge(const Context& c, const Options& o, const std::vector<tune::NamedProfile>& profiles) {
  const auto merged = tune::merge_profiles(profiles);
  if (!merged) return c.refused(merged.error());
  if (const auto kept = keep(c, o, merged->profile); !kept) return c.refused(kept.error());
  if (c.json) {
    c.print_json(tune::json_of(*merged));
  } else {
    c.print(fmt::format("{} rows, {} conflicts", merged->profile.rows().size(),
                        merged->conflicts.size()));
    for (const auto& conflict : merged->conflicts)
      c.print(fmt::format("  {}: kept that of {}, dropped that of {}: {}",
                          tune::text_of(conflict.key), conflict.kept_from, conflict.dropped_from,
                          conflict.reason));
  }
  return static_cast<int>(ExitCode::done);
}

int diff(const Context& c, const std::vector<tune::NamedProfile>& profiles) {
  const auto differences = tune::diff_profiles(profiles[0].profile, profiles[1].profile);
  if (c.json) {
    c.print_json({{"differences", tune::json_of(differences)}});
  } else {
    c.print(fmt::format("{} rows differ", differences.size()));
    for (const auto& d : differences) {
      c.print(fmt::format("  {}: {}", d.kind, tune::text_of(d.key)));
      for (const auto& member : d.members) c.print("    " + member);
      if (d.energy_ratio)
        c.print(fmt::format("    energy x {:.6g}; the intervals {}", *d.energy_ratio,
                            *d.intervals_apart ? "lie apart" : "meet"));
    }
  }
  return static_cast<int>(differences.empty() ? ExitCode::done : ExitCode::claim_fails);
}

int expire(const Context& c, const Options& o, const tune::Profile& profile) {
  const auto present = present_of(o);
  if (!present) return c.refused(present.error());
  const auto expired = tune::expire_profile(profile, *present);
  if (!expired) return c.refused(expired.error());
  const bool withheld = expired->profile.rows().empty() && !o.output.empty();
  if (!withheld)
    if (const auto kept = keep(c, o, expired->profile); !kept) return c.refused(kept.error());
  if (c.json) {
    c.print_json(tune::json_of(*expired));
  } else {
    c.print(fmt::format("{} of {} rows hold as they are",
                        profile.rows().size() - expired->rows.size(), profile.rows().size()));
    for (const auto& row : expired->rows)
      c.print(fmt::format("  {}: {}: {}", row.rejected ? "rejected" : "downgraded",
                          tune::text_of(row.key), fmt::join(row.reasons, "; ")));
  }
  if (withheld) { // the reasons stand above
    tell("hebe: " +
         to_text(Refusal{RefusalCode::gate_failed,
                         "no row holds any longer",
                         {},
                         "tune again on the board of now",
                         o.output}) +
         "\n");
    return static_cast<int>(exit_code_of(RefusalCode::gate_failed));
  }
  return static_cast<int>(expired->rows.empty() ? ExitCode::done : ExitCode::claim_fails);
}

int verify(const Context& c, const std::string& file) {
  const auto report = tune::verify_profile(evidence::DataRoot(c.data_root), file);
  if (!report) return c.refused(report.error());
  return report_parts(c, Json::object({{"profile", file}}), *report);
}

int run(const Context& c, const Options& o) {
  const bool one = o.action == "expire" || o.action == "verify", two = o.action == "diff";
  if ((one && o.files.size() != 1) || (two && o.files.size() != 2))
    return c.refused({RefusalCode::bad_argument,
                      fmt::format("{} takes {}, not {}", o.action,
                                  one ? "one profile" : "two profiles", o.files.size()),
                      {},
                      "see `hebe profile --help`",
                      {}});
  if (o.action == "verify") return verify(c, o.files.front());
  const auto profiles = read_all(o);
  if (!profiles) return c.refused(profiles.error());
  if (o.action == "show") return show(c, *profiles);
  if (o.action == "merge") return merge(c, o, *profiles);
  return two ? diff(c, *profiles) : expire(c, o, profiles->front().profile);
}

// An option that was given and that the action does not read; empty: none.
std::string idle_option(const CLI::App& app, const std::string& action) {
  for (const auto* option : app.get_options()) {
    const auto& name = option->get_name();
    if (option->count() == 0 || name == "action" || name == "file" || option == app.get_help_ptr())
      continue;
    const bool writes = action == "merge" || action == "expire";
    if (name == "--output" ? !writes : action != "expire") return name;
  }
  return {};
}

} // namespace

Command profile_command() {
  return {"profile", "Show, merge, compare, expire or verify profiles of chosen implementations",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<Options>();
            app.add_option("action", o->action,
                           "show, merge, diff (exit 1: they differ), expire "
                           "(exit 1: a row no longer holds) or verify (every row against its tune "
                           "and the tune's sealed runs; exit 5: it is not what they give)")
                ->required()
                ->check(CLI::IsMember({"show", "merge", "diff", "expire", "verify"}));
            app.add_option("file", o->files, "profiles (hebe.profile/1)")->required();
            app.add_option("-o,--output", o->output, "merge, expire: write the profile there");
            app.add_option("--board", o->board,
                           "expire: the name of the board of now; what is not "
                           "given is not checked");
            app.add_option("--board-uuid", o->board_uuid, "expire: its UUID");
            app.add_option("--driver", o->driver, "expire: its driver");
            app.add_option("--os", o->os, "expire: the operating system");
            app.add_option("--hebe-version", o->hebe, "expire: Hebe's version");
            app.add_option("--triton-version", o->triton, "expire: Triton's version");
            app.add_option("--meter", o->meters,
                           "expire: NAME=STATUS of a meter of the board "
                           "(repeatable; given one, all others are not here)")
                ->take_all();
            app.add_option("--days", o->days, "expire: how old a row may be")
                ->check(whole_number_from(0));
            app.add_option("--date", o->date,
                           "expire: the time of now, UTC (2026-11-30T04:20:00Z)");
            return [&c, o, &app] {
              const auto idle = idle_option(app, o->action);
              if (idle.empty()) return run(c, *o);
              return c.refused({RefusalCode::bad_argument,
                                idle + " does nothing with `profile " + o->action + "`",
                                {},
                                "see `hebe profile --help`",
                                {}});
            };
          }};
}

} // namespace hebe::cli
