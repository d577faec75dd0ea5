// One matrix product of cuBLASLt: what the library would choose for it, and one choice bound to
// memory. In: sizes, a type, the library; out: algorithms with their workspace; an operation that
// enqueues itself. Invariant: all matrices lie row by row, c[m,n] = a[m,k] b[k,n]; sums are fp32;
// what an operation needs lives as long as it.
#pragma once

#include "kernel/launch_spec.hpp"
#include "tune/cublaslt_library.hpp"

namespace hebe::tune {

/// fp16 or bf16, in and out.
struct MatmulProblem {
  std::int64_t m = 0, n = 0, k = 0;
  kernel::DType dtype = kernel::DType::fp16;
};

/// The library's first choices for this problem on the device whose context is current, best first
/// in its own estimate, at most `most`; none: it has none. Each result's state is success.
[[nodiscard]] Result<std::vector<cublaslt::HeuristicResult>>
matmul_heuristics(const std::shared_ptr<const CublasLt>& library, const MatmulProblem& problem,
                  std::uint64_t workspace_bytes, int most);

/// Addresses on the device. The workspace may be 0 where its size is.
struct MatmulMemory {
  std::uint64_t a = 0, b = 0, c = 0, workspace = 0;
  std::uint64_t workspace_bytes = 0;
};
/// unsupported: the algorithm is none of this library's for this problem on this device, or needs
/// more workspace.
[[nodiscard]] Result<kernel::LibraryOperation>
matmul_operation(const std::shared_ptr<const CublasLt>& library, const MatmulProblem& problem,
                 const cublaslt::Algorithm& algorithm, const MatmulMemory& memory);

} // namespace hebe::tune
