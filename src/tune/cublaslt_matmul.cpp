#include "tune/cublaslt_matmul.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {
using namespace cublaslt;

// Handle and descriptors of one product, destroyed in the order that they depend on each other.
class Product {
public:
  static Result<std::shared_ptr<Product>> make(std::shared_ptr<const CublasLt> library,
                                               const MatmulProblem& problem) {
    auto out = std::make_shared<Product>(std::move(library));
    HEBE_CHECK(out->open(problem));
    return out;
  }
  explicit Product(std::shared_ptr<const CublasLt> library) : lib(std::move(library)) {}
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    for (auto layout : {first, second, result})
      if (layout != nullptr) lib->matrix_destroy(layout);
    if (product != nullptr) lib->product_destroy(product);
    if (handle != nullptr) lib->destroy(handle);
  }

  const std::shared_ptr<const CublasLt> lib;
  Handle handle = nullptr;
  Descriptor product = nullptr, first = nullptr, second = nullptr, result = nullptr;

private:
  Status open(const MatmulProblem& p) {
    HEBE_CHECK(lib->check(lib->create(&handle), "cublasLtCreate"));
    HEBE_CHECK(lib->check(lib->product_create(&product, compute_32f, real_32f),
                          "cublasLtMatmulDescCreate"));
    constexpr std::int32_t kAsItLies = 0;
    for (const int operand : {transpose_a, transpose_b})
      HEBE_CHECK(lib->check(lib->product_set(product, operand, &kAsItLies, sizeof kAsItLies),
                            "cublasLtMatmulDescSetAttribute"));
    // The library counts by columns. A matrix that lies row by row is its transpose there, and
    // c^T = b^T a^T: b comes first, as n x k, and nothing is transposed.
    const auto type = p.dtype == kernel::DType::bf16 ? real_16bf : real_16f;
    const auto layout = [&](Descriptor& out, std::int64_t rows, std::int64_t columns) {
      return lib->check(lib->matrix_create(&out, type, static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), rows),
                        "cublasLtMatrixLayoutCreate");
    };
    HEBE_CHECK(layout(first, p.n, p.k));
    HEBE_CHECK(layout(second, p.k, p.m));
    return layout(result, p.n, p.m);
  }
};

struct Preference {
  const CublasLt& lib;
  Descriptor descriptor = nullptr;
  explicit Preference(const CublasLt& library) : lib(library) {}
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  ~Preference() {
    if (descriptor != nullptr) lib.preference_destroy(descriptor);
  }
};

} // namespace

Result<std::vector<HeuristicResult>>
matmul_heuristics(const std::shared_ptr<const CublasLt>& library, const MatmulProblem& problem,
                  std::uint64_t workspace_bytes, int most) {
  HEBE_TRY(const auto p, Product::make(library, problem));
  Preference preference(*library);
  HEBE_CHECK(library->check(library->preference_create(&preference.descriptor),
                            "cublasLtMatmulPreferenceCreate"));
  HEBE_CHECK(library->check(library->preference_set(preference.descriptor, max_workspace_bytes,
                                                    &workspace_bytes, sizeof workspace_bytes),
                            "cublasLtMatmulPreferenceSetAttribute"));
  std::vector<HeuristicResult> results(static_cast<std::size_t>(most));
  int found = 0;
  const auto status =
      library->heuristics(p->handle, p->product, p->first, p->second, p->result, p->result,
                          preference.descriptor, most, results.data(), &found);
  if (status == kNotSupported) return std::vector<HeuristicResult>(); // its word for "none"
  HEBE_CHECK(library->check(status, "cublasLtMatmulAlgoGetHeuristic"));
  results.resize(static_cast<std::size_t>(std::clamp(found, 0, most)));
  std::erase_if(results, [](const auto& r) { return r.state != kSuccess; });
  return results;
}

Result<kernel::LibraryOperation> matmul_operation(const std::shared_ptr<const CublasLt>& library,
                                                  const MatmulProblem& problem,
                                                  const Algorithm& algorithm,
                                                  const MatmulMemory& memory) {
  HEBE_TRY(auto p, Product::make(library, problem));
  HeuristicResult checked;
  HEBE_CHECK(library->check(library->algorithm_check(p->handle, p->product, p->first, p->second,
                                                     p->result, p->result, &algorithm, &checked),
                            "cublasLtMatmulAlgoCheck"));
  if (checked.workspace_bytes > memory.workspace_bytes)
    return refuse(RefusalCode::unsupported,
                  fmt::format("the algorithm needs a workspace of {} bytes, it has {}",
                              checked.workspace_bytes, memory.workspace_bytes),
                  {}, "cublasLtMatmulAlgoCheck");
  return kernel::LibraryOperation([p = std::move(p), algorithm, memory](void* stream) -> Status {
    constexpr float kOne = 1, kZero = 0;
    const auto at = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
    return p->lib->check(p->lib->matmul(p->handle, p->product, &kOne, at(memory.b), p->first,
                                        at(memory.a), p->second, &kZero, at(memory.c), p->result,
                                        at(memory.c), p->result, &algorithm, at(memory.workspace),
                                        memory.workspace_bytes, stream),
                         "cublasLtMatmul");
  });
}

} // namespace hebe::tune
