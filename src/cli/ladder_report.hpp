// How a ladder's end is told, after its first submission and after a resume.
#pragma once

#include "campaign/submission.hpp"
#include "cli/context.hpp"

namespace hebe::cli {

/// While jobs are pending: which, and how to go on. When all are sealed: takes the dataset, draws
/// the plot and tells the result. Returns the exit code.
[[nodiscard]] int report_ladder(const Context& context, const campaign::FrozenCampaign& campaign,
                                const campaign::SubmitOutcome& outcome);

} // namespace hebe::cli
