// What a kernel's SASS holds. In: the text of `nvdisasm -c`; out: instructions by class with access
// widths, accesses by parameter. Invariant: a parameter is named only where its pointer flows into
// the address in registers on some path through the code; a pointer that comes back from memory or
// from a function is not traced, and said to be so.
#pragma once

#include "core/result.hpp"
#include "qualify/static_code.hpp"

#include <span>
#include <string>
#include <string_view>

namespace hebe::qualify {

struct SassSummary {
  int arch = 0; ///< compute capability x 10; 0: the text does not say
  std::map<std::string, std::uint64_t> opcodes; ///< "LDG.E.128" and so on, modifiers included
  StaticCode code;
};

/// `parameters` as the PTX has them (PtxSummary::parameters). bad_ir: no instructions.
[[nodiscard]] Result<SassSummary> summarise_sass(std::string_view text,
                                                 std::span<const ParameterPlace> parameters = {});
[[nodiscard]] Json to_json(const SassSummary& summary);

/// Where the parameters begin in constant bank 0; 0: not known for this architecture.
[[nodiscard]] std::uint32_t parameter_base(int arch);

} // namespace hebe::qualify
