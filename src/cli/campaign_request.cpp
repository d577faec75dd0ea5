#include "cli/campaign_request.hpp"

#include "core/command.hpp"
#include "core/sha256.hpp"
#include "evidence/catalog.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace fs = std::filesystem;

// The kernel's own name for this program: also when its file was replaced or removed meanwhile.
constexpr const char* kSelf = "/proc/self/exe";

fs::path own_program() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec);
}

campaign::Sealer sealer_of(const Context& c) {
  return [&c](const fs::path& captured) -> Result<evidence::SealedRun> {
    HEBE_TRY(const auto end, run_command({kSelf, "--data-root", c.data_root.string(), "--json",
                                          "ingest", "--for-worker", captured.string()},
                                         Seconds(3600)));
    const auto said = Json::parse(end.out, nullptr, false);
    if (!end.err.empty() && end.exit == 0)
      tell(end.err); // e.g. that the catalog is another version's
    if (said.is_object() && said.contains("sealed") && said.at("sealed").size() == 1) {
      const auto& run = said.at("sealed").at(0);
      return evidence::SealedRun{run.at("directory").get<std::string>(), run.at("run_id"),
                                 run.at("seal"), run.at("bytes")};
    }
    if (said.is_object() && said.contains("refused")) {
      const auto& r = said.at("refused");
      return std::unexpected(
          Refusal{refusal_named(r.at("code").get<std::string>()).value_or(RefusalCode::internal),
                  r.at("what"), r.at("where"), r.at("next"), r.at("not_written")});
    }
    return refuse(
        RefusalCode::worker_failed,
        fmt::format("the process that seals ended with exit code {}: {}", end.exit, end.err),
        "seal it with `hebe ingest`", captured.string());
  };
}

campaign::Ingest ingest_of(const Context& c) {
  return [&c](const fs::path& run) {
    return evidence::Catalog::add(evidence::DataRoot(c.data_root), run);
  };
}

Result<campaign::WorkRequest> work_request(const Context& c, ProgressBar& bar) {
  campaign::WorkRequest r;
  HEBE_TRY(r.machine, c.machine(0));
  HEBE_TRY(r.program_sha256, sha256_of_file(kSelf));
  r.argv = c.recorded_argv();
  r.variables = c.variables;
  r.scratch = c.scratch();
  r.sealer = sealer_of(c);
  r.ingest = ingest_of(c);
  r.job_begins = [&bar](const std::string& job, std::size_t done, std::size_t all) {
    bar.line(fmt::format("hebe: job {} ({} of {} sealed)", job, done, all));
  };
  return r;
}

Result<campaign::SubmitRequest> local_submission(const Context& c, ProgressBar& bar, bool redact) {
  campaign::SubmitRequest r;
  r.engine = "local";
  r.program = own_program();
  r.devices = {c.device};
  auto identity_only = c; // the plan holds the board's other faults
  std::erase_if(identity_only.faults, [](const std::string& text) {
    const auto fault = gpu::fault_from(text);
    return fault && !gpu::changes_identity(fault->kind);
  });
  HEBE_TRY(r.work, work_request(identity_only, bar));
  r.work.sealer = sealer_of(c);
  r.work.ingest = ingest_of(c);
  r.work.redact = redact;
  return r;
}

int tell_pending(const Context& c, const campaign::FrozenCampaign& campaign,
                 const campaign::SubmitOutcome& o, const char* what) {
  if (c.json)
    c.print_json({{"campaign", campaign.id},
                  {"pending", o.state.pending()},
                  {"sealed_now", o.work.sealed_now},
                  {what, nullptr}});
  else
    c.print(fmt::format("{} {}: {} of {} jobs sealed\nnext: hebe resume {}", what, campaign.id,
                        o.state.count(campaign::JobState::sealed), o.state.jobs.size(),
                        campaign.id));
  return static_cast<int>(o.work.refusals.empty() ? ExitCode::unfit_environment
                                                  : exit_code_of(o.work.refusals.back().code));
}

campaign::JobCallbacks callbacks_of(ProgressBar& bar) {
  return {[] { return interrupted(); },
          [&bar](const measure::Progress& p) { bar.show(p); },
          [&bar](const std::string& text) { bar.line("hebe: " + text); },
          {}};
}

} // namespace hebe::cli
