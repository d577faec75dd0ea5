// How a study is told, after `hebe study` or a resume.
#pragma once

#include "campaign/study.hpp"
#include "cli/context.hpp"

namespace hebe::cli {

/// Finishes the study where every job is sealed; returns the exit code.
[[nodiscard]] int report_study(const Context& context, const campaign::FrozenCampaign& campaign,
                               const campaign::SubmitOutcome& outcome);

/// The sealed study of that name looked at again, part by part.
[[nodiscard]] int verify_study(const Context& context, const std::string& name);

} // namespace hebe::cli
