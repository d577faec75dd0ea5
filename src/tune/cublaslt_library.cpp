#include "tune/cublaslt_library.hpp"

#include <fmt/format.h>

namespace hebe::tune {
namespace {

template <class Function>
void find(const SharedLibrary& library, Function& out, const char* name, std::string& missing) {
  out = reinterpret_cast<Function>(library.symbol(name));
  if (out == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
}

} // namespace

std::vector<std::string> CublasLt::names() { return {"libcublasLt.so.13", "libcublasLt.so.12"}; }

std::vector<std::filesystem::path> CublasLt::folders_in(const std::filesystem::path& packages) {
  return {packages / "nvidia/cu13/lib", packages / "nvidia/cublas/lib"};
}

Result<std::shared_ptr<const CublasLt>> CublasLt::open(const LibrarySearch& search) {
  HEBE_TRY(auto library, SharedLibrary::open(search));
  const std::shared_ptr<CublasLt> out(new CublasLt(std::move(library)));
  auto& t = *out;
  const auto& l = t.library_;
  std::string missing;
  find(l, t.create, "cublasLtCreate", missing);
  find(l, t.destroy, "cublasLtDestroy", missing);
  find(l, t.get_version, "cublasLtGetVersion", missing);
  find(l, t.status_name, "cublasLtGetStatusName", missing);
  find(l, t.status_text, "cublasLtGetStatusString", missing);
  find(l, t.product_create, "cublasLtMatmulDescCreate", missing);
  find(l, t.product_destroy, "cublasLtMatmulDescDestroy", missing);
  find(l, t.product_set, "cublasLtMatmulDescSetAttribute", missing);
  find(l, t.matrix_create, "cublasLtMatrixLayoutCreate", missing);
  find(l, t.matrix_destroy, "cublasLtMatrixLayoutDestroy", missing);
  find(l, t.preference_create, "cublasLtMatmulPreferenceCreate", missing);
  find(l, t.preference_destroy, "cublasLtMatmulPreferenceDestroy", missing);
  find(l, t.preference_set, "cublasLtMatmulPreferenceSetAttribute", missing);
  find(l, t.heuristics, "cublasLtMatmulAlgoGetHeuristic", missing);
  find(l, t.algorithm_check, "cublasLtMatmulAlgoCheck", missing);
  find(l, t.algorithm_get, "cublasLtMatmulAlgoConfigGetAttribute", missing);
  find(l, t.matmul, "cublasLtMatmul", missing);
  if (!missing.empty())
    return refuse(RefusalCode::toolchain_unavailable, "the library lacks " + missing,
                  "use that of CUDA 12 or 13", t.file().string());
  return out;
}

std::string CublasLt::version() const {
  const auto v = get_version();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

Status CublasLt::check(cublaslt::ReturnCode status, const char* call) const {
  if (status == cublaslt::kSuccess) return {};
  const bool cannot = status == cublaslt::kNotSupported || status == cublaslt::kArchMismatch ||
                      status == cublaslt::kInvalidValue;
  const char *name = status_name(status), *text = status_text(status);
  return refuse(cannot ? RefusalCode::unsupported : RefusalCode::driver_call_failed,
                fmt::format("{} failed: {} ({}), {}", call, name ? name : "unknown status", status,
                            text ? text : "no text"),
                cannot ? "" : "see the driver's log (dmesg) for an Xid; run `hebe doctor`", call);
}

} // namespace hebe::tune
