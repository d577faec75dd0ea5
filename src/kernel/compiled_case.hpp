// A case, compiled and stored. In: a case file, its parameters and a target; out: a launch spec and
// the digests of every artifact. Invariant: each artifact is in the store before its digest is
// used.
#pragma once

#include "core/json.hpp"
#include "kernel/artifact_store.hpp"
#include "kernel/launch_spec.hpp"
#include "kernel/worker.hpp"

#include <filesystem>

namespace hebe::kernel {

struct CaseRequest {
  std::filesystem::path file;
  std::string function = "case";
  Json parameters = Json::object(); ///< values, or strings as typed on a command line
  Json options = Json::object();    ///< Triton compile options, checked by name
  int arch = 90;
};

struct CompiledCase {
  CaseRequest request;
  LaunchSpec launch;
  ArtifactSet artifacts;
  Json provenance; ///< source hash, signature, constants, attributes, tool versions
  Json resources;  ///< registers, stack and spills as the cubin says, or why they are not known
  std::string cubin;
  std::string ttgir; ///< what the simulated GPU interprets
  /// In the place of a cubin: artifacts then name the library's file, as "library".
  LibraryCall library_call{};

  /// Whether the compiler may fuse products and sums (enable_fp_fusion), as it does by default.
  [[nodiscard]] bool fp_fusion() const;
};

[[nodiscard]] Result<CompiledCase> compile_case(Worker& worker, const ArtifactStore& store,
                                                const CaseRequest& request,
                                                const std::filesystem::path& cache);

/// The same launch with other code: `ttgir` through the rest of Triton's own pipeline. Its
/// artifacts have no ttir: the text begins below it. compile_failed has the compiler's own words.
[[nodiscard]] Result<CompiledCase> recompile_case(Worker& worker, const ArtifactStore& store,
                                                  const CompiledCase& base,
                                                  const std::string& ttgir,
                                                  const std::filesystem::path& cache);

/// The oracle's values of every output, as files in `folder`. `inputs` maps buffer names to raw
/// files.
struct ReferenceOutput {
  std::filesystem::path file;
  DType dtype = DType::fp32; ///< may be wider than the kernel's
};
[[nodiscard]] Result<std::map<std::string, ReferenceOutput>>
reference_outputs(Worker& worker, const CompiledCase& compiled,
                  const std::map<std::string, std::filesystem::path>& inputs,
                  const std::filesystem::path& folder);

} // namespace hebe::kernel
