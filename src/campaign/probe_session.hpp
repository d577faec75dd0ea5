// What probing a board's meter needs around it. In: a case to load the board with, a machine; out:
// the lease, a checked kernel, the permission to go on. Invariant: refused as a job is, before
// anything is written; the device is opened only when it is asked for, so that the board can be
// looked at without a context first.
#pragma once

#include "campaign/measurement.hpp"
#include "campaign/scratch_folder.hpp"
#include "evidence/qualification_store.hpp"
#include "measure/source_probe.hpp"

namespace hebe::campaign {

struct ProbeRequest {
  MachineRequest machine;
  kernel::CaseRequest subject;
  kernel::WorkerCommand worker;
  std::filesystem::path scratch;
  std::filesystem::path file_sources = "/"; ///< where the kernel's own sources lie
  measure::ProbeSchedule schedule;
  std::optional<std::filesystem::path> external; ///< log of an external meter, complete at the end
};

class ProbeSession {
public:
  /// Lease, free board, compiled case.
  [[nodiscard]] static Result<std::unique_ptr<ProbeSession>> open(const evidence::DataRoot& root,
                                                                  const ProbeRequest& request,
                                                                  const JobCallbacks& callbacks,
                                                                  const std::string& what);

  [[nodiscard]] Machine& machine() { return *machine_; }
  /// The board's own sources and, of a real machine, the kernel's.
  [[nodiscard]] std::vector<meter::Discovered> sources() const;
  /// Opens the context, loads and checks the kernel. The pointers live as long as this.
  [[nodiscard]] Result<std::pair<gpu::Device*, gpu::Kernel*>> load_kernel();
  [[nodiscard]] Status may_continue();
  /// After the last replay: the kernel still computes what it did.
  [[nodiscard]] Status still_right();
  [[nodiscard]] Result<evidence::QualificationSubject> subject() const;
  /// Everything of a qualification but recording and findings.
  [[nodiscard]] Result<evidence::QualificationParts> parts() const;

private:
  ProbeSession(const ProbeRequest& request, const JobCallbacks& callbacks, BoardLease lease,
               ScratchFolder scratch)
      : request_(request), callbacks_(callbacks), lease_(std::move(lease)),
        scratch_(std::move(scratch)) {}
  ProbeRequest request_;
  JobCallbacks callbacks_;
  std::unique_ptr<Machine> machine_;
  BoardLease lease_;
  ScratchFolder scratch_;
  PreparedCase prepared_;
  std::optional<qualify::Workload> workload_;
  std::optional<std::set<std::int64_t>> own_;
};

/// The board's own sources and, of a real machine, the kernel's (files below `root`).
[[nodiscard]] std::vector<meter::Discovered> all_sources(Machine& machine,
                                                         const std::filesystem::path& root);

/// The board's identity for a qualification of it: its meter's driver, this boot.
[[nodiscard]] Result<evidence::QualificationSubject> qualification_subject(const Machine& machine);

} // namespace hebe::campaign
