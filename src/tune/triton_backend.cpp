#include "tune/triton_backend.hpp"

namespace hebe::tune {

Result<Candidate> TritonBackend::named(const Json& configuration) const {
  auto name = "triton." + spec_.subject.file.stem().string();
  if (spec_.subject.function != "case") name += "." + spec_.subject.function;
  return Candidate{spec_.name, std::move(name), configuration};
}

Result<Offer> TritonBackend::offer(const Shape& shape, const Bench&) {
  auto space = spec_.space;
  space.values.update(spec_.option_space.values);
  HEBE_TRY(const auto configurations,
           space.configurations(sizes_json(shape), spec_.where + ".space"));
  Offer out;
  for (const auto& configuration : configurations) {
    HEBE_TRY(auto candidate, named(configuration));
    out.candidates.push_back(std::move(candidate));
  }
  return out;
}

kernel::CaseRequest TritonBackend::request(const Candidate& candidate, const Shape& shape,
                                           int arch) const {
  auto out = spec_.subject;
  out.arch = arch;
  for (const auto& size : shape.sizes) out.parameters[spec_.sizes.at(size.name)] = size.size;
  for (const auto& [key, value] : candidate.configuration.items())
    (spec_.option_space.values.contains(key) ? out.options : out.parameters)[key] = value;
  return out;
}

Result<Prepared> TritonBackend::prepare(const Candidate& candidate, const Shape& shape,
                                        const Bench& bench) {
  const auto asked = request(candidate, shape, bench.device.info().arch);
  Prepared out;
  out.candidate = candidate;
  DeviceCode code;
  if (bench.baseline == nullptr) {
    HEBE_TRY(auto prepared, bench.preparer.prepare(asked));
    code = std::make_shared<campaign::PreparedCase>(std::move(prepared));
  } else {
    HEBE_TRY(auto compiled, bench.preparer.compile(asked));
    HEBE_TRY(code, in_place_of(*bench.baseline, std::move(compiled)));
  }
  out.artifact_sha256 = code->compiled.artifacts.at("cubin");
  if (const auto& hello = bench.preparer.hello();
      hello.contains("triton") && hello.at("triton").contains("version"))
    out.triton = hello.at("triton").at("version").get<std::string>();
  out.code = std::move(code);
  return out;
}

} // namespace hebe::tune
