#include "gpu/cuda_driver.hpp"

#include <dlfcn.h>

#include <string>

namespace hebe::gpu {
namespace {

Result<CudaDriver> load() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return refuse(RefusalCode::driver_unavailable,
                  std::string("the CUDA driver library could not be loaded: ") + (why ? why : "?"),
                  "install the NVIDIA driver, or use --device sim", "libcuda.so.1");
  }
  CudaDriver d;
  std::string missing;
#define X(name, symbol)                                                                            \
  d.p_##name = reinterpret_cast<decltype(d.p_##name)>(::dlsym(library, symbol));                   \
  if (d.p_##name == nullptr) missing += std::string(missing.empty() ? "" : ", ") + (symbol);
  HEBE_CUDA_REQUIRED(X)
#undef X
  if (!missing.empty())
    return refuse(RefusalCode::driver_unavailable, "the CUDA driver lacks " + missing,
                  "install a driver for CUDA 11.8 or newer", "libcuda.so.1");
  d.p_cuFuncGetParamInfo =
      reinterpret_cast<decltype(d.p_cuFuncGetParamInfo)>(::dlsym(library, "cuFuncGetParamInfo"));
  if (const auto status = d.p_cuInit(0); status == CUDA_ERROR_NO_DEVICE)
    return refuse(RefusalCode::no_device, "the CUDA driver sees no device",
                  "check CUDA_VISIBLE_DEVICES and nvidia-smi, or use --device sim", "cuInit");
  else
    HEBE_CHECK(d.check(status, "cuInit"));
  return d;
}

} // namespace

Status CudaDriver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return {};
  const char *name = nullptr, *text = nullptr;
  p_cuGetErrorName(result, &name);
  p_cuGetErrorString(result, &text);
  return refuse(RefusalCode::driver_call_failed,
                std::string(call) + " failed: " + (name ? name : "unknown error") + " (" +
                    std::to_string(static_cast<int>(result)) + "), " + (text ? text : "no text"),
                "see the driver's log (dmesg) for an Xid; run `hebe doctor`", call);
}

Result<const CudaDriver*> CudaDriver::instance() {
  static const Result<CudaDriver> driver = load();
  if (!driver) return std::unexpected(driver.error());
  return &*driver;
}

} // namespace hebe::gpu
