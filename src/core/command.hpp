// Another program, run to its end without a shell. In: an argument vector; out: its exit code and
// both of its streams. Invariant: arguments arrive as they are; a program that could not be started
// or did not end in time is a refusal, never an exit code.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hebe {

struct CommandResult {
  int exit = 0; ///< 128 + signal when one ended it
  std::string out, err;
};

/// argv.front() is found on PATH; standard input is empty. Once `interrupted` says so, the program
/// is sent SIGTERM (once) and waited for. Refusals: not_found (no such program), io_failed (could
/// not be started, or not ended within `timeout`: it is killed).
[[nodiscard]] Result<CommandResult> run_command(std::vector<std::string> argv,
                                                Seconds timeout = Seconds(120),
                                                const std::function<bool()>& interrupted = {});

} // namespace hebe
