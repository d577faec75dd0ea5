// What every command shares: options, streams, exit codes. Invariant: results go to stdout,
// everything else to stderr; with --json stdout is one JSON value and nothing more.
#pragma once

#include "campaign/machine.hpp"
#include "core/json.hpp"
#include "evidence/environment.hpp"
#include "kernel/worker.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>

namespace hebe::cli {

struct Context {
  std::filesystem::path data_root;
  std::string device = "auto";
  std::vector<std::string> faults;
  bool json = false, quiet = false, dry_run = false;
  std::vector<std::string> argv;
  evidence::Variables variables;

  [[nodiscard]] std::filesystem::path home() const;    ///< where python/hebe and kernels/ are
  [[nodiscard]] std::filesystem::path scratch() const; ///< TMPDIR or /tmp
  [[nodiscard]] kernel::WorkerCommand worker() const;
  [[nodiscard]] Result<campaign::MachineRequest> machine(std::uint64_t seed) const;
  /// argv with the data root's place left out: a record does not depend on where it lies.
  [[nodiscard]] std::vector<std::string> recorded_argv() const;

  void print(const std::string& text) const;         ///< stdout
  void print_json(const Json& value) const;          ///< stdout
  [[nodiscard]] int refused(const Refusal& r) const; ///< tells, returns the exit code
};

/// --seed, a whole number below 2^64: a larger one is refused, never cut.
void add_seed(CLI::App& app, std::optional<std::uint64_t>& seed, const std::string& help);

/// A check of an option that says what is wanted.
[[nodiscard]] CLI::Validator whole_number_from(std::int64_t least);

/// `mode` does something of its own: options other than those named in `beside` would do nothing
/// there, and are refused with it.
void stands_alone(CLI::App& app, CLI::Option* mode, const std::vector<std::string>& beside = {});

/// A refusal as --json shows it.
[[nodiscard]] Json refusal_json(const Refusal& refusal);

/// One row of the command table: its options are added at once; it runs after parsing.
struct Command {
  const char* name;
  const char* help;
  std::function<std::function<int()>(CLI::App&, Context&)> add;
};

[[nodiscard]] Command doctor_command();
[[nodiscard]] Command data_init_command();
[[nodiscard]] Command run_aa_command();
[[nodiscard]] Command run_verify_command();
[[nodiscard]] Command run_positive_control_command();
[[nodiscard]] Command run_control_ladder_command();
[[nodiscard]] Command campaign_plan_command();
[[nodiscard]] Command campaign_submit_command();
[[nodiscard]] Command campaign_work_command();
[[nodiscard]] Command resume_command();
[[nodiscard]] Command queue_status_command();
[[nodiscard]] Command ingest_command();
[[nodiscard]] Command dataset_snapshot_command();
[[nodiscard]] Command dataset_verify_command();
[[nodiscard]] Command analysis_verify_command();
[[nodiscard]] Command compare_command();
[[nodiscard]] Command receipt_command();
[[nodiscard]] Command profile_command();
[[nodiscard]] Command catalog_rebuild_command();
[[nodiscard]] Command probe_meter_command();
[[nodiscard]] Command probe_response_command();
[[nodiscard]] Command ttgir_command();
[[nodiscard]] Command qualify_command();
[[nodiscard]] Command layernorm_retention_qualify_command();
[[nodiscard]] Command layernorm_reintegration_qualify_command();
[[nodiscard]] Command layernorm_reintegration_probe_command();
[[nodiscard]] Command real_kernel_recon_command();
[[nodiscard]] std::vector<Command> study_commands(); ///< study, run, and rows of them
[[nodiscard]] Command resume_study_command();
[[nodiscard]] Command tune_command();
[[nodiscard]] Command calibrate_command();

/// To stderr; a full disk behind it must not end a measurement, so a failed write is ignored.
void tell(const std::string& text);

/// Set by Ctrl-C, SIGTERM, and SIGHUP where that is not ignored.
[[nodiscard]] bool interrupted();
void watch_for_interrupt();

} // namespace hebe::cli
