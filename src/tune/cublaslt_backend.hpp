// NVIDIA's matrix product: the first choices of cuBLASLt's own heuristic. In: a backend of a
// specification, where packages may have put the library; out: candidates with the algorithm and
// its settings as configuration. Invariant: a configuration names one algorithm completely, for the
// version of the library whose digest goes with it; without library, GPU or choice it is
// unavailable, with the reason.
#pragma once

#include "tune/cublaslt_matmul.hpp"
#include "tune/tune_spec.hpp"

namespace hebe::tune {

class CublasLtBackend final : public Backend {
public:
  explicit CublasLtBackend(BackendSpec spec, LibrarySearch search)
      : spec_(std::move(spec)), search_(std::move(search)) {}
  [[nodiscard]] const std::string& name() const override { return spec_.name; }
  [[nodiscard]] Result<Offer> offer(const Shape& shape, const Bench& bench) override;
  /// Its member "algorithm" decides; the others say what it is.
  [[nodiscard]] Result<Candidate> named(const Json& configuration) const override;
  [[nodiscard]] Result<Prepared> prepare(const Candidate& candidate, const Shape& shape,
                                         const Bench& bench) override;

private:
  [[nodiscard]] Result<std::shared_ptr<const CublasLt>> library();
  [[nodiscard]] Result<std::vector<Candidate>> choices(const Shape& shape, const Bench& bench);
  BackendSpec spec_;
  LibrarySearch search_;
  std::shared_ptr<const CublasLt> library_; ///< once it was opened
  std::string library_sha256_;              ///< once it was needed
};

/// {"algorithm": 128 hex digits, "id": …, "tile": …, …, "workspace_bytes": …}: enough to make it
/// again.
[[nodiscard]] Json configuration_of(const CublasLt& library,
                                    const cublaslt::HeuristicResult& choice);
/// bad_spec: there is no algorithm in it.
[[nodiscard]] Result<cublaslt::HeuristicResult> choice_from(const Json& configuration,
                                                            const std::string& where);

/// The shape's m, n and k, and the type; bad_spec: a dimension is missing; unsupported: a type that
/// `allowed` does not name.
[[nodiscard]] Result<MatmulProblem> matmul_of(const BackendSpec& spec, const Shape& shape,
                                              const std::string& dtype,
                                              std::initializer_list<kernel::DType> allowed);

/// Which of a launch's buffers are a, b and c of this product, by their place among its buffers:
/// the first two inputs and the one output, of these shapes; bad_spec where they are not.
struct MatmulBuffers {
  std::size_t a = 0, b = 0, c = 0;
};
[[nodiscard]] Result<MatmulBuffers> matmul_buffers(const kernel::LaunchSpec& launch,
                                                   const MatmulProblem& problem);

} // namespace hebe::tune
