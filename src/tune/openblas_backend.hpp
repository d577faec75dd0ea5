// The host's matrix product: OpenBLAS by dlopen. In: a backend of a specification, whether the
// host's energy can be metered; out: host code that holds its own matrices. Invariant: no host code
// is offered where nothing meters it, by the meter's name; what it computed is compared before it
// is believed.
#pragma once

#include "core/provenance.hpp"
#include "tune/cublaslt_backend.hpp"

namespace hebe::tune {

class OpenBlas {
public:
  /// toolchain_unavailable: no library, or one without cblas_sgemm.
  [[nodiscard]] static Result<std::shared_ptr<const OpenBlas>> open(const LibrarySearch& search);
  [[nodiscard]] static std::vector<std::string> names() { return {"libopenblas.so.0"}; }
  [[nodiscard]] const std::filesystem::path& file() const { return library_.file(); }
  [[nodiscard]] std::string version() const; ///< as it says it: "OpenBLAS 0.3.21 …"
  [[nodiscard]] int threads() const;         ///< 1 where it does not say

  // The C interface of BLAS: order and transposes as its enumerations, sizes as 32-bit integers.
  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                const float* a, int lda, const float* b, int ldb, float beta, float* c,
                int ldc) = nullptr;
  /// bf16 in, fp32 out; null where this build has none.
  void (*sbgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const std::uint16_t* a, int lda, const std::uint16_t* b, int ldb, float beta,
                 float* c, int ldc) = nullptr;

private:
  explicit OpenBlas(SharedLibrary library) : library_(std::move(library)) {}
  SharedLibrary library_;
  char* (*get_config_)() = nullptr;
  int (*get_threads_)() = nullptr;
};

/// c[m,n] = a[m,k] b[k,n], row by row, in fp32 or bf16 (which is summed in fp32 and rounded once).
class HostMatmul {
public:
  /// unsupported: a type that this library does not multiply, or sizes beyond its 32 bits.
  [[nodiscard]] static Result<std::shared_ptr<HostMatmul>>
  make(std::shared_ptr<const OpenBlas> library, const MatmulProblem& problem);
  /// An input's bytes, row by row in the problem's type; bad_spec: not as many as it has.
  [[nodiscard]] Status fill(bool second, std::span<const std::byte> bytes);
  void run(std::int64_t times);
  [[nodiscard]] std::vector<std::byte> output() const; ///< in the problem's type
  /// wrong_output: an element was never written, or one of many that are compared with the sum in
  /// fp64 of the inputs that it holds lies outside what rounding allows.
  [[nodiscard]] Status check();

private:
  HostMatmul(std::shared_ptr<const OpenBlas> library, const MatmulProblem& problem);
  [[nodiscard]] double input(bool second, std::size_t index) const;
  std::shared_ptr<const OpenBlas> library_;
  MatmulProblem problem_;
  std::vector<float> a_, b_, c_;
  std::vector<std::uint16_t> a16_, b16_, c16_;
};

/// Fills it with what the buffer's initialiser makes.
[[nodiscard]] Status fill_input(HostMatmul& work, bool second, const kernel::Argument& buffer);

class OpenBlasBackend final : public Backend {
public:
  /// `metered`: why the host's energy cannot be read, if it cannot; asked once, when it is needed.
  /// `provenance`: of what the host's meter gives, which must be that of the board's.
  OpenBlasBackend(BackendSpec spec, LibrarySearch search, std::function<Status()> metered,
                  Provenance provenance = Provenance::measured)
      : spec_(std::move(spec)), search_(std::move(search)), metered_(std::move(metered)),
        provenance_(provenance) {}
  [[nodiscard]] const std::string& name() const override { return spec_.name; }
  [[nodiscard]] Result<Offer> offer(const Shape& shape, const Bench& bench) override;
  /// {"threads": …}, as the library has them.
  [[nodiscard]] Result<Candidate> named(const Json& configuration) const override;
  [[nodiscard]] Result<Prepared> prepare(const Candidate& candidate, const Shape& shape,
                                         const Bench& bench) override;

private:
  [[nodiscard]] Result<Candidate> choice(const Shape& shape, const Bench& bench);
  BackendSpec spec_;
  LibrarySearch search_;
  std::function<Status()> metered_;
  Provenance provenance_;
  std::optional<Status> asked_;
  std::shared_ptr<const OpenBlas> library_;
};

} // namespace hebe::tune
