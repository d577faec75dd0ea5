#include "campaign/reconcile.hpp"

#include "core/crash_point.hpp"
#include "core/parallel.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/verify.hpp"

#include <fmt/format.h>

#include <set>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

std::int64_t now_us() { return RealClock().wall_us(); }

// The exit code that `hebe run-…` would have given for this verdict.
int exit_of(const Json& analysis) {
  if (analysis.value("claim_holds", false)) return static_cast<int>(ExitCode::done);
  return static_cast<int>(analysis.value("verdict", "") == "inconclusive" ? ExitCode::inconclusive
                                                                          : ExitCode::claim_fails);
}

// Whose run a sealed directory is. One that is not what was sealed could be ours: it is refused by
// name, for passing it over would measure its job again.
Result<std::optional<evidence::JobIdentity>> identity_of_run(const fs::path& directory) {
  constexpr std::uint64_t kLargestManifest = 64 << 20;
  const auto path = directory / "manifest.json";
  HEBE_TRY(const auto manifest, read_record(path, kLargestManifest));
  if (!directory.filename().string().ends_with(
          "-" + manifest.sha256.substr(0, evidence::kSealDigitsInName)))
    return refuse(RefusalCode::digest_mismatch,
                  "the manifest is not the one that the directory is named after",
                  "restore the run from a copy, or move it out of the data root", path.string());
  HEBE_TRY(const auto json, parse_json(manifest.bytes, path.string()));
  HEBE_CHECK(check_schema(json, "hebe.run.manifest/1", path.string()));
  return evidence::job_identity_in(json);
}

std::unexpected<Refusal> gone(const fs::path& captured) {
  return refuse(RefusalCode::not_found, "there is no such captured measurement (any more)",
                "if another process sealed it, it is among the runs", captured.string());
}

std::unexpected<Refusal> not_as_recorded(const CampaignJob& job, const fs::path& run,
                                         const std::string& why) {
  return refuse(RefusalCode::digest_mismatch,
                fmt::format("the run that the journal has for job \"{}\" {}", job.id, why),
                "restore the run from a copy", run.string());
}

} // namespace

Result<Json> sealed_event(const evidence::DataRoot& root, const std::string& job,
                          const fs::path& directory) {
  HEBE_TRY(const auto manifest, read_file(directory / "manifest.json"));
  const auto where = (directory / "analysis.json").string();
  HEBE_TRY(const auto text, read_file(where));
  HEBE_TRY(const auto analysis, parse_json(text, where));
  return Json{{"event", "sealed"},
              {"job", job},
              {"run", directory.lexically_relative(root.path()).generic_string()},
              {"seal", sha256_hex(manifest)},
              {"verdict", analysis.value("verdict", "")},
              {"exit", exit_of(analysis)}};
}

Status Reconciler::write_down(const std::string& job, const fs::path& run) {
  if (ingest) HEBE_CHECK(ingest(run));
  HEBE_TRY(auto event, sealed_event(root, job, run));
  crash_point("resume: write down what was sealed");
  return journal.append(std::move(event), now_us());
}

// Calls `use` for a directory of one of the jobs, under the job's lock, while it is pending.
Status Reconciler::with_job(const std::optional<evidence::JobIdentity>& whose,
                            const std::map<std::string, std::size_t>& wanted, bool locked,
                            const std::function<Status(const std::string& job)>& use) {
  if (!whose || whose->campaign != campaign.id) return {};
  const auto hit = wanted.find(whose->job);
  if (hit == wanted.end()) return {};
  if (!locked) {
    HEBE_TRY(const bool ours, locks.try_lock(hit->second));
    if (!ours) return {}; // its process lives
  }
  auto done = journal.refresh();
  if (done && journal.state().jobs[hit->second].pending()) done = use(whose->job);
  if (!locked) locks.unlock(hit->second);
  return done;
}

Status Reconciler::seal_capture(const std::string& job, const fs::path& captured,
                                const fs::path& sealed_before) {
  if (!sealed_before.empty()) {
    // Of a process that died before it removed the raw samples of that very run: sealing again
    // verifies the run and removes them. Anything else is left for a person (`hebe ingest`).
    HEBE_TRY(const bool same, evidence::sealed_from(root, captured, sealed_before));
    if (!same) return {};
  }
  crash_point("resume: seal what was captured");
  const auto run = sealer ? sealer(captured) : evidence::seal_captured(root, captured);
  if (!run && run.error().code == RefusalCode::not_found) return {}; // the orphan was faster
  if (!run) return std::unexpected(run.error());
  if (callbacks.notice)
    callbacks.notice("sealed what a process that died had measured: " + run->run_id);
  return write_down(job, run->directory);
}

Status Reconciler::look(const std::map<std::string, std::size_t>& wanted, bool locked) {
  if (wanted.empty()) return {};
  if (const auto links = root.links(); !links.empty())
    return refuse(RefusalCode::unsafe_path,
                  "a symbolic link among the runs could hide one of the campaign's",
                  "put what it points to in its place, or remove it", links.front().string());
  std::map<std::string, fs::path> sealed; // by job
  for (const auto& directory : root.sealed(first_day_of(campaign, journal.state()))) {
    HEBE_TRY(const auto whose, identity_of_run(directory));
    if (whose && whose->campaign == campaign.id && wanted.contains(whose->job))
      sealed.emplace(whose->job, directory);
  }
  // Captures first: once a job is written down as sealed, nobody looks for what is left of it.
  for (const auto& captured : root.captured()) {
    const auto record = evidence::capture_record(captured);
    std::error_code ec;
    if (!record && !fs::exists(captured, ec)) continue; // sealed meanwhile
    if (!record) return std::unexpected(record.error());
    HEBE_CHECK(
        with_job(evidence::job_identity_in(*record), wanted, locked, [&](const std::string& job) {
          const auto before = sealed.find(job);
          return seal_capture(job, captured, before == sealed.end() ? fs::path() : before->second);
        }));
  }
  for (const auto& [name, directory] : sealed)
    HEBE_CHECK(with_job(evidence::JobIdentity{campaign.id, name}, wanted, locked,
                        [&](const std::string& job) -> Status {
                          HEBE_TRY(const auto report, evidence::verify_run(directory));
                          if (!report.valid()) return std::unexpected(report.problems.front());
                          return write_down(job, directory);
                        }));
  return {};
}

Status Reconciler::all_jobs() {
  crash_point("resume: reconcile");
  std::map<std::string, std::size_t> wanted;
  for (std::size_t i = 0; i < campaign.jobs.size(); ++i)
    if (journal.state().jobs[i].pending()) wanted[campaign.jobs[i].id] = i;
  return look(wanted, false);
}

Status Reconciler::locked_job(std::size_t index) {
  return look({{campaign.jobs[index].id, index}}, true);
}

Status check_integrity(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                       const CampaignState& state) {
  HEBE_CHECK(for_each_index(campaign.jobs.size(), core_count(), [&](std::size_t i) -> Status {
    const auto& row = campaign.jobs[i];
    HEBE_CHECK(check_job_file(campaign, i));
    if (state.jobs[i].pending()) return {};
    const auto run = root.path() / state.jobs[i].run;
    HEBE_CHECK(check_inside(root.path(), run));
    std::error_code ec;
    if (!fs::is_directory(run, ec)) return not_as_recorded(row, run, "is not there");
    HEBE_TRY(const auto report, evidence::verify_digests(run));
    if (!report.valid()) return std::unexpected(report.problems.front());
    if (report.seal != state.jobs[i].seal)
      return not_as_recorded(
          row, run, fmt::format("has seal {}, recorded is {}", report.seal, state.jobs[i].seal));
    HEBE_TRY(const auto whose, identity_of_run(run));
    if (whose != evidence::JobIdentity{campaign.id, row.id})
      return not_as_recorded(row, run, "is another job's");
    return {};
  }));
  if (state.pending() == 0) return {};
  const kernel::ArtifactStore store(root.path());
  return for_each_index(campaign.artifacts.size(), core_count(), [&](std::size_t i) -> Status {
    HEBE_TRY(const auto found, sha256_of_file(store.path_of(campaign.artifacts[i])));
    if (found == campaign.artifacts[i]) return {};
    return refuse(RefusalCode::digest_mismatch,
                  fmt::format("required sha256 {}, found {}", campaign.artifacts[i], found),
                  "restore the artifact from a copy",
                  store.path_of(campaign.artifacts[i]).string());
  });
}

Result<std::optional<evidence::SealedRun>> ingest_captured(const evidence::DataRoot& root,
                                                           const fs::path& captured,
                                                           const Ingest& ingest,
                                                           const JobCallbacks& callbacks) {
  HEBE_CHECK(check_inside(root.path(), captured));
  std::error_code ec;
  if (!fs::is_directory(captured, ec)) return gone(captured);
  const auto read = evidence::capture_record(captured);
  if (!read && !fs::is_directory(captured, ec)) return gone(captured);
  if (!read) return std::unexpected(read.error());
  const auto& record = *read;
  const auto seal = [&]() -> Result<std::optional<evidence::SealedRun>> {
    HEBE_TRY(auto run, evidence::seal_captured(root, captured));
    if (ingest) // the run is safe: an index that cannot be written is made anew later
      if (const auto added = ingest(run.directory); !added && callbacks.notice)
        callbacks.notice("sealed, but not in the catalog (`hebe catalog-rebuild`): " +
                         to_text(added.error()));
    return std::optional(std::move(run));
  };
  const auto whose = evidence::job_identity_in(record);
  const auto campaign =
      whose ? load_campaign(root, whose->campaign) : Result<FrozenCampaign>(FrozenCampaign{});
  if (!campaign && campaign.error().code != RefusalCode::not_found)
    return std::unexpected(campaign.error());
  if (!whose || !campaign) return seal(); // of no campaign, or of one that lies elsewhere
  for (std::size_t i = 0; i < campaign->jobs.size(); ++i) {
    if (campaign->jobs[i].id != whose->job) continue;
    HEBE_TRY(auto locks, JobLocks::open(*campaign));
    HEBE_TRY(const bool ours, locks.try_lock(i));
    if (!ours) return std::optional<evidence::SealedRun>();
    HEBE_TRY(auto journal, Journal::open(*campaign));
    if (const auto& job = journal.state().jobs[i];
        !job.pending() && fs::exists(root.path() / job.run, ec)) {
      // What a process left that died after it sealed: the raw samples of that very run.
      if (const auto same = evidence::sealed_from(root, captured, root.path() / job.run);
          same && *same)
        return seal();
      return refuse(RefusalCode::already_exists,
                    fmt::format("job \"{}\" has its sealed run already: {}", whose->job, job.run),
                    "a second one would count it twice; delete the captured directory",
                    captured.string());
    }
    HEBE_TRY(auto run, seal());
    HEBE_TRY(auto event, sealed_event(root, whose->job, run->directory));
    HEBE_CHECK(journal.append(std::move(event), now_us()));
    return run;
  }
  return seal();
}

} // namespace hebe::campaign
