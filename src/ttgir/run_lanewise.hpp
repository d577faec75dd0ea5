// Operations that work element by element. In: a loop over lanes and its operands; out: an
// instruction. Invariant: operands that are uniform cost one element, and a result whose operands
// all are is uniform too.
#pragma once

#include "ttgir/run_plan.hpp"
#include "ttgir/vector_clone.hpp"

#include <initializer_list>

namespace hebe::ttgir {

/// Reads `count` elements from each of `in`, writes `count` to `out`; `out` may be one of `in`.
using LaneKernel = void (*)(const void* const* in, void* out, std::size_t count);

template <class A, class R, class F> struct Unary {
  HEBE_LANES void run(const void* const* in, void* out, std::size_t count) {
    const auto* a = static_cast<const A*>(in[0]);
    auto* r = static_cast<R*>(out);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) r[i] = F::of(a[i]);
  }
};
template <class A, class R, class F> struct Binary {
  HEBE_LANES void run(const void* const* in, void* out, std::size_t count) {
    const auto* a = static_cast<const A*>(in[0]);
    const auto* b = static_cast<const A*>(in[1]);
    auto* r = static_cast<R*>(out);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) r[i] = F::of(a[i], b[i]);
  }
};
template <class A, class R, class F> struct Ternary {
  HEBE_LANES void run(const void* const* in, void* out, std::size_t count) {
    const auto* a = static_cast<const A*>(in[0]);
    const auto* b = static_cast<const A*>(in[1]);
    const auto* c = static_cast<const A*>(in[2]);
    auto* r = static_cast<R*>(out);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) r[i] = F::of(a[i], b[i], c[i]);
  }
};

class Lanewise final : public Instruction {
public:
  static constexpr std::size_t kMost = 4; ///< operands

  [[nodiscard]] Status run(Program& program) const override;
  [[nodiscard]] bool lanewise() const override { return true; }
  /// From these lanes to `out`, `count` elements, as run() does; for reductions.
  void apply(const std::array<const Lanes*, kMost>& in, std::byte* out, std::size_t count) const;

  LaneKernel kernel = nullptr;
  RoundLanes round = nullptr; ///< after the kernel, where the result's format is narrow
  std::array<Operand, kMost> operands{};
  std::size_t operand_count = 0;
  Operand result{};
};

/// The value itself under another name, type or shape; nothing is copied.
class Alias final : public Instruction {
public:
  [[nodiscard]] Status run(Program& program) const override {
    program.set(to, program.at(from));
    return {};
  }
  [[nodiscard]] bool lanewise() const override { return true; }
  Slot from = 0, to = 0;
};

/// An instruction over all operands of `op`, its first result written by `kernel`. `round`: by the
/// result's format. Null, after a refusal, for operands that are not numbers or a null kernel.
[[nodiscard]] InstructionPtr make_lanewise(Compiler& compiler, const Operation& op,
                                           LaneKernel kernel, WorkKind work, bool round = true);
[[nodiscard]] InstructionPtr make_alias(Compiler& compiler, const Operation& op);

/// What stands for an element without a value where InterpretOptions::poison_undefined is set.
[[nodiscard]] Lanes undefined_lane(Scalar scalar);
/// "f32" for counts; pointers are "ptr".
[[nodiscard]] std::string_view work_type_of(const Operand& operand);

} // namespace hebe::ttgir
