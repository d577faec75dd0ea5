// The machine of now, as rows are held against it. In: an open machine and its data root; out: the
// board's name, UUID and driver, the operating system, Hebe, the meters with the status that their
// qualification of this boot gives them. Invariant: what could not be read is absent, never made
// up.
#pragma once

#include "campaign/machine.hpp"
#include "evidence/data_root.hpp"
#include "tune/profile_expiry.hpp"

namespace hebe::tune {

/// As /etc/os-release has it; "not known" without it.
[[nodiscard]] std::string operating_system();
/// As /proc/cpuinfo has it: the board of a placement's row of the CPU.
[[nodiscard]] std::optional<std::string> processor();

/// Without Triton's version, which is the kernel's own, and without a date. meter_not_qualified:
/// the board's meters, where they are asked for, have no qualification that holds in this boot.
[[nodiscard]] Result<Present> present_machine(const evidence::DataRoot& root,
                                              const campaign::Machine& machine, bool with_meters);

} // namespace hebe::tune
