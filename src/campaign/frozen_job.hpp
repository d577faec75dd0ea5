// From what is wanted to a plan that cannot change. In: a case and a protocol, compiled; out: the
// frozen plan with its id. Invariant: the plan is complete before the first launch, and measuring
// it later, elsewhere, needs only the plan and the artifacts that it names.
#pragma once

#include "gpu/sim_board.hpp"
#include "kernel/compiled_case.hpp"
#include "measure/plan.hpp"
#include "qualify/workload.hpp"

#include <functional>

namespace hebe::campaign {

/// What is wanted of one job.
struct JobSpec {
  std::string kind = "aa";
  kernel::CaseRequest subject;
  std::optional<kernel::CaseRequest> subject_b; ///< none: arm B is arm A (kind aa)
  measure::Tier tier;
  int pairs = 0;
  Seconds window{0}, warm_up{0};
  std::optional<std::uint64_t> seed; ///< none: random when measured, 0 when simulated
  measure::Margins margins;
};

/// The kind of machine that a plan is for.
struct Target {
  bool simulated = false;
  int arch = 0;
  std::vector<gpu::Fault> faults; ///< simulated only
};

/// A case with all that measuring it needs.
struct PreparedCase {
  kernel::CompiledCase compiled;
  Json inputs; ///< buffer name to sha256
  qualify::ExpectedOutputs expected;
  Json mechanism = nullptr; ///< of a qualified kernel: what its qualification found of it
};

/// What both arms run.
struct PreparedArms {
  PreparedCase a;
  std::optional<PreparedCase> b; ///< none: arm B is arm A
  Json qualification = nullptr;  ///< the plan's member, of qualified arms
  [[nodiscard]] const PreparedCase& arm(std::size_t i) const { return i == 1 && b ? *b : a; }
};

/// Makes a control's prediction from its prepared arms, before the plan is frozen.
using Predict = std::function<Result<Json>(const PreparedArms& arms)>;

/// Kind, counts and lengths against the tier, before anything costs time.
[[nodiscard]] Result<measure::Plan> drafted(const JobSpec& spec);

/// Compiles the case, makes its inputs and its oracle's outputs in `scratch` (which must outlive
/// their use), having checked that they fit the disk and `memory` (of the GPU).
struct Preparation {
  kernel::WorkerCommand worker;
  std::filesystem::path data_root, cache, scratch;
  Bytes memory;
};
class CasePreparer {
public:
  explicit CasePreparer(Preparation where) : where_(std::move(where)) {}
  [[nodiscard]] Result<PreparedCase> prepare(const kernel::CaseRequest& subject);
  /// Neither inputs nor oracle are made.
  [[nodiscard]] Result<kernel::CompiledCase> compile(const kernel::CaseRequest& subject);
  /// Both arms of a job, for a GPU of this compute capability.
  [[nodiscard]] Result<PreparedArms> prepare_arms(const JobSpec& job, int arch);
  /// The same launch with other code. It has the base's inputs and oracle.
  [[nodiscard]] Result<kernel::CompiledCase> recompile(const kernel::CompiledCase& base,
                                                       const std::string& ttgir);
  /// The same for a case that was compiled before: its request names the source.
  [[nodiscard]] Result<PreparedCase> with_oracle(kernel::CompiledCase compiled);
  /// Tools and versions, as the worker said; null before the first preparation.
  [[nodiscard]] const Json& hello() const { return hello_; }
  /// Starts the worker, where it does not run, and asks who it is.
  [[nodiscard]] Status start();
  /// The worker's memory and CPU time are not to be there while we measure.
  void stop_worker() { worker_.reset(); }

private:
  Preparation where_;
  std::unique_ptr<kernel::Worker> worker_;
  Json hello_;
  int prepared_ = 0; ///< cases: each one's oracle has a folder of its own
};

/// Completes the draft with what was compiled; returns the plan's id. bad_spec when the arms do not
/// have the same inputs.
[[nodiscard]] Result<std::string> freeze(measure::Plan& draft, const PreparedArms& prepared,
                                         const Target& target, bool seed_is_given);

} // namespace hebe::campaign
