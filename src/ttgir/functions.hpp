// Mathematical functions by name. In: the name, without math's or libdevice's prefix, and the
// types; out: a loop. Invariant: computed in double, rounded once to the result's type.
#pragma once

#include "ttgir/run_lanewise.hpp"

#include <string_view>

namespace hebe::ttgir {

struct FunctionLoop {
  LaneKernel kernel = nullptr; ///< null: no such function on that type
  WorkKind work = WorkKind::other_math;
};
/// One, two, three or four operands of the result's type.
[[nodiscard]] FunctionLoop function_loop(std::string_view name, const Operand& result);
/// (float, int) -> float: powi, ldexp, scalbn; (int, float): jn, yn.
[[nodiscard]] FunctionLoop mixed_function_loop(std::string_view name, const Operand& result);

/// a * b + c with one rounding of the exact value, for formats narrower than f32 through odd
/// floats.
[[nodiscard]] LaneKernel fma_kernel(const Operand& result);

} // namespace hebe::ttgir
