// Where a kernel's bytes go and what a rewrite could save, from its artifacts and counts. In: a
// launch, its TTGIR, PTX and SASS, its compiled resources, counts of the interpreter; out: a
// summary for machines, opportunities in order, a table for people. Invariant: nothing is measured:
// every part says whether it is static, counted, computed or estimated, and a part that could not
// be made is there with the reason.
#pragma once

#include "core/json.hpp"
#include "kernel/launch_spec.hpp"
#include "qualify/access_table.hpp"
#include "qualify/occupancy_model.hpp"
#include "qualify/ptx_summary.hpp"
#include "qualify/redundancy.hpp"
#include "qualify/sass_summary.hpp"
#include "ttgir/counts.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hebe::qualify {

struct KernelTexts {
  std::string ttgir, ptx, sass; ///< empty: not there
};

struct Mechanism {
  std::optional<AccessTable> table;
  std::optional<PtxSummary> ptx;
  std::optional<SassSummary> sass;
  std::optional<ttgir::Counts> counts;
  std::optional<Redundancy> redundancy;
  std::optional<ComputedOccupancy> occupancy;
  Json resources;
  std::map<std::string, std::string> unavailable; ///< part ("sass") and why
};

/// `resources`: {"registers", "stack_bytes", "local_bytes"}, or {"unavailable": why}. `counts` with
/// InterpretOptions::rereads.
[[nodiscard]] Mechanism read_mechanism(const kernel::LaunchSpec& launch, KernelTexts texts,
                                       Json resources, std::optional<ttgir::Counts> counts);

struct Opportunity {
  std::string kind;                ///< "reread", "spills", "uncoalesced", …
  std::string argument;            ///< empty: of the kernel
  std::vector<std::string> passes; ///< of rewrite/ that could do it; empty: none known
  std::optional<double> bytes;     ///< saved a launch, estimated; absent: cannot be told in bytes
  double share = 0;                ///< of the bytes that the launch loads and stores
  std::string why;
};

/// Most bytes first; those that cannot be told in bytes follow.
[[nodiscard]] std::vector<Opportunity> opportunities(const kernel::LaunchSpec& launch,
                                                     const Mechanism& mechanism);

[[nodiscard]] Json to_json(const kernel::LaunchSpec& launch, const Mechanism& mechanism);
/// read_mechanism and to_json in one.
[[nodiscard]] Json mechanism_of(const kernel::LaunchSpec& launch, KernelTexts texts, Json resources,
                                std::optional<ttgir::Counts> counts);
/// For people, from what to_json gave.
[[nodiscard]] std::string mechanism_table(const Json& mechanism);

} // namespace hebe::qualify
