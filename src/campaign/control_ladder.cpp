#include "campaign/control_ladder.hpp"

#include "campaign/positive_control.hpp"
#include "core/files.hpp"
#include "core/philox.hpp"
#include "evidence/analysis_store.hpp"
#include "evidence/dataset.hpp"
#include "evidence/ladder_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace hebe::campaign {
namespace {

constexpr std::uint64_t kJobOrderStream = 0x6c616464;
constexpr int kMostReplicates = 1000;

Status check_fractions(const std::vector<double>& fractions) {
  const auto wrong = [](std::string what) {
    return refuse(RefusalCode::bad_argument, std::move(what),
                  fmt::format("give two or more different fractions from 0 to {}, e.g. "
                              "0,0.05,0.1,0.25,0.5,1",
                              kMostFraction),
                  "--fractions");
  };
  std::set<double> seen;
  for (const double f : fractions) {
    if (!std::isfinite(f) || f < 0 || f > kMostFraction)
      return wrong(fmt::format("{} is no fraction of extra traffic", f));
    if (!seen.insert(f).second) return wrong(fmt::format("the fraction {} is there twice", f));
  }
  if (fractions.size() < 2)
    return wrong(fmt::format("{} fractions make no ladder", fractions.size()));
  return {};
}

} // namespace

Result<CampaignSpec> ladder_spec(const LadderRequest& request) {
  HEBE_CHECK(check_fractions(request.fractions));
  if (request.replicates < 1 || request.replicates > kMostReplicates)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("{} replicates cannot be measured", request.replicates),
                  fmt::format("give 1 to {}", kMostReplicates), "--replicates");
  if (request.fractions.size() * static_cast<std::size_t>(request.replicates) < 3)
    return refuse(RefusalCode::bad_argument, "two runs make no line",
                  "give more fractions or replicates", "--replicates");
  if (request.job.subject.parameters.contains("fraction"))
    return refuse(RefusalCode::bad_argument, "the case's fraction is what the ladder varies",
                  "use --fractions", "--set fraction");
  CampaignSpec spec;
  spec.name = "control-ladder";
  spec.study = spec.ladder = true;
  const auto seed = std::to_string(request.seed);
  for (const double f : request.fractions)
    for (int r = 1; r <= request.replicates; ++r) {
      CampaignJobSpec row{fmt::format("f{}-r{}", f, r), at_fractions(request.job, 0, f), {}};
      row.job.seed = seed_for(seed, row.id);
      HEBE_CHECK(drafted(row.job));
      spec.jobs.push_back(std::move(row));
    }
  Philox random(request.seed, kJobOrderStream);
  for (std::size_t i = spec.jobs.size(); i > 1; --i)
    std::swap(spec.jobs[i - 1], spec.jobs[random.below(static_cast<std::uint32_t>(i))]);
  return spec;
}

Result<FinishedLadder> finish_ladder(const evidence::DataRoot& root, const FrozenCampaign& campaign,
                                     const std::string& analysis_id) {
  FinishedLadder out;
  out.id = analysis_id;
  HEBE_TRY(out.analysis, evidence::load_analysis(root, analysis_id));
  evidence::DatasetRequest request;
  request.campaign = campaign.id;
  HEBE_TRY(const auto plan, evidence::plan_dataset(root, request));
  HEBE_TRY(const auto dataset, evidence::take_dataset(root, plan));
  out.dataset = dataset.directory.filename().string();
  out.plot = campaign.directory / "ladder.svg";
  HEBE_CHECK(check_inside(root.path(), out.plot));
  HEBE_CHECK(write_file_whole(out.plot, evidence::ladder_plot(out.analysis)));
  return out;
}

} // namespace hebe::campaign
