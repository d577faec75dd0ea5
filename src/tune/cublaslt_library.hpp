// libcublasLt by dlopen, for CUDA 12 and 13. In: where to look; out: a table of the entry points of
// a plain matrix product, the version, the file with its digest. Invariant: every entry point is
// there, or the table does not exist; a call that fails names itself, the status and the library's
// own words.
#pragma once

#include "tune/shared_library.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hebe::tune {

// The binary interface, as NVIDIA documents it (cuBLAS library, "cuBLASLt API": data types and
// functions). Handles and descriptors are opaque and made by the library's own calls; only the two
// structures that callers own have a layout here.
namespace cublaslt {

using Handle = void*;
using Descriptor = void*; ///< of a product, a matrix or a preference
using ReturnCode = int;   ///< cublasStatus_t
inline constexpr ReturnCode kSuccess = 0, kInvalidValue = 7, kArchMismatch = 8, kNotSupported = 15;

enum DataType : int { real_32f = 0, real_16f = 2, real_16bf = 14 };
enum ComputeType : int { compute_32f = 68 };
enum ProductAttribute : int { transpose_a = 3, transpose_b = 4 }; ///< int32: 0 is "not"
enum PreferenceAttribute : int { max_workspace_bytes = 1 };       ///< uint64
enum AlgorithmAttribute : int {
  algorithm_id = 0,
  tile_id = 1,
  split_k = 2, ///< int32, as the two before it; uint32: reduction to stages
  reduction_scheme = 3,
  cta_swizzling = 4,
  custom_option = 5,
  stages_id = 6,
  inner_shape_id = 7, ///< uint16, as the next
  cluster_shape_id = 8
};

/// Which kernel, and how it is to run. The documentation allows to store it and to use it again
/// with the same version of the library.
struct Algorithm {
  std::array<std::uint64_t, 8> data{};
  bool operator==(const Algorithm&) const = default;
};
struct HeuristicResult {
  Algorithm algorithm;
  std::size_t workspace_bytes = 0;
  ReturnCode state = kSuccess;
  float waves = 0;
  std::array<int, 4> reserved{};
};
static_assert(sizeof(Algorithm) == 64 && sizeof(HeuristicResult) == 96);

} // namespace cublaslt

class CublasLt {
public:
  /// toolchain_unavailable: no library, or one that lacks an entry point.
  [[nodiscard]] static Result<std::shared_ptr<const CublasLt>> open(const LibrarySearch& search);
  /// Names that CUDA 13 and 12 give it.
  [[nodiscard]] static std::vector<std::string> names();
  /// Where Python packages of NVIDIA put it, below a folder of packages (site-packages).
  [[nodiscard]] static std::vector<std::filesystem::path>
  folders_in(const std::filesystem::path& packages);

  [[nodiscard]] const std::filesystem::path& file() const { return library_.file(); }
  [[nodiscard]] std::string version() const; ///< "13.1.0"
  /// unsupported where the library says that this GPU or problem is none of its own, else
  /// driver_call_failed.
  [[nodiscard]] Status check(cublaslt::ReturnCode status, const char* call) const;

  using S = cublaslt::ReturnCode;
  using H = cublaslt::Handle;
  using D = cublaslt::Descriptor;
  S (*create)(H*) = nullptr;
  S (*destroy)(H) = nullptr;
  std::size_t (*get_version)() = nullptr;
  const char* (*status_name)(S) = nullptr;
  const char* (*status_text)(S) = nullptr;
  S (*product_create)(D*, int compute_type, int scale_type) = nullptr;
  S (*product_destroy)(D) = nullptr;
  S (*product_set)(D, int attribute, const void* value, std::size_t bytes) = nullptr;
  S(*matrix_create)
  (D*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) = nullptr;
  S (*matrix_destroy)(D) = nullptr;
  S (*preference_create)(D*) = nullptr;
  S (*preference_destroy)(D) = nullptr;
  S (*preference_set)(D, int attribute, const void* value, std::size_t bytes) = nullptr;
  S(*heuristics)
  (H, D product, D a, D b, D c, D d, D preference, int requested,
   cublaslt::HeuristicResult* results, int* found) = nullptr;
  S(*algorithm_check)
  (H, D product, D a, D b, D c, D d, const cublaslt::Algorithm*,
   cublaslt::HeuristicResult* result) = nullptr;
  S(*algorithm_get)
  (const cublaslt::Algorithm*, int attribute, void* value, std::size_t bytes,
   std::size_t* written) = nullptr;
  S(*matmul)
  (H, D product, const void* alpha, const void* a, D layout_a, const void* b, D layout_b,
   const void* beta, const void* c, D layout_c, void* d, D layout_d, const cublaslt::Algorithm*,
   void* workspace, std::size_t workspace_bytes, void* stream) = nullptr;

private:
  explicit CublasLt(SharedLibrary library) : library_(std::move(library)) {}
  SharedLibrary library_;
};

} // namespace hebe::tune
