// What the commands that measure one case share: the protocol's options, and how a result is told.
#pragma once

#include "campaign/job.hpp"
#include "cli/context.hpp"

namespace hebe::cli {

struct JobOptions {
  std::string subject = "vector-add", tier = "confirmation-v1";
  std::optional<int> pairs;
  std::optional<double> window, warm_up;
  std::optional<std::uint64_t> seed;
  double energy_margin = 0.5, latency_margin = 0.25;
  std::vector<std::string> parameters, options;
  bool redact = false;
};

void add_job_options(CLI::App& app, JobOptions& options);
[[nodiscard]] Result<campaign::JobRequest> job_request(const Context& context,
                                                       const JobOptions& options);
[[nodiscard]] std::string contrast_line(const char* what, const measure::Contrast& contrast);
/// "not qualified as evidence" with each condition that fails, or that every one holds.
void tell_conditions(const Context& context, const measure::Analysis& analysis);
[[nodiscard]] int exit_for(const measure::Analysis& analysis);

} // namespace hebe::cli
