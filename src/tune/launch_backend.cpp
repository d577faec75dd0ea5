#include "tune/launch_backend.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"

#include <algorithm>

namespace hebe::tune {
namespace {

bool is_digest(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

} // namespace

Result<Candidate> LaunchBackend::named(const Json& configuration) const {
  for (const auto& l : spec_.launches)
    if (configuration == Json{{"launch", l.name}})
      return Candidate{spec_.name, "launch." + l.name, configuration};
  return refuse(RefusalCode::bad_spec,
                "backend \"" + spec_.name + "\" has no launch " + configuration.dump(),
                "a configuration of a launch backend is { launch = NAME }", spec_.where);
}

Result<Offer> LaunchBackend::offer(const Shape&, const Bench&) {
  Offer out;
  for (const auto& l : spec_.launches) {
    HEBE_TRY(auto candidate, named({{"launch", l.name}}));
    out.candidates.push_back(std::move(candidate));
  }
  return out;
}

Result<std::string> LaunchBackend::bytes_of(const std::string& text, const Bench& bench) const {
  if (is_digest(text)) return kernel::ArtifactStore(bench.data_root).get(text);
  auto bytes = read_file(folder_ / text);
  if (!bytes) bytes.error().code = RefusalCode::bad_spec; // the author's file
  return bytes;
}

Result<Prepared> LaunchBackend::prepare(const Candidate& candidate, const Shape&,
                                        const Bench& bench) {
  const auto hit = std::ranges::find_if(spec_.launches, [&](auto& l) {
    return candidate.configuration == Json{{"launch", l.name}};
  });
  if (hit == spec_.launches.end()) return std::unexpected(named(candidate.configuration).error());
  if (bench.baseline == nullptr)
    return refuse(RefusalCode::bad_spec,
                  "a launch cannot be the baseline: it has no reference to be checked against",
                  "name a case as the baseline", spec_.where);
  HEBE_TRY(const auto text, bytes_of(hit->launch, bench));
  HEBE_TRY(const auto json, parse_json(text, hit->launch));
  kernel::CompiledCase compiled;
  HEBE_TRY(compiled.launch, kernel::LaunchSpec::from_json(json, hit->launch));
  if (compiled.launch.arch / 10 != bench.device.info().arch / 10)
    return refuse(RefusalCode::unsupported,
                  "launch \"" + hit->name + "\" is for sm_" + std::to_string(compiled.launch.arch) +
                      ", this GPU is sm_" + std::to_string(bench.device.info().arch),
                  {}, hit->launch);
  const kernel::ArtifactStore store(bench.data_root);
  HEBE_TRY(compiled.cubin, bytes_of(hit->cubin, bench));
  HEBE_TRY(compiled.artifacts["cubin"], store.put(compiled.cubin));
  if (!hit->ttgir.empty()) {
    HEBE_TRY(compiled.ttgir, bytes_of(hit->ttgir, bench));
    HEBE_TRY(compiled.artifacts["ttgir"], store.put(compiled.ttgir));
  }
  compiled.request.parameters = json.value("parameters", Json::object());
  compiled.provenance = {{"source_name", hit->launch}, {"made_by", "given with its launch spec"}};
  compiled.resources = {{"unavailable", "nobody compiled it here"}};
  HEBE_TRY(auto code, in_place_of(*bench.baseline, std::move(compiled)));
  Prepared out;
  out.candidate = candidate;
  out.artifact_sha256 = code->compiled.artifacts.at("cubin");
  out.code = std::move(code);
  return out;
}

} // namespace hebe::tune
