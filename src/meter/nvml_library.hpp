// libnvidia-ml.so.1 by dlopen. In: nothing; out: entry points and one error table. Invariant:
// vendor codes become ours here and nowhere else.
#pragma once

#include "core/result.hpp"

#include <nvml.h>

namespace hebe::meter {

// Required in every supported driver.
#define HEBE_NVML_REQUIRED(X)                                                                      \
  X(nvmlInit, "nvmlInit_v2")                                                                       \
  X(nvmlErrorString, "nvmlErrorString")                                                            \
  X(nvmlSystemGetDriverVersion, "nvmlSystemGetDriverVersion")                                      \
  X(nvmlSystemGetNVMLVersion, "nvmlSystemGetNVMLVersion")                                          \
  X(nvmlDeviceGetCount, "nvmlDeviceGetCount_v2")                                                   \
  X(nvmlDeviceGetHandleByIndex, "nvmlDeviceGetHandleByIndex_v2")                                   \
  X(nvmlDeviceGetUUID, "nvmlDeviceGetUUID")                                                        \
  X(nvmlDeviceGetPciInfo, "nvmlDeviceGetPciInfo_v3")                                               \
  X(nvmlDeviceGetName, "nvmlDeviceGetName")                                                        \
  X(nvmlDeviceGetTemperature, "nvmlDeviceGetTemperature")                                          \
  X(nvmlDeviceGetClockInfo, "nvmlDeviceGetClockInfo")                                              \
  X(nvmlDeviceGetPowerManagementLimit, "nvmlDeviceGetPowerManagementLimit")

// Absent on some; a missing one is reported as unsupported when it is asked for.
#define HEBE_NVML_OPTIONAL(X)                                                                      \
  X(nvmlDeviceGetSamples, "nvmlDeviceGetSamples")                                                  \
  X(nvmlDeviceGetFieldValues, "nvmlDeviceGetFieldValues")                                          \
  X(nvmlDeviceGetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption")                    \
  X(nvmlDeviceGetPowerUsage, "nvmlDeviceGetPowerUsage")                                            \
  X(nvmlDeviceGetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksThrottleReasons")           \
  X(nvmlDeviceGetMaxClockInfo, "nvmlDeviceGetMaxClockInfo")                                        \
  X(nvmlDeviceGetApplicationsClock, "nvmlDeviceGetApplicationsClock")                              \
  X(nvmlDeviceGetPowerManagementLimitConstraints, "nvmlDeviceGetPowerManagementLimitConstraints")  \
  X(nvmlDeviceGetPowerManagementDefaultLimit, "nvmlDeviceGetPowerManagementDefaultLimit")          \
  X(nvmlDeviceGetEnforcedPowerLimit, "nvmlDeviceGetEnforcedPowerLimit")                            \
  X(nvmlDeviceGetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses_v3")               \
  X(nvmlDeviceGetGraphicsRunningProcesses, "nvmlDeviceGetGraphicsRunningProcesses_v3")             \
  X(nvmlSystemGetProcessName, "nvmlSystemGetProcessName")                                          \
  X(nvmlDeviceGetMigMode, "nvmlDeviceGetMigMode")                                                  \
  X(nvmlDeviceGetEccMode, "nvmlDeviceGetEccMode")                                                  \
  X(nvmlDeviceGetTotalEccErrors, "nvmlDeviceGetTotalEccErrors")                                    \
  X(nvmlDeviceGetPersistenceMode, "nvmlDeviceGetPersistenceMode")                                  \
  X(nvmlDeviceGetComputeMode, "nvmlDeviceGetComputeMode")                                          \
  X(nvmlDeviceGetPerformanceState, "nvmlDeviceGetPerformanceState")                                \
  X(nvmlDeviceGetVbiosVersion, "nvmlDeviceGetVbiosVersion")                                        \
  X(nvmlEventSetCreate, "nvmlEventSetCreate")                                                      \
  X(nvmlDeviceRegisterEvents, "nvmlDeviceRegisterEvents")                                          \
  X(nvmlEventSetWait, "nvmlEventSetWait_v2")                                                       \
  X(nvmlEventSetFree, "nvmlEventSetFree")

struct NvmlLibrary {
#define X(name, symbol) decltype(&::name) p_##name = nullptr;
  HEBE_NVML_REQUIRED(X)
  HEBE_NVML_OPTIONAL(X)
#undef X
  /// NOT_SUPPORTED and friends become meter_unsupported, NO_PERMISSION no_permission, the rest
  /// meter_failed.
  [[nodiscard]] Status check(nvmlReturn_t result, std::string_view call) const;
  /// Loads and initialises once per process. Refusal: driver_unavailable with dlopen's reason.
  [[nodiscard]] static Result<const NvmlLibrary*> instance();
};

} // namespace hebe::meter
