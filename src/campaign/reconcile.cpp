// What the directories say against what the journal says (declared in campaign/campaign_work.hpp).
#include "campaign/campaign_work.hpp"
#include "core/crash_point.hpp"
#include "core/parallel.hpp"
#include "core/sha256.hpp"
#include "evidence/verify.hpp"

#include <fmt/format.h>

#include <map>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

std::optional<evidence::JobIdentity> identity_in(const fs::path& file) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  const auto json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    return evidence::job_identity_in(json);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// Jobs that were started, and whose processes may have died after they sealed.
std::map<std::string, std::size_t> suspects(const FrozenCampaign& campaign,
                                            const CampaignState& state,
                                            const std::vector<std::size_t>& only) {
  std::map<std::string, std::size_t> out;
  const auto look_at = [&](std::size_t i) {
    if (state.jobs[i].pending() && state.jobs[i].attempts > 0) out[campaign.jobs[i].id] = i;
  };
  for (const auto i : only) look_at(i);
  for (std::size_t i = 0; only.empty() && i < campaign.jobs.size(); ++i) look_at(i);
  return out;
}

class Reconciliation {
public:
  Reconciliation(const evidence::DataRoot& root, const FrozenCampaign& campaign, Journal& journal,
                 JobLocks& locks, const std::map<std::string, std::size_t>& jobs)
      : root_(root), campaign_(campaign), journal_(journal), locks_(locks), jobs_(jobs) {}

  // Calls `use` for a directory of one of the jobs, with the job's lock, while it is pending.
  Status with_job(const fs::path& record, const std::function<Status(const std::string&)>& use) {
    const auto whose = identity_in(record);
    if (!whose || whose->campaign != campaign_.id) return {};
    const auto hit = jobs_.find(whose->job);
    if (hit == jobs_.end()) return {};
    HEBE_TRY(const bool ours, locks_.try_lock(hit->second));
    if (!ours) return {}; // its process lives
    auto done = journal_.refresh();
    if (done && journal_.state().jobs[hit->second].pending()) done = use(whose->job);
    locks_.unlock(hit->second);
    return done;
  }

  Status seal_captured(const Sealer& sealer, const JobCallbacks& callbacks) {
    for (const auto& captured : root_.captured())
      HEBE_CHECK(with_job(captured / "capture.json", [&](const std::string&) -> Status {
        crash_point("resume: seal what was captured");
        const auto run = sealer ? sealer(captured) : evidence::seal_captured(root_, captured);
        if (!run && run.error().code == RefusalCode::not_found) return {}; // an orphan was faster
        if (!run) return std::unexpected(run.error());
        if (callbacks.notice)
          callbacks.notice("sealed what a process that died had measured: " + run->run_id);
        return {};
      }));
    return {};
  }

  Status write_down_sealed(const Ingest& ingest) {
    for (const auto& directory : root_.sealed(journal_.state().first_day))
      HEBE_CHECK(with_job(directory / "manifest.json", [&](const std::string& job) -> Status {
        HEBE_TRY(const auto report, evidence::verify_run(directory));
        if (!report.valid()) return std::unexpected(report.problems.front());
        if (ingest) HEBE_CHECK(ingest(directory));
        HEBE_TRY(auto event, sealed_event(root_, job, directory));
        crash_point("resume: write down what was sealed");
        return journal_.append(std::move(event), RealClock().wall_us());
      }));
    return {};
  }

private:
  const evidence::DataRoot& root_;
  const FrozenCampaign& campaign_;
  Journal& journal_;
  JobLocks& locks_;
  const std::map<std::string, std::size_t>& jobs_;
};

} // namespace

Status reconcile(const evidence::DataRoot& root, const FrozenCampaign& campaign, Journal& journal,
                 const std::vector<std::size_t>& only, const Sealer& sealer, const Ingest& ingest,
                 const JobCallbacks& callbacks) {
  const auto jobs = suspects(campaign, journal.state(), only);
  if (jobs.empty()) return {};
  HEBE_TRY(auto locks, JobLocks::open(campaign));
  Reconciliation reconciliation(root, campaign, journal, locks, jobs);
  HEBE_CHECK(reconciliation.seal_captured(sealer, callbacks));
  return reconciliation.write_down_sealed(ingest);
}

Status check_integrity(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                       const CampaignState& state) {
  return for_each_index(campaign.jobs.size(), core_count(), [&](std::size_t i) -> Status {
    HEBE_TRY(const auto job, load_job(campaign, i));
    const auto& record = state.jobs[i];
    if (record.pending()) {
      const kernel::ArtifactStore store(root.path());
      for (int arm = 0; arm < 2; ++arm)
        for (const auto& [kind, digest] :
             measure::subject_of(job.plan, arm).at("artifacts").items())
          HEBE_CHECK(store.get(digest.get<std::string>()));
      return {};
    }
    const auto directory = root.path() / record.run;
    HEBE_CHECK(check_inside(root.path(), directory));
    HEBE_TRY(const auto report, evidence::verify_digests(directory));
    if (!report.valid()) return std::unexpected(report.problems.front());
    if (report.seal != record.seal)
      return refuse(RefusalCode::digest_mismatch,
                    fmt::format("the journal has seal {}, the run {}", record.seal, report.seal),
                    "restore the run from a copy", directory.string());
    return {};
  });
}

} // namespace hebe::campaign
