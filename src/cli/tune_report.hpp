// What a tune found, for people or as JSON. Internal to the command line.
#pragma once

#include "cli/context.hpp"
#include "tune/tune.hpp"

namespace hebe::cli {

void tell_tune_preview(const Context& c, const Json& preview);
/// Exit code: unfit_environment where a shape was voided.
[[nodiscard]] int report_tune(const Context& c, const tune::TuneOutcome& outcome);

[[nodiscard]] int verify_tune(const Context& c, const std::string& name);

} // namespace hebe::cli
