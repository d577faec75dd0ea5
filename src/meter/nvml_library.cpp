#include "meter/nvml_library.hpp"

#include <dlfcn.h>

#include <string>

namespace hebe::meter {
namespace {

struct CodeRow {
  nvmlReturn_t nvml;
  RefusalCode ours;
  const char* next;
};
// NVML's codes that a user meets, and what they can do about them.
constexpr CodeRow kCodes[] = {
    {NVML_ERROR_NOT_SUPPORTED, RefusalCode::meter_unsupported,
     "this board or driver does not offer it"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, RefusalCode::meter_unsupported, "install a newer driver"},
    {NVML_ERROR_NOT_FOUND, RefusalCode::meter_unsupported,
     "this board or driver does not offer it"},
    {NVML_ERROR_INVALID_ARGUMENT, RefusalCode::meter_unsupported,
     "this driver does not know the field"},
    {NVML_ERROR_NO_PERMISSION, RefusalCode::no_permission, "run as a user who may read the GPU"},
    {NVML_ERROR_GPU_IS_LOST, RefusalCode::device_error,
     "the GPU fell off the bus: see dmesg, reboot"},
    {NVML_ERROR_RESET_REQUIRED, RefusalCode::device_error,
     "the GPU needs a reset by its administrator"},
    {NVML_ERROR_DRIVER_NOT_LOADED, RefusalCode::driver_unavailable,
     "load the NVIDIA kernel driver"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, RefusalCode::driver_unavailable,
     "library and kernel driver differ: reboot after a driver update"},
};

Result<NvmlLibrary> load() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return refuse(RefusalCode::driver_unavailable,
                  std::string("NVML could not be loaded: ") + (why ? why : "?"),
                  "install the NVIDIA driver, or use --device sim", "libnvidia-ml.so.1");
  }
  NvmlLibrary n;
  std::string missing;
#define X(name, symbol)                                                                            \
  n.p_##name = reinterpret_cast<decltype(n.p_##name)>(::dlsym(library, symbol));                   \
  if (n.p_##name == nullptr) missing += std::string(missing.empty() ? "" : ", ") + (symbol);
  HEBE_NVML_REQUIRED(X)
#undef X
#define X(name, symbol)                                                                            \
  n.p_##name = reinterpret_cast<decltype(n.p_##name)>(::dlsym(library, symbol));
  HEBE_NVML_OPTIONAL(X)
#undef X
  if (!missing.empty())
    return refuse(RefusalCode::driver_unavailable, "NVML lacks " + missing,
                  "install a newer driver", "libnvidia-ml.so.1");
  HEBE_CHECK(n.check(n.p_nvmlInit(), "nvmlInit"));
  return n;
}

} // namespace

Status NvmlLibrary::check(nvmlReturn_t result, std::string_view call) const {
  if (result == NVML_SUCCESS) return {};
  Refusal r{RefusalCode::meter_failed,
            std::string(call) + ": " + p_nvmlErrorString(result) + " (NVML " +
                std::to_string(static_cast<int>(result)) + ")",
            std::string(call),
            "run `hebe doctor`",
            {}};
  for (const auto& row : kCodes)
    if (row.nvml == result) r.code = row.ours, r.next = row.next;
  return std::unexpected(std::move(r));
}

Result<const NvmlLibrary*> NvmlLibrary::instance() {
  static const Result<NvmlLibrary> library = load();
  if (!library) return std::unexpected(library.error());
  return &*library;
}

} // namespace hebe::meter
