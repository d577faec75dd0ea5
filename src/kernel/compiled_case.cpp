#include "kernel/compiled_case.hpp"

#include <openssl/evp.h>

namespace hebe::kernel {
namespace {

Result<std::string> decode(const Json& artifact, const std::string& kind) {
  const auto& data = artifact.at("data").get_ref<const std::string&>();
  if (artifact.at("encoding") != "base64") return data;
  std::string bytes(data.size() / 4 * 3 + 3, '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                reinterpret_cast<const unsigned char*>(data.data()),
                                static_cast<int>(data.size()));
  if (n < 0) return refuse(RefusalCode::worker_failed, "artifact \"" + kind + "\" is not base64");
  const auto padding = data.ends_with("==") ? 2U : data.ends_with('=') ? 1U : 0U;
  bytes.resize(static_cast<std::size_t>(n) - padding); // EVP counts the padding as zero bytes
  return bytes;
}

Json request_json(const CaseRequest& r) {
  return {{"case", r.file.string()}, {"function", r.function}, {"parameters", r.parameters}};
}

Json compile_json(const CaseRequest& request, const std::filesystem::path& cache) {
  Json parameters = request_json(request);
  parameters["target"] = {{"backend", "cuda"}, {"arch", request.arch}, {"warp_size", 32}};
  parameters["options"] = request.options;
  parameters["cache_dir"] = cache.string();
  return parameters;
}

Result<CompiledCase> stored(const Json& answer, const ArtifactStore& store,
                            const CaseRequest& request, bool from_ttgir) {
  try {
    CompiledCase out;
    out.request = request;
    out.provenance = answer.at("provenance");
    out.resources = answer.at("resources");
    HEBE_TRY(out.launch, LaunchSpec::from_json(answer.at("launch"), "the worker's launch spec"));
    for (const std::string kind : {"source", "ttir", "ttgir", "llir", "ptx", "cubin", "sass"}) {
      // Without nvdisasm there is no sass; provenance says why.
      const bool optional = kind == "sass" || (kind == "ttir" && from_ttgir);
      if (optional && !answer.at("artifacts").contains(kind)) continue;
      if (!answer.at("artifacts").contains(kind))
        return refuse(RefusalCode::compile_failed, "the compilation made no " + kind);
      HEBE_TRY(auto bytes, decode(answer.at("artifacts").at(kind), kind));
      HEBE_TRY(out.artifacts[kind], store.put(bytes));
      if (kind == "ttgir") out.ttgir = bytes;
      if (kind == "cubin") out.cubin = std::move(bytes);
    }
    return out;
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::worker_failed,
                  std::string("the worker's compile result lacks something: ") + e.what());
  }
}

} // namespace

bool CompiledCase::fp_fusion() const {
  const auto options = provenance.find("options");
  return options == provenance.end() || options->value("enable_fp_fusion", true);
}

Result<CompiledCase> compile_case(Worker& worker, const ArtifactStore& store,
                                  const CaseRequest& request, const std::filesystem::path& cache) {
  HEBE_TRY(const auto answer, worker.request("compile", compile_json(request, cache)));
  return stored(answer, store, request, false);
}

Result<CompiledCase> recompile_case(Worker& worker, const ArtifactStore& store,
                                    const CompiledCase& base, const std::string& ttgir,
                                    const std::filesystem::path& cache) {
  auto parameters = compile_json(base.request, cache);
  parameters["ttgir"] = ttgir;
  HEBE_TRY(const auto answer, worker.request("recompile", parameters));
  return stored(answer, store, base.request, true);
}

Result<std::map<std::string, ReferenceOutput>>
reference_outputs(Worker& worker, const CompiledCase& compiled,
                  const std::map<std::string, std::filesystem::path>& inputs,
                  const std::filesystem::path& folder) {
  Json parameters = request_json(compiled.request);
  parameters["inputs"] = Json::object();
  parameters["outputs"] = Json::object();
  for (const auto& [name, path] : inputs) parameters["inputs"][name] = path.string();
  for (const auto& a : compiled.launch.arguments)
    if (a.is_buffer && a.role != Role::in)
      parameters["outputs"][a.name] = (folder / ("expected-" + a.name)).string();
  HEBE_TRY(const auto answer, worker.request("reference", parameters, Seconds(600)));
  try {
    std::map<std::string, ReferenceOutput> out;
    for (const auto& [name, made] : answer.at("outputs").items()) {
      HEBE_TRY(const auto dtype, dtype_from(made.at("dtype").get<std::string>()));
      out[name] = {made.at("path").get<std::string>(), dtype};
    }
    return out;
  } catch (const Json::exception& e) {
    return refuse(RefusalCode::worker_failed,
                  std::string("the worker's reference result lacks something: ") + e.what());
  }
}

} // namespace hebe::kernel
