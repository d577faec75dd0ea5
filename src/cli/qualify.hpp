// Commands that qualify kernels: a general one and its rows. Internal to the command line.
#pragma once

#include "campaign/kernel_session.hpp"
#include "cli/context.hpp"

#include <string>
#include <vector>

namespace hebe::cli {

/// Options that commands with kernels of other people's share.
struct SourceOptions {
  std::string triton_source;
};
void add_source_options(CLI::App& app, SourceOptions& o);
/// The worker's command, with where Triton's sources lie.
[[nodiscard]] Result<kernel::WorkerCommand> worker_of(const Context& c, const SourceOptions& o);

/// What every session with kernels asks of the command line.
[[nodiscard]] Status complete(campaign::KernelSessionRequest& request, const Context& c,
                              const SourceOptions& o, bool redact);
/// `c` must outlive them.
[[nodiscard]] campaign::KernelCallbacks kernel_callbacks(const Context& c);

/// Global loads of a kernel in a record, as TTGIR/PTX/SASS instructions: "5/20/20".
[[nodiscard]] std::string load_counts(const Json& variant);

/// Looks at a stored qualification or recon again, and tells. `name`: part of its id, a file, or ""
/// for the newest; `made_by`: the command that makes such records.
[[nodiscard]] int verify_record(const Context& c, const std::filesystem::path& folder,
                                std::string_view schema, const std::string& name,
                                std::string_view made_by);

/// A specification by path, or by its name in studies/.
[[nodiscard]] Result<std::filesystem::path> spec_named(const Context& c, const std::string& name);

} // namespace hebe::cli
