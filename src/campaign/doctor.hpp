// Can this machine measure? In: where the tools and the GPU should be; out: every fact with its
// source, every check with its fix. Invariant: looks, never changes anything, records nothing.
#pragma once

#include "campaign/machine.hpp"
#include "core/fact.hpp"
#include "evidence/data_root.hpp"
#include "evidence/environment.hpp"
#include "kernel/compiled_case.hpp"

namespace hebe::campaign {

struct DoctorCheck {
  std::string name;
  bool passed = false;
  std::string detail;
  std::string fix; ///< when it did not pass
};

struct DoctorReport {
  std::vector<Fact> facts;
  std::vector<DoctorCheck> checks;
  bool simulated = false;
  [[nodiscard]] bool can_measure() const;
};

struct DoctorRequest {
  MachineRequest machine;
  kernel::WorkerCommand worker;
  std::filesystem::path probe_case; ///< compiled to see that the tool chain works
  std::filesystem::path scratch;
  evidence::Variables variables;
};

[[nodiscard]] DoctorReport examine(const evidence::DataRoot& root, const DoctorRequest& request);

} // namespace hebe::campaign
