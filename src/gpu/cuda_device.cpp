#include "gpu/cuda_device.hpp"

#include "gpu/cuda_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace hebe::gpu {
namespace {

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

Result<int> attribute(const CudaDriver& d, CUdevice_attribute which, CUdevice device) {
  int value = 0;
  HEBE_CHECK(d.check(d.p_cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute"));
  return value;
}

Result<DeviceInfo> info_of(const CudaDriver& d, CUdevice device) {
  DeviceInfo info;
  std::array<char, 256> text{};
  HEBE_CHECK(d.check(d.p_cuDeviceGetName(text.data(), 256, device), "cuDeviceGetName"));
  info.name = text.data();
  CUuuid uuid{};
  HEBE_CHECK(d.check(d.p_cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
  info.uuid = uuid_text(uuid);
  HEBE_CHECK(d.check(d.p_cuDeviceGetPCIBusId(text.data(), 256, device), "cuDeviceGetPCIBusId"));
  info.pci_bus_id = text.data();
  std::transform(info.pci_bus_id.begin(), info.pci_bus_id.end(), info.pci_bus_id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  HEBE_TRY(const int major, attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  HEBE_TRY(const int minor, attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  info.arch = 10 * major + minor;
  HEBE_TRY(info.multiprocessors, attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  HEBE_TRY(const int l2, attribute(d, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device));
  HEBE_TRY(const int optin,
           attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
  info.l2 = {static_cast<std::uint64_t>(l2)};
  info.shared_per_block_optin = {static_cast<std::uint64_t>(optin)};
  std::size_t memory = 0;
  HEBE_CHECK(d.check(d.p_cuDeviceTotalMem(&memory, device), "cuDeviceTotalMem"));
  info.memory = {memory};
  int version = 0;
  HEBE_CHECK(d.check(d.p_cuDriverGetVersion(&version), "cuDriverGetVersion"));
  info.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  return info;
}

struct CudaKernel final : Kernel {
  const CudaDriver* d = nullptr;
  const kernel::LaunchSpec* spec = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::vector<kernel::PackedParameter> parameters;
  std::vector<void*> pointers; // into parameters
  DevicePointer scratch = 0;
  kernel::LibraryOperation operation; // in the place of module and function
  CudaKernel() = default;
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;
  ~CudaKernel() override {
    operation = nullptr; // it may still refer to the scratch
    if (scratch != 0) d->p_cuMemFree(scratch);
    if (module != nullptr) d->p_cuModuleUnload(module);
  }
};

struct CudaGraph final : Graph {
  const CudaDriver* d = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstream stream = nullptr;
  ExternalWork work; // instead of graph and exec
  std::uint32_t calls = 0;
  bool in_flight = false; // of external work: something may be
  CudaGraph() = default;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override {
    if (exec != nullptr || in_flight)
      d->p_cuStreamSynchronize(stream); // an interrupted run leaves replays in flight
    if (exec != nullptr) d->p_cuGraphExecDestroy(exec);
    if (graph != nullptr) d->p_cuGraphDestroy(graph);
  }
};

struct CudaEvent final : Event {
  const CudaDriver* d = nullptr;
  CUevent event = nullptr;
  CudaEvent() = default;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override {
    if (event != nullptr) d->p_cuEventDestroy(event);
  }
};

// The cubin's own parameter list against ours: a wrong list would read garbage, silently.
Status check_parameters(const CudaDriver& d, const CudaKernel& k) {
  if (d.p_cuFuncGetParamInfo == nullptr) return {}; // driver older than CUDA 12.4
  const auto mismatch = [&](std::string what) {
    return refuse(
        RefusalCode::abi_mismatch, "kernel \"" + k.spec->entry + "\": " + std::move(what),
        "compile with the Triton version that Hebe pins, or correct the launch spec's arguments");
  };
  std::size_t expected_offset = 0;
  for (std::size_t i = 0; i < k.parameters.size(); ++i) {
    const auto& p = k.parameters[i];
    std::size_t offset = 0, size = 0;
    const auto status = d.p_cuFuncGetParamInfo(k.function, i, &offset, &size);
    if (status == CUDA_ERROR_INVALID_VALUE)
      return mismatch(
          fmt::format("required {} parameters, the cubin has {}", k.parameters.size(), i));
    HEBE_CHECK(d.check(status, "cuFuncGetParamInfo"));
    expected_offset = (expected_offset + p.size - 1) / p.size * p.size;
    if (size != p.size || offset != expected_offset)
      return mismatch(
          fmt::format("parameter {} (\"{}\"): required {} bytes at {}, the cubin has {} at {}", i,
                      p.name, p.size, expected_offset, size, offset));
    expected_offset += p.size;
  }
  std::size_t offset = 0, size = 0;
  if (d.p_cuFuncGetParamInfo(k.function, k.parameters.size(), &offset, &size) == CUDA_SUCCESS)
    return mismatch(fmt::format("the cubin has more than the {} parameters of the launch spec",
                                k.parameters.size()));
  return {};
}

class CudaDevice final : public Device {
public:
  CudaDevice(const CudaDriver& d, CUdevice device, DeviceInfo info, Clock& clock)
      : d_(d), device_(device), info_(std::move(info)), clock_(clock) {}
  // A stream that was handed in is its owner's to destroy.
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override {
    if (own_stream_ != nullptr) d_.p_cuStreamDestroy(own_stream_);
    if (context_ != nullptr) d_.p_cuDevicePrimaryCtxRelease(device_);
  }

  Status open(std::optional<void*> callers_stream) {
    HEBE_CHECK(
        d_.check(d_.p_cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
    if (callers_stream) return adopt(static_cast<CUstream>(*callers_stream));
    HEBE_CHECK(d_.check(d_.p_cuCtxSetCurrent(context_), "cuCtxSetCurrent"));
    HEBE_CHECK(
        d_.check(d_.p_cuStreamCreate(&own_stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
    stream_ = own_stream_;
    return {};
  }

  // The caller's context must be the primary one already: it is left as it was found.
  Status adopt(CUstream stream) {
    CUcontext current = nullptr, of_stream = nullptr;
    HEBE_CHECK(d_.check(d_.p_cuCtxGetCurrent(&current), "cuCtxGetCurrent"));
    if (current == context_)
      HEBE_CHECK(d_.check(d_.p_cuStreamGetCtx(stream, &of_stream), "cuStreamGetCtx"));
    if (of_stream != context_)
      return refuse(RefusalCode::bad_argument,
                    "the stream is not of the primary context of " + info_.uuid +
                        ", or that context is not current on this thread",
                    "make the GPU current (torch.cuda.set_device) and take the stream from it",
                    "stream");
    stream_ = stream;
    return {};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] Clock& clock() override { return clock_; }

  [[nodiscard]] Result<DevicePointer> allocate(Bytes size) override {
    CUdeviceptr pointer = 0;
    HEBE_CHECK(d_.check(d_.p_cuMemAlloc(&pointer, size.count), "cuMemAlloc"));
    return pointer;
  }
  void release(DevicePointer pointer) override { d_.p_cuMemFree(pointer); }
  [[nodiscard]] Status write(DevicePointer to, std::span<const std::byte> from) override {
    HEBE_CHECK(d_.check(d_.p_cuMemcpyHtoD(to, from.data(), from.size()), "cuMemcpyHtoD"));
    // From pageable memory the call may return before the copy is done, and our stream does not
    // wait for the default one.
    return d_.check(d_.p_cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }
  [[nodiscard]] Status read(std::span<std::byte> to, DevicePointer from) override {
    return d_.check(d_.p_cuMemcpyDtoH(to.data(), from, to.size()), "cuMemcpyDtoH");
  }
  [[nodiscard]] Status fill(DevicePointer to, std::byte value, Bytes size) override {
    HEBE_CHECK(
        d_.check(d_.p_cuMemsetD8(to, static_cast<unsigned char>(value), size.count), "cuMemsetD8"));
    return d_.check(d_.p_cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>>
  load(const KernelImage& image, const std::vector<DevicePointer>& buffers) override {
    const auto& spec = *image.launch;
    if (spec.arch / 10 != info_.arch / 10)
      return refuse(RefusalCode::bad_spec,
                    fmt::format("the cubin is for sm_{}, the GPU is sm_{}", spec.arch, info_.arch),
                    "compile the case for this GPU");
    if (spec.profile_scratch.bytes > 0)
      return refuse(RefusalCode::bad_spec,
                    "the kernel is instrumented: it needs a profile scratch buffer",
                    "compile it without Proton's instrumentation");
    auto k = std::make_unique<CudaKernel>();
    k->d = &d_;
    k->spec = &spec;
    if (image.library_call) {
      if (spec.global_scratch.bytes > 0) {
        HEBE_TRY(k->scratch, allocate({spec.global_scratch.bytes}));
      }
      HEBE_TRY(k->operation, image.library_call(buffers, k->scratch));
      return k;
    }
    HEBE_CHECK(d_.check(d_.p_cuModuleLoadData(&k->module, image.cubin.data()), "cuModuleLoadData"));
    HEBE_CHECK(d_.check(d_.p_cuModuleGetFunction(&k->function, k->module, spec.entry.c_str()),
                        "cuModuleGetFunction"));
    HEBE_CHECK(configure_shared_memory(*k));
    if (spec.num_ctas == 16)
      HEBE_CHECK(d_.check(d_.p_cuFuncSetAttribute(
                              k->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                          "cuFuncSetAttribute"));
    if (const auto bytes = spec.programs() * spec.num_ctas * spec.global_scratch.bytes; bytes > 0) {
      HEBE_TRY(k->scratch, allocate({bytes}));
    }
    HEBE_TRY(k->parameters, kernel::pack_parameters(spec, buffers, k->scratch, 0));
    HEBE_CHECK(check_parameters(d_, *k));
    for (auto& p : k->parameters) k->pointers.push_back(p.value.data());
    return k;
  }

  [[nodiscard]] Result<Occupancy> occupancy(Kernel& kernel) override {
    const auto& k = static_cast<CudaKernel&>(kernel);
    if (k.operation)
      return refuse(RefusalCode::unsupported,
                    "a library does not say how its kernels occupy a GPU");
    Occupancy o;
    const auto read_attribute = [&](int& out, CUfunction_attribute which) {
      return d_.check(d_.p_cuFuncGetAttribute(&out, which, k.function), "cuFuncGetAttribute");
    };
    HEBE_CHECK(read_attribute(o.registers, CU_FUNC_ATTRIBUTE_NUM_REGS));
    HEBE_CHECK(read_attribute(o.local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    HEBE_CHECK(read_attribute(o.static_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    HEBE_CHECK(read_attribute(o.max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    HEBE_CHECK(d_.check(d_.p_cuOccupancyMaxActiveBlocksPerMultiprocessor(
                            &o.blocks_per_multiprocessor, k.function,
                            static_cast<int>(32 * k.spec->num_warps), k.spec->shared_bytes),
                        "cuOccupancyMaxActiveBlocksPerMultiprocessor"));
    return o;
  }

  [[nodiscard]] Status launch_once(Kernel& kernel) override {
    HEBE_CHECK(enqueue(static_cast<CudaKernel&>(kernel)));
    return d_.check(d_.p_cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }

  [[nodiscard]] Result<std::unique_ptr<Graph>> capture(Kernel& kernel,
                                                       std::uint32_t launches) override {
    auto g = std::make_unique<CudaGraph>();
    g->d = &d_;
    g->stream = stream_;
    HEBE_CHECK(d_.check(d_.p_cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                        "cuStreamBeginCapture"));
    Status launched;
    for (std::uint32_t i = 0; i < launches && launched; ++i)
      launched = enqueue(static_cast<CudaKernel&>(kernel));
    const auto ended = d_.check(d_.p_cuStreamEndCapture(stream_, &g->graph), "cuStreamEndCapture");
    HEBE_CHECK(launched);
    HEBE_CHECK(ended);
    HEBE_CHECK(
        d_.check(d_.p_cuGraphInstantiateWithFlags(&g->exec, g->graph, 0), "cuGraphInstantiate"));
    HEBE_CHECK(d_.check(d_.p_cuGraphUpload(g->exec, stream_), "cuGraphUpload"));
    return g;
  }

  [[nodiscard]] Result<std::unique_ptr<Graph>> external(ExternalWork work,
                                                        std::uint32_t calls) override {
    auto g = std::make_unique<CudaGraph>();
    g->d = &d_;
    g->stream = stream_;
    g->work = std::move(work);
    g->calls = calls;
    return g;
  }

  [[nodiscard]] Result<std::unique_ptr<Event>> make_event() override {
    auto e = std::make_unique<CudaEvent>();
    e->d = &d_;
    HEBE_CHECK(d_.check(d_.p_cuEventCreate(&e->event, CU_EVENT_BLOCKING_SYNC), "cuEventCreate"));
    return e;
  }
  [[nodiscard]] Status replay(Graph& graph) override {
    auto& g = static_cast<CudaGraph&>(graph);
    if (!g.work) return d_.check(d_.p_cuGraphLaunch(g.exec, stream_), "cuGraphLaunch");
    g.in_flight = true;
    for (std::uint32_t i = 0; i < g.calls; ++i) HEBE_CHECK(g.work(stream_));
    return {};
  }
  [[nodiscard]] Status record(Event& event) override {
    return d_.check(d_.p_cuEventRecord(static_cast<CudaEvent&>(event).event, stream_),
                    "cuEventRecord");
  }
  [[nodiscard]] Status wait(Event& event) override {
    return d_.check(d_.p_cuEventSynchronize(static_cast<CudaEvent&>(event).event),
                    "cuEventSynchronize");
  }
  [[nodiscard]] Result<bool> reached(Event& event) override {
    const auto status = d_.p_cuEventQuery(static_cast<CudaEvent&>(event).event);
    if (status == CUDA_ERROR_NOT_READY) return false;
    HEBE_CHECK(d_.check(status, "cuEventQuery"));
    return true;
  }
  [[nodiscard]] Result<Seconds> elapsed(Event& from, Event& to) override {
    float ms = 0;
    HEBE_CHECK(d_.check(d_.p_cuEventElapsedTime(&ms, static_cast<CudaEvent&>(from).event,
                                                static_cast<CudaEvent&>(to).event),
                        "cuEventElapsedTime"));
    return Seconds(static_cast<double>(ms) * 1e-3);
  }

private:
  // What Triton 3.6's loader does, and nothing else: below 48 KiB the driver's default carve-out
  // stays.
  Status configure_shared_memory(const CudaKernel& k) {
    const auto optin = static_cast<int>(info_.shared_per_block_optin.count);
    if (k.spec->shared_bytes > info_.shared_per_block_optin.count)
      return refuse(RefusalCode::bad_spec,
                    fmt::format("the kernel needs {} bytes of shared memory, a block has {}",
                                k.spec->shared_bytes, optin));
    if (k.spec->shared_bytes <= 49152 || optin <= 49152) return {};
    HEBE_CHECK(d_.check(d_.p_cuFuncSetCacheConfig(k.function, CU_FUNC_CACHE_PREFER_SHARED),
                        "cuFuncSetCacheConfig"));
    int used = 0;
    HEBE_CHECK(
        d_.check(d_.p_cuFuncGetAttribute(&used, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k.function),
                 "cuFuncGetAttribute"));
    return d_.check(d_.p_cuFuncSetAttribute(
                        k.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin - used),
                    "cuFuncSetAttribute");
  }

  Status enqueue(CudaKernel& k) {
    if (k.operation) return k.operation(stream_);
    const auto& s = *k.spec;
    std::array<CUlaunchAttribute, 4> attributes{};
    unsigned count = 0;
    if (s.pdl) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    if (s.cooperative) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      attributes[count++].value.cooperative = 1;
    }
    if (s.num_ctas > 1) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attributes[count].value.clusterDim = {s.num_ctas, 1, 1};
      ++count;
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
      attributes[count++].value.clusterSchedulingPolicyPreference =
          CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    }
    CUlaunchConfig config{};
    config.gridDimX = s.grid[0] * s.num_ctas;
    config.gridDimY = s.grid[1];
    config.gridDimZ = s.grid[2];
    config.blockDimX = 32 * s.num_warps;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = s.shared_bytes;
    config.hStream = stream_;
    config.attrs = attributes.data();
    config.numAttrs = count;
    return d_.check(d_.p_cuLaunchKernelEx(&config, k.function, k.pointers.data(), nullptr),
                    "cuLaunchKernelEx");
  }

  const CudaDriver& d_;
  CUdevice device_;
  DeviceInfo info_;
  Clock& clock_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr, own_stream_ = nullptr;
};

} // namespace

Result<std::string> current_cuda_device() {
  HEBE_TRY(const auto* d, CudaDriver::instance());
  CUcontext current = nullptr;
  HEBE_CHECK(d->check(d->p_cuCtxGetCurrent(&current), "cuCtxGetCurrent"));
  if (current == nullptr)
    return refuse(RefusalCode::no_device, "no CUDA context is current on this thread",
                  "use the GPU once, or say which one is meant", "cuCtxGetCurrent");
  CUdevice device = 0;
  HEBE_CHECK(d->check(d->p_cuCtxGetDevice(&device), "cuCtxGetDevice"));
  HEBE_TRY(const auto info, info_of(*d, device));
  return info.uuid;
}

Result<std::vector<DeviceInfo>> list_cuda_devices() {
  HEBE_TRY(const auto* d, CudaDriver::instance());
  int count = 0;
  HEBE_CHECK(d->check(d->p_cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<DeviceInfo> out;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    HEBE_CHECK(d->check(d->p_cuDeviceGet(&device, i), "cuDeviceGet"));
    HEBE_TRY(auto info, info_of(*d, device));
    out.push_back(std::move(info));
  }
  return out;
}

Result<std::unique_ptr<Device>> open_cuda_device(const std::string& uuid, Clock& clock,
                                                 std::optional<void*> callers_stream) {
  HEBE_TRY(const auto* d, CudaDriver::instance());
  HEBE_TRY(const auto devices, list_cuda_devices());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].uuid != uuid) continue;
    CUdevice device = 0;
    HEBE_CHECK(d->check(d->p_cuDeviceGet(&device, static_cast<int>(i)), "cuDeviceGet"));
    auto opened = std::make_unique<CudaDevice>(*d, device, devices[i], clock);
    HEBE_CHECK(opened->open(callers_stream));
    return opened;
  }
  return refuse(RefusalCode::no_device, "no CUDA device has UUID " + uuid,
                "list them with `hebe doctor`; check CUDA_VISIBLE_DEVICES");
}

} // namespace hebe::gpu
