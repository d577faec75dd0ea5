#include "tune/openblas_backend.hpp"

#include "core/sha256.hpp"
#include "kernel/inputs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace hebe::tune {
namespace {

constexpr int kRowByRow = 101, kAsItLies = 111; // CblasRowMajor, CblasNoTrans

std::size_t count(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

// To nearest, ties to even; NaN stays one.
std::uint16_t rounded_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float widened(std::uint16_t value) {
  const auto bits = static_cast<std::uint32_t>(value) << 16;
  float out = 0;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

} // namespace

Result<std::shared_ptr<const OpenBlas>> OpenBlas::open(const LibrarySearch& search) {
  auto library = SharedLibrary::open(search);
  if (!library) {
    library.error().next = "install libopenblas0, or name its file (library = \"…\")";
    return std::unexpected(std::move(library).error());
  }
  const std::shared_ptr<OpenBlas> out(new OpenBlas(std::move(*library)));
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(out->library_.symbol(name));
  };
  find(out->sgemm, "cblas_sgemm");
  find(out->sbgemm, "cblas_sbgemm");
  find(out->get_config_, "openblas_get_config");
  find(out->get_threads_, "openblas_get_num_threads");
  if (out->sgemm == nullptr || out->get_config_ == nullptr)
    return refuse(RefusalCode::toolchain_unavailable,
                  "the library is no OpenBLAS: it lacks cblas_sgemm or openblas_get_config", {},
                  out->file().string());
  return out;
}

std::string OpenBlas::version() const {
  const char* text = get_config_();
  return text != nullptr ? text : "unknown";
}
int OpenBlas::threads() const { return get_threads_ != nullptr ? get_threads_() : 1; }

HostMatmul::HostMatmul(std::shared_ptr<const OpenBlas> library, const MatmulProblem& p)
    : library_(std::move(library)), problem_(p), c_(count(p.m, p.n)) {
  const bool narrow = p.dtype == kernel::DType::bf16;
  a_.resize(narrow ? 0 : count(p.m, p.k));
  b_.resize(narrow ? 0 : count(p.k, p.n));
  a16_.resize(narrow ? count(p.m, p.k) : 0);
  b16_.resize(narrow ? count(p.k, p.n) : 0);
  c16_.resize(narrow ? count(p.m, p.n) : 0);
}

Result<std::shared_ptr<HostMatmul>> HostMatmul::make(std::shared_ptr<const OpenBlas> library,
                                                     const MatmulProblem& p) {
  if (p.dtype == kernel::DType::bf16 && library->sbgemm == nullptr)
    return refuse(RefusalCode::unsupported, "this OpenBLAS multiplies no bf16 (cblas_sbgemm)", {},
                  library->file().string());
  constexpr auto kMost = std::numeric_limits<int>::max();
  if (p.m > kMost || p.n > kMost || p.k > kMost)
    return refuse(
        RefusalCode::unsupported,
        fmt::format("OpenBLAS counts to {}: {} x {} x {} is larger", kMost, p.m, p.n, p.k));
  return std::shared_ptr<HostMatmul>(new HostMatmul(std::move(library), p));
}

Status HostMatmul::fill(bool second, std::span<const std::byte> bytes) {
  const auto into = [&](auto& matrix) -> Status {
    if (bytes.size() != matrix.size() * sizeof matrix[0])
      return refuse(RefusalCode::bad_spec,
                    fmt::format("an input has {} bytes, the product's has {}", bytes.size(),
                                matrix.size() * sizeof matrix[0]));
    std::memcpy(matrix.data(), bytes.data(), bytes.size());
    return {};
  };
  if (problem_.dtype == kernel::DType::bf16) return into(second ? b16_ : a16_);
  return into(second ? b_ : a_);
}

void HostMatmul::run(std::int64_t times) {
  const auto m = static_cast<int>(problem_.m), n = static_cast<int>(problem_.n),
             k = static_cast<int>(problem_.k);
  for (std::int64_t i = 0; i < times; ++i) {
    if (problem_.dtype != kernel::DType::bf16) {
      library_->sgemm(kRowByRow, kAsItLies, kAsItLies, m, n, k, 1, a_.data(), k, b_.data(), n, 0,
                      c_.data(), n);
      continue;
    }
    library_->sbgemm(kRowByRow, kAsItLies, kAsItLies, m, n, k, 1, a16_.data(), k, b16_.data(), n, 0,
                     c_.data(), n);
    for (std::size_t e = 0; e < c_.size(); ++e) c16_[e] = rounded_bf16(c_[e]);
  }
}

std::vector<std::byte> HostMatmul::output() const {
  const auto of = [](const auto& matrix) {
    const auto bytes = std::as_bytes(std::span(matrix));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  return problem_.dtype == kernel::DType::bf16 ? of(c16_) : of(c_);
}

double HostMatmul::input(bool second, std::size_t index) const {
  if (problem_.dtype == kernel::DType::bf16)
    return static_cast<double>(widened((second ? b16_ : a16_)[index]));
  return static_cast<double>((second ? b_ : a_)[index]);
}

Status HostMatmul::check() {
  const auto n = static_cast<std::size_t>(problem_.n), k = static_cast<std::size_t>(problem_.k);
  std::ranges::fill(c_, std::numeric_limits<float>::quiet_NaN());
  run(1);
  const auto wrong = [&](std::size_t e, double expected) {
    return refuse(RefusalCode::wrong_output,
                  fmt::format("element {} of the product is {}, required {}", e, c_[e], expected),
                  "the library did not do the work", library_->file().string());
  };
  constexpr std::size_t kCompared = 509; // a prime: no row or column is passed over
  for (std::size_t e = 0; e < c_.size(); ++e)
    if (!std::isfinite(c_[e])) return wrong(e, 0);
  for (std::size_t i = 0; i < kCompared; ++i) {
    const auto e = (i * (c_.size() / kCompared + 1)) % c_.size();
    double sum = 0, size = 0;
    for (std::size_t j = 0; j < k; ++j) {
      const double term = input(false, e / n * k + j) * input(true, j * n + e % n);
      sum += term;
      size += std::abs(term);
    }
    // k roundings of fp32, each of at most all that was added: Higham's bound for any order.
    const double allowed = (static_cast<double>(k) + 1) * 0x1p-24 * size;
    if (!(std::abs(static_cast<double>(c_[e]) - sum) <= allowed)) return wrong(e, sum);
  }
  return {};
}

Status fill_input(HostMatmul& work, bool second, const kernel::Argument& buffer) {
  std::vector<std::byte> bytes(buffer.bytes().count);
  HEBE_CHECK(kernel::for_each_chunk(buffer, [&](std::size_t at, auto chunk) -> Status {
    std::ranges::copy(chunk, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }));
  return work.fill(second, bytes);
}

Result<Candidate> OpenBlasBackend::choice(const Shape& shape, const Bench& bench) {
  HEBE_TRY(const auto problem,
           matmul_of(spec_, shape, bench.dtype, {kernel::DType::fp32, kernel::DType::bf16}));
  const auto of_board =
      bench.device.info().simulated ? Provenance::simulated : Provenance::measured;
  if (provenance_ != of_board)
    return refuse(RefusalCode::unsupported,
                  fmt::format("the host's cost is {}, this board's {}: they are not compared",
                              name_of(provenance_), name_of(of_board)),
                  {}, spec_.name);
  if (!library_) {
    HEBE_TRY(library_, OpenBlas::open(search_));
  }
  HEBE_CHECK(HostMatmul::make(library_, problem));
  if (!asked_) asked_ = metered_();
  HEBE_CHECK(*asked_);
  return named({{"threads", library_->threads()}});
}

Result<Offer> OpenBlasBackend::offer(const Shape& shape, const Bench& bench) {
  Offer out;
  auto found = choice(shape, bench);
  if (!found && found.error().code == RefusalCode::bad_spec)
    return std::unexpected(std::move(found).error());
  if (found)
    out.candidates.push_back(std::move(*found));
  else
    out.unavailable.push_back(
        {{spec_.name, "openblas.matmul", Json::object()}, std::move(found).error()});
  return out;
}

Result<Candidate> OpenBlasBackend::named(const Json& configuration) const {
  return Candidate{spec_.name, "openblas.matmul", configuration};
}

Result<Prepared> OpenBlasBackend::prepare(const Candidate& candidate, const Shape& shape,
                                          const Bench& bench) {
  if (bench.baseline == nullptr)
    return refuse(RefusalCode::bad_spec, "host code cannot be the baseline of a GPU's search",
                  "name a case as the baseline", spec_.where);
  HEBE_TRY(const auto problem,
           matmul_of(spec_, shape, bench.dtype, {kernel::DType::fp32, kernel::DType::bf16}));
  if (!library_) {
    HEBE_TRY(library_, OpenBlas::open(search_));
  }
  const auto& launch = bench.baseline->compiled.launch;
  HEBE_TRY(const auto places, matmul_buffers(launch, problem));
  HEBE_TRY(const auto work, HostMatmul::make(library_, problem));
  std::string output_name;
  std::size_t place = 0;
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer) continue;
    if (place == places.c) output_name = a.name;
    if (place != places.c) {
      HEBE_CHECK(fill_input(*work, place == places.b, a));
    }
    ++place;
  }
  HEBE_CHECK(work->check());
  Prepared out;
  out.candidate = candidate;
  out.code =
      HostCode{[work](std::int64_t times) -> Status {
                 work->run(times);
                 return {};
               },
               [work, output_name](const std::string& name) -> Result<std::vector<std::byte>> {
                 if (name == output_name) return work->output();
                 return refuse(RefusalCode::internal, "there is no output " + name);
               }};
  HEBE_TRY(out.artifact_sha256, sha256_of_file(library_->file()));
  out.version = library_->version();
  return out;
}

} // namespace hebe::tune
