// One loop, compiled twice: for every x86-64 and for those with AVX2. In: a kernel (a struct with a
// static, always inlined `run`); out: the function that suits this processor. Invariant: both give
// the same bits, since contraction is off and a fused multiply-add is written where it is meant.
#pragma once

namespace hebe::ttgir {

#if defined(__x86_64__)
#define HEBE_WIDE __attribute__((target("avx2,fma")))
[[nodiscard]] inline bool wide_vectors() {
  static const bool have = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return have;
}
#else
#define HEBE_WIDE
[[nodiscard]] inline bool wide_vectors() { return false; }
#endif
/// Kernels and what they call in their loops: inlined into both copies.
#define HEBE_LANES [[gnu::always_inline]] static inline

template <class Kernel, class Signature = decltype(&Kernel::run)> struct Clone;
template <class Kernel, class R, class... A> struct Clone<Kernel, R (*)(A...)> {
  static R plain(A... a) { return Kernel::run(a...); }
  HEBE_WIDE static R wide(A... a) { return Kernel::run(a...); }
};

template <class Kernel> [[nodiscard]] auto fitting() {
  return wide_vectors() ? &Clone<Kernel>::wide : &Clone<Kernel>::plain;
}

} // namespace hebe::ttgir
