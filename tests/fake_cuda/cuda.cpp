// A driver that only remembers: what libcuda.so.1 was asked, in order, with two devices, their
// primary contexts, streams and events. It stands where the real one does, for facts about whose
// context and stream work goes to. Nothing runs: an event is reached when its stream was
// synchronised, or at once, and is one millisecond behind the one before.
#include "fake_cuda.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

// The driver's own declarations are left out: their names are macros for newer symbols.

namespace {
using CUresult = int;
using CUdevice = int;
using CUcontext = void*;
using CUstream = void*;
using CUevent = void*;
struct CUuuid {
  char bytes[16];
};
constexpr CUresult CUDA_SUCCESS = 0;

hebe::test::FakeCuda state;
CUcontext primary_of(CUdevice device) {
  return reinterpret_cast<CUcontext>(std::uintptr_t{0x1000} + static_cast<unsigned>(device));
}
CUresult note(const char* what, const void* handle = nullptr) {
  state.calls.push_back({what, handle});
  return CUDA_SUCCESS;
}
template <class T> T fresh(std::uintptr_t from) { return reinterpret_cast<T>(from + ++state.made); }
} // namespace

#define STUB(name)                                                                                 \
  int name() { return note(#name); }

extern "C" {
hebe::test::FakeCuda* fake_cuda() { return &state; }

int cuInit(unsigned) { return CUDA_SUCCESS; }
int cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_FAKE", CUDA_SUCCESS; }
int cuGetErrorString(int, const char** text) { return *text = "as the test asked", CUDA_SUCCESS; }
int cuDeviceGetCount(int* count) { return *count = 2, CUDA_SUCCESS; }
int cuDeviceGet(CUdevice* device, int i) { return *device = i, CUDA_SUCCESS; }
int cuDeviceGetName(char* text, int, CUdevice) { return std::strcpy(text, "Fake"), CUDA_SUCCESS; }
int cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  std::memset(uuid->bytes, device, 16);
  return CUDA_SUCCESS;
}
int cuDeviceGetPCIBusId(char* text, int, CUdevice device) {
  std::strcpy(text, device == 0 ? "0000:01:00.0" : "0000:02:00.0");
  return CUDA_SUCCESS;
}
int cuDeviceGetAttribute(int* value, int, CUdevice) { return *value = 9, CUDA_SUCCESS; }
int cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) { return *bytes = 1 << 30, CUDA_SUCCESS; }
int cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = primary_of(device);
  ++state.retained;
  return CUDA_SUCCESS;
}
int cuDevicePrimaryCtxRelease_v2(CUdevice) { return --state.retained, CUDA_SUCCESS; }
int cuCtxSetCurrent(CUcontext context) {
  state.current = context;
  return note("cuCtxSetCurrent", context);
}
int cuCtxGetCurrent(CUcontext* context) {
  return *context = static_cast<CUcontext>(state.current), CUDA_SUCCESS;
}
int cuCtxGetDevice(CUdevice* device) {
  *device = state.current == primary_of(1) ? 1 : 0;
  return CUDA_SUCCESS;
}
// The special handles are of whatever context is current; a stream's own is in its lowest bit.
int cuStreamGetCtx(CUstream stream, CUcontext* context) {
  *context = stream == nullptr ? static_cast<CUcontext>(state.current)
                               : primary_of(reinterpret_cast<std::uintptr_t>(stream) & 1);
  return CUDA_SUCCESS;
}
int cuStreamCreate(CUstream* stream, unsigned) {
  *stream = fresh<CUstream>(0x20000);
  return note("cuStreamCreate", *stream);
}
int cuStreamDestroy_v2(CUstream stream) { return note("cuStreamDestroy", stream); }
int cuStreamSynchronize(CUstream stream) { return note("cuStreamSynchronize", stream); }
int cuEventCreate(CUevent* event, unsigned) {
  return *event = fresh<CUevent>(0x30000), CUDA_SUCCESS;
}
int cuEventDestroy_v2(CUevent) { return CUDA_SUCCESS; }
int cuEventRecord(CUevent, CUstream stream) { return note("cuEventRecord", stream); }
int cuEventQuery(CUevent) { return CUDA_SUCCESS; }
int cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
int cuEventElapsedTime(float* ms, CUevent, CUevent) { return *ms = 1, CUDA_SUCCESS; }
STUB(cuMemAlloc_v2)
STUB(cuMemFree_v2)
STUB(cuMemcpyHtoD_v2)
STUB(cuMemcpyDtoH_v2)
STUB(cuMemsetD8_v2)
STUB(cuModuleLoadData)
STUB(cuModuleUnload)
STUB(cuModuleGetFunction)
STUB(cuFuncGetAttribute)
STUB(cuFuncSetAttribute)
STUB(cuFuncSetCacheConfig)
STUB(cuOccupancyMaxActiveBlocksPerMultiprocessor)
STUB(cuLaunchKernelEx)
STUB(cuStreamBeginCapture_v2)
STUB(cuStreamEndCapture)
STUB(cuGraphInstantiateWithFlags)
STUB(cuGraphUpload)
STUB(cuGraphLaunch)
STUB(cuGraphExecDestroy)
STUB(cuGraphDestroy)
}
