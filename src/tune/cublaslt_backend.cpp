#include "tune/cublaslt_backend.hpp"

#include "core/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace hebe::tune {
namespace {
using namespace cublaslt;

constexpr std::size_t kDigits = 16; // of one word of an algorithm

std::string hex_of(const Algorithm& algorithm) {
  std::string out;
  for (const auto word : algorithm.data) out += fmt::format("{:016x}", word);
  return out;
}

// A launch like the baseline's, with a library's call in the place of its kernel.
Result<kernel::LaunchSpec> launch_of(const kernel::LaunchSpec& baseline, std::uint64_t workspace) {
  auto json = baseline.json;
  json["name"] = "cublaslt.matmul";
  json["entry"] = "cublasLtMatmul";
  json["grid"] = {1, 1, 1};
  json["num_ctas"] = 1;
  json["shared_bytes"] = 0;
  json["cooperative"] = json["pdl"] = false;
  json["global_scratch"] = {{"bytes", workspace}, {"align", 256}};
  json["profile_scratch"] = {{"bytes", 0}, {"align", 1}};
  return kernel::LaunchSpec::from_json(json, "cublaslt.matmul");
}

bool has(const kernel::Argument& a, std::int64_t rows, std::int64_t columns, kernel::DType type) {
  return a.dtype == type && a.shape == std::vector<std::int64_t>{rows, columns};
}

} // namespace

Json configuration_of(const CublasLt& library, const HeuristicResult& choice) {
  Json out{{"algorithm", hex_of(choice.algorithm)}, {"workspace_bytes", choice.workspace_bytes}};
  const std::pair<const char*, AlgorithmAttribute> attributes[] = {
      {"id", algorithm_id},          {"tile", tile_id},
      {"split_k", split_k},          {"reduction", reduction_scheme},
      {"swizzle", cta_swizzling},    {"custom", custom_option},
      {"stages", stages_id},         {"inner_shape", inner_shape_id},
      {"cluster", cluster_shape_id},
  };
  for (const auto& [name, attribute] : attributes) {
    const bool is_short = attribute == inner_shape_id || attribute == cluster_shape_id;
    std::uint32_t value = 0;
    std::uint16_t small = 0;
    std::size_t written = 0;
    const auto status =
        library.algorithm_get(&choice.algorithm, attribute,
                              is_short ? static_cast<void*>(&small) : static_cast<void*>(&value),
                              is_short ? sizeof small : sizeof value, &written);
    // An older library has fewer of them.
    out[name] = status != kSuccess ? Json() : Json(is_short ? small : value);
  }
  return out;
}

Result<HeuristicResult> choice_from(const Json& configuration, const std::string& where) {
  HeuristicResult out;
  const auto algorithm = configuration.value("algorithm", Json());
  const auto workspace = configuration.value("workspace_bytes", Json());
  const auto wrong = [&] {
    return refuse(RefusalCode::bad_spec, "not an algorithm of cuBLASLt: " + configuration.dump(),
                  "take a configuration that a tune or a profile has", where);
  };
  if (!algorithm.is_string() || !workspace.is_number_unsigned()) return wrong();
  const auto& text = algorithm.get_ref<const std::string&>();
  if (text.size() != kDigits * out.algorithm.data.size()) return wrong();
  for (std::size_t i = 0; i < out.algorithm.data.size(); ++i) {
    const char* from = text.data() + i * kDigits;
    const auto [end, ec] = std::from_chars(from, from + kDigits, out.algorithm.data[i], 16);
    if (ec != std::errc{} || end != from + kDigits) return wrong();
  }
  out.workspace_bytes = workspace.get<std::size_t>();
  return out;
}

Result<MatmulProblem> matmul_of(const BackendSpec& spec, const Shape& shape,
                                const std::string& dtype,
                                std::initializer_list<kernel::DType> allowed) {
  MatmulProblem out;
  for (const auto& [name, size] : {std::pair{"m", &out.m}, {"n", &out.n}, {"k", &out.k}}) {
    for (const auto& s : shape.sizes)
      if (spec.sizes.at(s.name) == name) *size = s.size;
    if (*size <= 0)
      return refuse(RefusalCode::bad_spec,
                    spec.where + ".sizes: no dimension is the \"" + name + "\" of a product",
                    "say which: sizes = { your_name = \"" + std::string(name) + "\" }", shape.name);
  }
  HEBE_TRY(out.dtype, kernel::dtype_from(dtype));
  std::string names;
  for (const auto type : allowed) {
    if (type == out.dtype) return out;
    names += (names.empty() ? "" : ", ") + std::string(kernel::name_of(type));
  }
  return refuse(RefusalCode::unsupported,
                fmt::format("backend \"{}\" multiplies {}, not {}", spec.name, names, dtype));
}

Result<MatmulBuffers> matmul_buffers(const kernel::LaunchSpec& launch, const MatmulProblem& p) {
  std::vector<std::size_t> inputs, outputs;
  std::vector<const kernel::Argument*> buffers;
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer) continue;
    (a.role == kernel::Role::in ? inputs : outputs).push_back(buffers.size());
    buffers.push_back(&a);
  }
  if (inputs.size() == 2 && outputs.size() == 1 && has(*buffers[inputs[0]], p.m, p.k, p.dtype) &&
      has(*buffers[inputs[1]], p.k, p.n, p.dtype) && has(*buffers[outputs[0]], p.m, p.n, p.dtype))
    return MatmulBuffers{inputs[0], inputs[1], outputs[0]};
  return refuse(RefusalCode::bad_spec,
                fmt::format("\"{}\" is not c[{},{}] = a[{},{}] b[{},{}] in {}, row by row",
                            launch.name, p.m, p.n, p.m, p.k, p.k, p.n, kernel::name_of(p.dtype)),
                "a library's product takes the place of a baseline that is one", launch.name);
}

Result<std::shared_ptr<const CublasLt>> CublasLtBackend::library() {
  if (!library_) {
    HEBE_TRY(library_, CublasLt::open(search_));
  }
  return library_;
}

Result<std::vector<Candidate>> CublasLtBackend::choices(const Shape& shape, const Bench& bench) {
  HEBE_TRY(const auto problem,
           matmul_of(spec_, shape, bench.dtype, {kernel::DType::fp16, kernel::DType::bf16}));
  if (bench.device.info().simulated)
    return refuse(RefusalCode::no_device, "the simulated GPU runs no library", {}, spec_.name);
  HEBE_TRY(const auto lib, library());
  HEBE_TRY(const auto found,
           matmul_heuristics(lib, problem, spec_.workspace_bytes, spec_.heuristics));
  std::vector<Candidate> out;
  for (const auto& choice : found) {
    HEBE_TRY(auto candidate, named(configuration_of(*lib, choice)));
    if (std::ranges::find(out, candidate) == out.end()) out.push_back(std::move(candidate));
  }
  if (out.empty())
    return refuse(
        RefusalCode::unsupported,
        fmt::format("cuBLASLt {} has no algorithm for {} x {} x {} in {} with a workspace "
                    "of {} bytes",
                    lib->version(), problem.m, problem.n, problem.k, bench.dtype,
                    spec_.workspace_bytes),
        {}, "cublasLtMatmulAlgoGetHeuristic");
  return out;
}

Result<Offer> CublasLtBackend::offer(const Shape& shape, const Bench& bench) {
  Offer out;
  auto found = choices(shape, bench);
  if (!found && found.error().code == RefusalCode::bad_spec)
    return std::unexpected(std::move(found).error());
  if (found)
    out.candidates = std::move(*found);
  else
    out.unavailable.push_back(
        {{spec_.name, "cublaslt.matmul", Json::object()}, std::move(found).error()});
  return out;
}

Result<Candidate> CublasLtBackend::named(const Json& configuration) const {
  HEBE_CHECK(choice_from(configuration, spec_.where));
  return Candidate{spec_.name, "cublaslt.matmul", configuration};
}

Result<Prepared> CublasLtBackend::prepare(const Candidate& candidate, const Shape& shape,
                                          const Bench& bench) {
  if (bench.baseline == nullptr)
    return refuse(RefusalCode::bad_spec,
                  "a library cannot be the baseline: it has no reference to be checked against",
                  "name a case as the baseline", spec_.where);
  HEBE_TRY(const auto problem,
           matmul_of(spec_, shape, bench.dtype, {kernel::DType::fp16, kernel::DType::bf16}));
  HEBE_TRY(const auto choice, choice_from(candidate.configuration, spec_.where));
  if (bench.device.info().simulated)
    return refuse(RefusalCode::no_device, "the simulated GPU runs no library", {}, spec_.name);
  HEBE_TRY(const auto lib, library());
  if (library_sha256_.empty()) {
    HEBE_TRY(library_sha256_, sha256_of_file(lib->file()));
  }
  kernel::CompiledCase compiled;
  HEBE_TRY(compiled.launch, launch_of(bench.baseline->compiled.launch, choice.workspace_bytes));
  HEBE_TRY(const auto places, matmul_buffers(compiled.launch, problem));
  compiled.artifacts["library"] = library_sha256_;
  compiled.request.parameters = compiled.launch.json.at("parameters");
  compiled.provenance = {{"source_name", "cuBLASLt"},
                         {"library", lib->file().filename().string()},
                         {"version", lib->version()},
                         {"configuration", candidate.configuration}};
  compiled.resources = {{"unavailable", "a library does not say what its kernels need"}};
  compiled.library_call = [lib, problem, choice, places](std::span<const std::uint64_t> buffers,
                                                         std::uint64_t scratch) {
    return matmul_operation(
        lib, problem, choice.algorithm,
        {buffers[places.a], buffers[places.b], buffers[places.c], scratch, choice.workspace_bytes});
  };
  Prepared out;
  out.candidate = candidate;
  HEBE_TRY(out.code, in_place_of(*bench.baseline, std::move(compiled)));
  out.artifact_sha256 = library_sha256_;
  out.version = lib->version();
  return out;
}

} // namespace hebe::tune
