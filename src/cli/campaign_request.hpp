// What the commands on campaigns share: how jobs are sealed, indexed and shown. In: the context;
// out: requests of the campaign room.
#pragma once

#include "campaign/submission.hpp"
#include "cli/context.hpp"
#include "cli/progress_bar.hpp"

namespace hebe::cli {

/// Seals and indexes in a process of its own (`hebe ingest`), so that the one that measures stays
/// small.
[[nodiscard]] campaign::Sealer sealer_of(const Context& context);
[[nodiscard]] campaign::Ingest ingest_of(const Context& context);
[[nodiscard]] std::filesystem::path own_program();
/// All but `only`.
[[nodiscard]] Result<campaign::WorkRequest> work_request(const Context& context, ProgressBar& bar);
/// Submission of a campaign that was just planned, to this process. Faults of a simulated board
/// that are part of its plans are left out.
[[nodiscard]] Result<campaign::SubmitRequest> local_submission(const Context& context,
                                                               ProgressBar& bar, bool redact);
/// Of a campaign with pending jobs, which is a `what` ("study", "ladder"); returns the exit code.
[[nodiscard]] int tell_pending(const Context& context, const campaign::FrozenCampaign& campaign,
                               const campaign::SubmitOutcome& outcome, const char* what);
[[nodiscard]] campaign::JobCallbacks callbacks_of(ProgressBar& bar);

} // namespace hebe::cli
