// Kernels compiled, looked at and run on one machine. In: a point and who is to be tried at it;
// out: every kernel with its checks, every artifact stored. Invariant: no meter is read; a
// candidate that the interpreter sees leave its buffers is never launched on a GPU.
#pragma once

#include "campaign/board_lease.hpp"
#include "campaign/frozen_job.hpp"
#include "campaign/scratch_folder.hpp"
#include "evidence/environment.hpp"
#include "qualify/record.hpp"
#include "qualify/trial.hpp"

#include <functional>

namespace hebe::campaign {

struct KernelSessionRequest {
  MachineRequest machine;
  kernel::WorkerCommand worker;
  std::filesystem::path scratch;
  evidence::Variables variables;
  bool redact = false;
};

struct KernelCallbacks {
  std::function<bool()> interrupted;
  std::function<void(const std::string&)> notice; ///< one line for the log
};

class KernelSession {
public:
  /// Opens the machine and takes the lease of a real board.
  [[nodiscard]] static Result<std::unique_ptr<KernelSession>>
  open(const evidence::DataRoot& root, const KernelSessionRequest& request,
       const KernelCallbacks& callbacks, const std::string& what);

  /// Asked once the baseline is known.
  using Candidates = std::function<std::vector<qualify::Candidate>(const qualify::PointResult&)>;
  /// Refuses where the baseline cannot be compiled or has no reference; what is wrong with a
  /// candidate is a finding. `launches`: of each kernel on a GPU.
  [[nodiscard]] Result<qualify::PointResult> qualify(const qualify::Point& point,
                                                     const Candidates& candidates, int launches);

  [[nodiscard]] bool gpu() const { return device_ != nullptr; }
  /// UTC; null where the machine is simulated, so that equal inputs give equal records.
  [[nodiscard]] Json when() const;
  [[nodiscard]] Json environment() const;
  /// The board's identity out of a record's reasons, where that was asked for.
  void redact_board(Json& record) const;

private:
  struct Trials;
  struct Built;
  KernelSession(const evidence::DataRoot& root, const KernelSessionRequest& request,
                const KernelCallbacks& callbacks, std::unique_ptr<Machine> machine,
                std::optional<BoardLease> lease, ScratchFolder scratch);
  void tell(const std::string& line) const;
  [[nodiscard]] Status go_on() const;
  [[nodiscard]] Result<std::optional<PreparedCase>> interpreted_launch(const qualify::Point& point,
                                                                       const PreparedCase& full);
  [[nodiscard]] Result<qualify::Variant> qualify_candidate(const qualify::Candidate& spec,
                                                           const PreparedCase& base,
                                                           const PreparedCase* small,
                                                           const qualify::Variant& baseline,
                                                           const Trials& base_trials);
  [[nodiscard]] Result<Built> build(const qualify::Candidate& spec, const PreparedCase& base,
                                    qualify::Variant& out);
  [[nodiscard]] Status try_variant(qualify::Variant& variant, const PreparedCase& prepared,
                                   const PreparedCase* small, const Trials* baseline,
                                   Trials& trials);
  [[nodiscard]] Status try_on_device(qualify::Variant& variant, const PreparedCase& prepared,
                                     const Trials* baseline, Trials& trials);
  [[nodiscard]] Status describe(qualify::Variant& variant);

  const evidence::DataRoot& root_;
  KernelSessionRequest request_;
  KernelCallbacks callbacks_;
  std::unique_ptr<Machine> machine_;
  std::optional<BoardLease> lease_;
  ScratchFolder scratch_;
  CasePreparer preparer_;
  gpu::Device* device_ = nullptr; ///< null where there is none
  int launches_ = 2;
  std::optional<std::string> broken_; ///< why the GPU's context can no longer be used
};

} // namespace hebe::campaign
