// NVIDIA's libdevice: what its functions compute. In: a symbol and the types of its operands; out:
// a loop. Invariant: a symbol that is not in the table is refused by name, never guessed.
#pragma once

#include "ttgir/functions.hpp"

namespace hebe::ttgir {

struct LibdeviceLoop {
  LaneKernel kernel = nullptr;
  WorkKind work = WorkKind::other_math;
  bool same_bits = false; ///< a bitcast: the lanes are shared
};
/// `symbol` with its "__nv_".
[[nodiscard]] LibdeviceLoop
libdevice_loop(std::string_view symbol, std::span<const Operand> operands, const Operand& result);

} // namespace hebe::ttgir
