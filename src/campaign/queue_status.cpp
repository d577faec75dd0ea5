#include "campaign/queue_status.hpp"

#include <fmt/format.h>

namespace hebe::campaign {
namespace {

CampaignView view_of(const FrozenCampaign& campaign) {
  CampaignView view;
  view.id = campaign.id;
  view.study = campaign.study;
  view.jobs = campaign.jobs.size();
  const auto state = Journal::glance(campaign);
  if (!state) {
    view.problem = state.error().what;
    return view;
  }
  view.analysis = state->analysis;
  view.last_us = state->last_us;
  if (!state->submissions.empty()) {
    view.engine = state->submissions.back().engine;
    view.slurm_jobs = state->submissions.back().slurm_jobs;
  }
  const auto locks = JobLocks::look(campaign);
  view.submitting = locks && locks->submission_locked();
  for (std::size_t i = 0; i < view.jobs; ++i) {
    const auto& job = state->jobs[i];
    const auto& id = campaign.jobs[i].id;
    switch (job.state) {
    case JobState::sealed:
      ++view.sealed;
      break;
    case JobState::pending:
    case JobState::interrupted:
      ++view.waiting;
      break;
    case JobState::refused:
      ++view.refused;
      view.last_refusal = fmt::format("{}: {}: {}", id, job.refusal, job.what);
      break;
    case JobState::started:
      (locks && locks->locked(i) ? view.running : view.died).push_back(id);
      break;
    }
  }
  return view;
}

} // namespace

Result<QueueView> look_at_queue(const evidence::DataRoot& root, const std::string& campaign) {
  QueueView queue;
  queue.leases = leases_in(root.leases());
  if (!campaign.empty()) {
    HEBE_TRY(const auto one, load_campaign(root, campaign));
    queue.campaigns.push_back(view_of(one));
    return queue;
  }
  queue.half_written = root.unsealed();
  queue.captured = root.captured();
  for (const auto& directory : campaign_directories(root)) {
    const auto one = load_campaign(root, directory.filename().string());
    if (one) {
      queue.campaigns.push_back(view_of(*one));
    } else {
      CampaignView bad;
      bad.id = directory.filename().string();
      bad.problem = one.error().what;
      queue.campaigns.push_back(std::move(bad));
    }
  }
  return queue;
}

} // namespace hebe::campaign
