// libcuda.so.1 by dlopen: one binary runs with and without a driver. In: nothing; out: a table of
// entry points. Invariant: every required symbol is there, or the table does not exist.
#pragma once

#include "core/result.hpp"

#include <cuda.h>

#include <memory>

namespace hebe::gpu {

// member, type taken from the header's declaration, exported symbol. Symbols are named outright
// where the header would pick a newer alias than old drivers export.
#define HEBE_CUDA_REQUIRED(X)                                                                      \
  X(cuInit, "cuInit")                                                                              \
  X(cuDriverGetVersion, "cuDriverGetVersion")                                                      \
  X(cuGetErrorName, "cuGetErrorName")                                                              \
  X(cuGetErrorString, "cuGetErrorString")                                                          \
  X(cuDeviceGetCount, "cuDeviceGetCount")                                                          \
  X(cuDeviceGet, "cuDeviceGet")                                                                    \
  X(cuDeviceGetName, "cuDeviceGetName")                                                            \
  X(cuDeviceGetUuid, "cuDeviceGetUuid_v2")                                                         \
  X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId")                                                    \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute")                                                  \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2")                                                       \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                                          \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2")                                     \
  X(cuCtxSetCurrent, "cuCtxSetCurrent")                                                            \
  X(cuCtxGetCurrent, "cuCtxGetCurrent")                                                            \
  X(cuCtxGetDevice, "cuCtxGetDevice")                                                              \
  X(cuStreamGetCtx, "cuStreamGetCtx")                                                              \
  X(cuMemAlloc, "cuMemAlloc_v2")                                                                   \
  X(cuMemFree, "cuMemFree_v2")                                                                     \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2")                                                               \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2")                                                               \
  X(cuMemsetD8, "cuMemsetD8_v2")                                                                   \
  X(cuModuleLoadData, "cuModuleLoadData")                                                          \
  X(cuModuleUnload, "cuModuleUnload")                                                              \
  X(cuModuleGetFunction, "cuModuleGetFunction")                                                    \
  X(cuFuncGetAttribute, "cuFuncGetAttribute")                                                      \
  X(cuFuncSetAttribute, "cuFuncSetAttribute")                                                      \
  X(cuFuncSetCacheConfig, "cuFuncSetCacheConfig")                                                  \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor")    \
  X(cuLaunchKernelEx, "cuLaunchKernelEx")                                                          \
  X(cuStreamCreate, "cuStreamCreate")                                                              \
  X(cuStreamDestroy, "cuStreamDestroy_v2")                                                         \
  X(cuStreamSynchronize, "cuStreamSynchronize")                                                    \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2")                                               \
  X(cuStreamEndCapture, "cuStreamEndCapture")                                                      \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags")                                    \
  X(cuGraphUpload, "cuGraphUpload")                                                                \
  X(cuGraphLaunch, "cuGraphLaunch")                                                                \
  X(cuGraphExecDestroy, "cuGraphExecDestroy")                                                      \
  X(cuGraphDestroy, "cuGraphDestroy")                                                              \
  X(cuEventCreate, "cuEventCreate")                                                                \
  X(cuEventDestroy, "cuEventDestroy_v2")                                                           \
  X(cuEventRecord, "cuEventRecord")                                                                \
  X(cuEventQuery, "cuEventQuery")                                                                  \
  X(cuEventSynchronize, "cuEventSynchronize")                                                      \
  X(cuEventElapsedTime, "cuEventElapsedTime")

struct CudaDriver {
  // The headers redirect some names to versioned ones; decltype sees the same signature either way.
#define X(name, symbol) decltype(&::name) p_##name = nullptr;
  HEBE_CUDA_REQUIRED(X)
#undef X
  /// CUDA 12.4 and later; absent on older drivers.
  CUresult (*p_cuFuncGetParamInfo)(CUfunction, std::size_t, std::size_t*, std::size_t*) = nullptr;

  /// A call's outcome as a refusal that names the call and the driver's own words.
  [[nodiscard]] Status check(CUresult result, const char* call) const;

  /// Loads and initialises once per process. Refusals: driver_unavailable with dlopen's reason,
  /// no_device.
  [[nodiscard]] static Result<const CudaDriver*> instance();
};

} // namespace hebe::gpu
