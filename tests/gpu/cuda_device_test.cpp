// Facts about a real GPU: launch ABI, canaries, events, meters. Skipped out loud where there is
// none.
#include "gpu/cuda_device.hpp"
#include "gpu/guarded_buffer.hpp"
#include "kernel/compiled_case.hpp"
#include "meter/nvml_meter.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace hebe {
namespace {

std::string variable_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

class CudaDeviceTest : public testing::Test {
protected:
  void SetUp() override {
    const auto devices = gpu::list_cuda_devices();
    if (!devices || devices->empty())
      GTEST_SKIP() << "no GPU: " << (devices ? "the driver sees none" : devices.error().what);
    info = devices->front();
    auto opened = gpu::open_cuda_device(info.uuid, clock);
    ASSERT_TRUE(opened) << opened.error().what;
    device = std::move(*opened);

    const std::string home = variable_or("HEBE_HOME", HEBE_SOURCE_DIR);
    auto worker =
        kernel::Worker::start({{variable_or("HEBE_PYTHON", "python3"), "-m", "hebe.worker"},
                               {{"PYTHONPATH", home + "/python"}}});
    ASSERT_TRUE(worker) << worker.error().what;
    store = testing::TempDir() + "hebe-gpu-test";
    kernel::CaseRequest request;
    request.file = home + "/kernels/vector_add.py";
    request.parameters = {{"n", kElements}};
    request.arch = info.arch;
    auto made =
        kernel::compile_case(**worker, kernel::ArtifactStore(store), request, store / "cache");
    ASSERT_TRUE(made) << made.error().what;
    compiled = std::move(*made);
  }

  Result<std::unique_ptr<gpu::Kernel>> load(const kernel::LaunchSpec& launch, std::uint64_t bytes) {
    std::vector<gpu::DevicePointer> pointers;
    for (const char* name : {"x", "y", "out"}) {
      auto buffer = gpu::GuardedBuffer::make(*device, name, {bytes});
      EXPECT_TRUE(buffer);
      pointers.push_back(buffer->address());
      buffers.push_back(std::move(*buffer));
    }
    return device->load({&launch, compiled.cubin, {}, {}}, pointers);
  }

  static constexpr int kElements = 1 << 20;
  RealClock clock;
  gpu::DeviceInfo info;
  std::unique_ptr<gpu::Device> device;
  std::filesystem::path store;
  kernel::CompiledCase compiled;
  std::vector<gpu::GuardedBuffer> buffers;
};

TEST_F(CudaDeviceTest, the_launch_spec_of_the_worker_matches_the_cubin) {
  const auto kernel = load(compiled.launch, kElements * 4);
  ASSERT_TRUE(kernel) << kernel.error().what;
  const auto occupancy = device->occupancy(**kernel);
  ASSERT_TRUE(occupancy);
  EXPECT_GT(occupancy->registers, 0);
  EXPECT_GT(occupancy->blocks_per_multiprocessor, 0);
}

TEST_F(CudaDeviceTest, a_missing_an_extra_or_a_wider_parameter_is_refused_before_any_launch) {
  auto missing = compiled.launch, extra = compiled.launch, wider = compiled.launch;
  missing.arguments.pop_back();
  extra.arguments.push_back(extra.arguments.back());
  wider.arguments.back().dtype = kernel::DType::i64;
  for (const auto* launch : {&missing, &extra, &wider}) {
    const auto kernel = load(*launch, kElements * 4);
    ASSERT_FALSE(kernel);
    EXPECT_EQ(kernel.error().code, RefusalCode::abi_mismatch) << kernel.error().what;
  }
}

TEST_F(CudaDeviceTest, a_write_behind_a_buffers_end_is_seen_by_its_canary) {
  const auto kernel =
      load(compiled.launch, kElements * 4 - 256); // the kernel writes 256 bytes too many
  ASSERT_TRUE(kernel);
  ASSERT_TRUE(device->launch_once(**kernel));
  const auto intact = buffers.back().intact();
  ASSERT_FALSE(intact);
  EXPECT_NE(intact.error().what.find("behind its end"), std::string::npos);
}

TEST_F(CudaDeviceTest, a_graph_of_more_launches_takes_longer) {
  const auto kernel = load(compiled.launch, kElements * 4);
  ASSERT_TRUE(kernel);
  const auto seconds = [&](std::uint32_t launches) {
    auto graph = device->capture(**kernel, launches);
    auto begin = device->make_event(), end = device->make_event();
    EXPECT_TRUE(graph && begin && end);
    EXPECT_TRUE(device->replay(**graph));
    EXPECT_TRUE(device->record(**begin));
    EXPECT_TRUE(device->replay(**graph));
    EXPECT_TRUE(device->record(**end));
    EXPECT_TRUE(device->wait(**end));
    return device->elapsed(**begin, **end)->value();
  };
  EXPECT_GT(seconds(1000), 2 * seconds(100));
}

TEST_F(CudaDeviceTest, nvml_knows_the_same_board_and_its_fields_have_values) {
  const auto meter = meter::open_nvml_meter(info.uuid, info.pci_bus_id, clock);
  ASSERT_TRUE(meter) << meter.error().what;
  EXPECT_EQ((*meter)->board().pci_bus_id, meter::normal_pci_id(info.pci_bus_id));
  const auto b = (*meter)->read_boundary();
  ASSERT_TRUE(b && b->energy_mj && b->temperature_c && b->sm_clock_mhz);
  EXPECT_GT(*b->energy_mj, 0);
  EXPECT_GT(*b->temperature_c, 0);
  EXPECT_GT(*b->sm_clock_mhz, 0);
  for (const auto& fact : (*meter)->facts())
    if (fact.name == "board.driver") {
      EXPECT_FALSE(fact.value.get<std::string>().empty());
    }
}

} // namespace
} // namespace hebe
