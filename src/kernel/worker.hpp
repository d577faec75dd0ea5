// The one long-lived Python process that knows Triton, spoken to in JSON lines. In: a method and
// its parameters; out: its result. Invariant: a worker that died, hung or answered garbage is a
// refusal with its last words (stderr), and is never asked again.
#pragma once

#include "core/json.hpp"
#include "core/units.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hebe::kernel {

struct WorkerCommand {
  std::vector<std::string> argv;                  ///< e.g. {python, "-m", "hebe.worker"}
  std::map<std::string, std::string> environment; ///< added to the parent's
};

class Worker {
public:
  [[nodiscard]] static Result<std::unique_ptr<Worker>> start(WorkerCommand command);
  ~Worker(); ///< closes stdin, waits briefly, then kills
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// One request, one answer. Refusals: worker_failed (died, timed out after `timeout`, garbage),
  /// case_failed / compile_failed / case_not_found / toolchain_unavailable / bad_argument as the
  /// worker says, with the Python traceback in the text.
  [[nodiscard]] Result<Json> request(std::string_view method, const Json& parameters,
                                     Seconds timeout = Seconds(180));

private:
  struct Process;
  explicit Worker(std::unique_ptr<Process> process);
  std::unique_ptr<Process> process_;
};

} // namespace hebe::kernel
