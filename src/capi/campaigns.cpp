// hebe_run: a frozen campaign's pending jobs, measured here as `hebe campaign-submit` and `hebe
// resume` do. Invariant: the record of a job is the one that the program would make of it.
#include "campaign/frozen_campaign.hpp"
#include "campaign/submission.hpp"
#include "capi/answer.hpp"
#include "capi/exclusive.hpp"
#include "capi/request.hpp"
#include "core/sha256.hpp"
#include "evidence/catalog.hpp"

#include <hebe/hebe.h>

#include <dlfcn.h>

namespace hebe::capi {
namespace {
namespace fs = std::filesystem;

constexpr char kAnchor = 0;

// Which code measured: this library, where the program names itself.
Result<std::string> own_sha256() {
  Dl_info info{};
  if (::dladdr(&kAnchor, &info) == 0 || info.dli_fname == nullptr)
    return refuse(RefusalCode::internal, "the library does not know its own file");
  return sha256_of_file(info.dli_fname);
}

// In this process: the campaign's windows are over when a run is sealed.
campaign::Sealer sealer_of(const evidence::DataRoot& root, std::vector<std::string>& notices) {
  return [&root, &notices](const fs::path& captured) -> Result<evidence::SealedRun> {
    HEBE_TRY(auto run, evidence::seal_captured(root, captured));
    if (const auto added = evidence::Catalog::add(root, run.directory); !added)
      notices.push_back("sealed, but not in the catalog (`hebe catalog-rebuild`): " +
                        to_text(added.error()));
    return run;
  };
}

Result<campaign::SubmitRequest> submission_of(const Json& request, const evidence::DataRoot& root,
                                              std::vector<std::string>& notices) {
  campaign::SubmitRequest r;
  r.engine = "local";
  r.resume = request.value("resume", false);
  HEBE_TRY(r.work.machine, machine_of(request));
  if (r.work.machine.selector.find(',') != std::string::npos)
    return refuse(RefusalCode::bad_argument, "several devices in one process",
                  "give one device; `hebe campaign-submit --device A,B` uses several", "device");
  r.devices = {r.work.machine.selector};
  HEBE_CHECK(campaign::open_as_asked(r.work.machine));
  HEBE_TRY(r.work.program_sha256, own_sha256());
  r.work.argv = request.value("argv", std::vector<std::string>{"python"});
  r.work.variables = request.value("variables", evidence::Variables());
  r.work.scratch = request.value("scratch", std::string("/tmp"));
  r.work.redact = request.value("redact", false);
  r.work.sealer = sealer_of(root, notices);
  r.work.ingest = [&root](const fs::path& run) { return evidence::Catalog::add(root, run); };
  return r;
}

Json job_json(const campaign::CampaignJob& job, const campaign::JobRecord& record,
              const evidence::DataRoot& root) {
  const bool sealed = record.state == campaign::JobState::sealed;
  return {{"id", job.id},
          {"plan_id", job.plan_id},
          {"state", name_of(record.state)},
          {"run", sealed ? Json((root.path() / record.run).string()) : Json(nullptr)},
          {"seal", sealed ? Json(record.seal) : Json(nullptr)},
          {"verdict", sealed ? Json(record.verdict) : Json(nullptr)},
          {"refused", sealed || record.refusal.empty()
                          ? Json(nullptr)
                          : Json{{"code", record.refusal}, {"what", record.what}}}};
}

Result<Answer> run(const Json& request, const campaign::JobCallbacks& asked) {
  HEBE_CHECK(only_members(request, {"data_root", "campaign", "device", "faults", "resume", "argv",
                                    "variables", "scratch", "redact"}));
  HEBE_TRY(const auto exclusive, Exclusive::take());
  HEBE_TRY(const auto root, data_root_of(request));
  HEBE_TRY(const auto campaign, campaign::load_campaign(root, request.at("campaign")));
  std::vector<std::string> notices;
  auto callbacks = asked;
  callbacks.notice = [&notices](const std::string& text) { notices.push_back(text); };
  HEBE_TRY(const auto submission, submission_of(request, root, notices));
  HEBE_TRY(const auto outcome, submit_campaign(root, campaign, submission, callbacks));
  Json jobs = Json::array();
  for (std::size_t i = 0; i < campaign.jobs.size(); ++i)
    jobs.push_back(job_json(campaign.jobs[i], outcome.state.jobs[i], root));
  Json refusals = Json::array();
  for (const auto& r : outcome.work.refusals) refusals.push_back(refusal_json(r));
  const auto code = outcome.work.refusals.empty() ? exit_code_of(outcome.state)
                                                  : exit_code_of(outcome.work.refusals.back().code);
  return Answer{{{"campaign", campaign.id},
                 {"provenance", campaign.simulated() ? "simulated" : "measured"},
                 {"sealed_now", outcome.work.sealed_now},
                 {"pending", outcome.state.pending()},
                 {"analysis", outcome.analysis.empty() ? Json(nullptr) : Json(outcome.analysis)},
                 {"jobs", jobs},
                 {"refusals", refusals},
                 {"notices", notices}},
                static_cast<int>(code)};
}

} // namespace
} // namespace hebe::capi

int hebe_run(const char* request, hebe_interrupted interrupted, void* user, char** out) {
  return hebe::capi::answer(request, out, [&](const hebe::Json& json) {
    return hebe::capi::run(json, hebe::capi::callbacks_of(interrupted, user));
  });
}
