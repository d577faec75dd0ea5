// The command line: one table of commands, one place where failures become exit codes.
#include "cli/context.hpp"
#include "core/build_identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

extern char** environ;

namespace {
using namespace hebe;
using namespace hebe::cli;

evidence::Variables read_environment() {
  evidence::Variables out;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string text = *e;
    const auto equals = text.find('=');
    if (equals != std::string::npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

// --data-root, else HEBE_DATA_ROOT, else the XDG data home (a relative one is invalid and ignored).
std::filesystem::path default_data_root(const evidence::Variables& v) {
  const auto value = [&](const char* name) {
    const auto hit = v.find(name);
    return hit == v.end() ? std::string() : hit->second;
  };
  if (!value("HEBE_DATA_ROOT").empty()) return value("HEBE_DATA_ROOT");
  if (value("XDG_DATA_HOME").starts_with('/'))
    return std::filesystem::path(value("XDG_DATA_HOME")) / "hebe";
  const auto home = value("HOME");
  return std::filesystem::path(home.empty() ? "." : home) / ".local/share/hebe";
}

// The word in a command's place: CLI11 tells of the missing command only.
std::string first_word(const std::vector<std::string>& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "--data-root" || argv[i] == "--device" || argv[i] == "--sim-fault")
      ++i;
    else if (!argv[i].starts_with('-'))
      return argv[i];
  }
  return {};
}

int run(int argc, char** argv) {
  Context context;
  context.argv.assign(argv, argv + argc);
  context.variables = read_environment();
  context.data_root = default_data_root(context.variables);

  CLI::App app{"Hebe measures how much energy a GPU kernel costs, and says how sure it is."};
  app.set_version_flag("--version",
                       fmt::format("hebe {} ({}, {}, {})", kVersion, kGit, kCompiler, kBuildType));
  app.require_subcommand(1);
  app.fallthrough(); // global options may stand after the command
  app.add_option("--data-root", context.data_root,
                 "where records live (HEBE_DATA_ROOT; default: XDG data home)")
      ->check([](const std::string& folder) {
        return folder.empty() ? "an empty name is no folder: is a variable unset?" : "";
      });
  app.add_option("--device", context.device,
                 "auto, sim, a GPU's UUID, PCI id, or index in PCI order (campaign-submit, "
                 "probe-meter: several, with commas; probe-meter: all, its default)")
      ->capture_default_str();
  app.add_option(
      "--sim-fault", context.faults,
      "inject a fault into the simulated GPU: NAME[@SECONDS] (repeatable; docs/simulation.md)");
  app.add_flag("--json", context.json, "one JSON value on stdout");
  app.add_flag("--dry-run", context.dry_run,
               "check everything, say what would be done, measure nothing (what was "
               "compiled for it is kept)");
  app.add_flag("-q,--quiet", context.quiet, "no progress, no notices");

  int code = static_cast<int>(ExitCode::done);
  // Records must not depend on where the program was started.
  app.parse_complete_callback(
      [&context] { context.data_root = std::filesystem::absolute(context.data_root); });
  std::vector<Command> commands = {doctor_command(),
                                   data_init_command(),
                                   run_aa_command(),
                                   run_verify_command(),
                                   campaign_plan_command(),
                                   campaign_submit_command(),
                                   resume_command(),
                                   queue_status_command(),
                                   campaign_work_command(),
                                   ingest_command(),
                                   catalog_rebuild_command(),
                                   dataset_snapshot_command(),
                                   dataset_verify_command(),
                                   analysis_verify_command(),
                                   compare_command(),
                                   receipt_command(),
                                   profile_command(),
                                   probe_meter_command(),
                                   probe_response_command(),
                                   run_positive_control_command(),
                                   run_control_ladder_command(),
                                   ttgir_command(),
                                   qualify_command(),
                                   layernorm_retention_qualify_command(),
                                   layernorm_reintegration_qualify_command(),
                                   layernorm_reintegration_probe_command(),
                                   real_kernel_recon_command(),
                                   tune_command(),
                                   calibrate_command(),
                                   resume_study_command()};
  for (auto& command : study_commands()) commands.push_back(std::move(command));
  for (const auto& command : commands) {
    auto* sub = app.add_subcommand(command.name, command.help);
    sub->callback([&code, action = command.add(*sub, context)] { code = action(); });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e); // --help, --version
    const auto used = app.get_subcommands();
    std::string what = e.what();
    if (const auto word = first_word(context.argv); used.empty() && !word.empty())
      what = "unknown command \"" + word + "\"";
    Refusal r{
        RefusalCode::bad_argument,
        what,
        {},
        fmt::format("see `hebe {}--help`", used.empty() ? "" : used.front()->get_name() + " "),
        {}};
    context.json =
        std::find(context.argv.begin(), context.argv.end(), "--json") != context.argv.end();
    return context.refused(r);
  }
  return code;
}

} // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      tell("hebe: the result could not be written to stdout\n");
      return static_cast<int>(hebe::ExitCode::unfit_environment);
    }
    return code;
  } catch (const std::exception& e) {
    tell(std::string("hebe: a bug in Hebe: ") + e.what() +
         "\n  please report it with the command you ran\n");
    return static_cast<int>(hebe::ExitCode::bug);
  }
}
