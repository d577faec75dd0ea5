// A ladder of known extra traffic as a campaign. In: a traffic case, fractions, replicates, a
// protocol; out: a study of A/B jobs, fraction 0 against each, in an order drawn from the seed; and
// when all are sealed, its dataset and plot. Invariant: the order is frozen, so that drift does not
// follow the fraction.
#pragma once

#include "campaign/submission.hpp"

namespace hebe::campaign {

struct LadderRequest {
  JobSpec job; ///< its subject is the traffic case, with no fraction
  std::vector<double> fractions;
  int replicates = 3;
  std::uint64_t seed = 0;
};

/// Refuses bad_argument: fewer than two fractions, one that is twice, negative, not finite or above
/// kMostFraction, replicates outside 1 to 1000, a `fraction` among the subject's parameters; and
/// what drafted() refuses.
[[nodiscard]] Result<CampaignSpec> ladder_spec(const LadderRequest& request);

struct FinishedLadder {
  Json analysis; ///< schema hebe.analysis.ladder/1
  std::string id, dataset;
  std::filesystem::path plot; ///< campaigns/<id>/ladder.svg
};

/// Once the journal has the ladder's analysis: takes the dataset of the campaign's runs and draws
/// the plot. Safe to repeat.
[[nodiscard]] Result<FinishedLadder> finish_ladder(const evidence::DataRoot& root,
                                                   const FrozenCampaign& campaign,
                                                   const std::string& analysis_id);

} // namespace hebe::campaign
