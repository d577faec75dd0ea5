// What a kernel's PTX holds. In: PTX text as Triton (LLVM and inline assembly) prints it; out:
// instructions by class, accesses by parameter. Invariant: an address that cannot be traced to a
// parameter by its registers' definitions says so, and why.
#pragma once

#include "core/result.hpp"
#include "qualify/static_code.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::qualify {

struct PtxSummary {
  std::string target, entry;
  std::vector<ParameterPlace> parameters; ///< of the entry, in order, named as asked
  StaticCode code;
};

/// `names`: what to call the entry's parameters, in order; those beyond keep their PTX names.
/// bad_ir: no entry, or text that is no PTX.
[[nodiscard]] Result<PtxSummary> summarise_ptx(std::string_view text,
                                               std::span<const std::string> names = {});
[[nodiscard]] Json to_json(const PtxSummary& summary);

} // namespace hebe::qualify
