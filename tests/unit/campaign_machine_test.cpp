// Facts about choosing a machine where there is no GPU.
#include "campaign/machine.hpp"

#include "gpu/cuda_device.hpp"

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::campaign {
namespace {

MachineRequest asking_for(const char* selector) {
  MachineRequest r;
  r.selector = selector;
  return r;
}

bool gpu_here() {
  const auto devices = gpu::list_cuda_devices();
  return devices && !devices->empty();
}

TEST(Machine, sim_is_the_simulated_gpu_and_needs_no_reason) {
  const auto m = Machine::open(asking_for("sim")).value();
  EXPECT_TRUE(m->simulated());
  EXPECT_EQ(m->why(), "");
  EXPECT_TRUE(m->info().simulated);
  EXPECT_EQ(m->meter().board().uuid, m->info().uuid);
  EXPECT_TRUE(m->clock().is_virtual());
  EXPECT_TRUE(m->device().value()->info().simulated);
  EXPECT_EQ(m->device().value(), m->device().value()); // one device, however often
}

TEST(Machine, auto_falls_back_to_the_simulated_gpu_and_says_why) {
  if (gpu_here()) GTEST_SKIP() << "a GPU is here";
  const auto m = Machine::open(asking_for("auto")).value();
  EXPECT_TRUE(m->simulated());
  EXPECT_NE(m->why(), "");
  EXPECT_EQ(m->meter().board().provenance, Provenance::simulated);
}

TEST(Machine, asking_for_a_board_never_falls_back) {
  if (gpu_here()) GTEST_SKIP() << "a GPU is here";
  for (const char* selector : {"0", "GPU-01234567-89ab-cdef-0123-456789abcdef", "0000:3b:00.0",
                               "00000000:3B:00.0", "", "SIM", "cuda"}) {
    const auto m = Machine::open(asking_for(selector));
    ASSERT_FALSE(m) << selector;
    EXPECT_TRUE(m.error().code == RefusalCode::driver_unavailable ||
                m.error().code == RefusalCode::no_device)
        << m.error().what;
    EXPECT_NE(m.error().next.find("--device sim"), std::string::npos) << m.error().next;
    EXPECT_EQ(exit_code_of(m.error().code), ExitCode::unfit_environment);
  }
}

TEST(Machine, a_missing_driver_is_named_by_its_library) {
  if (gpu::list_cuda_devices()) GTEST_SKIP() << "a driver is here";
  const auto error = gpu::list_cuda_devices().error();
  if (error.code != RefusalCode::driver_unavailable)
    GTEST_SKIP() << "a driver without a device is here";
  EXPECT_NE(error.what.find("libcuda.so.1"), std::string::npos);
}

TEST(Machine, faults_reach_the_simulated_board) {
  auto request = asking_for("sim");
  request.faults = test::faults_from({"mig"});
  request.seed = 17;
  const auto m = Machine::open(request).value();
  EXPECT_TRUE(*m->meter().mig_enabled());
  EXPECT_EQ(m->sim_board()->seed(), 17U);
}

gpu::DeviceInfo device_named(const char* uuid, const char* pci) {
  gpu::DeviceInfo d;
  d.uuid = uuid, d.pci_bus_id = pci;
  return d;
}
// As CUDA lists them: not in PCI order.
std::vector<gpu::DeviceInfo> three_boards() {
  return {device_named("GPU-5d3a0000-0000-0000-0000-000000000003", "0000:9b:00.0"),
          device_named("GPU-5d3b0000-0000-0000-0000-000000000001", "0000:1b:00.0"),
          device_named("GPU-77770000-0000-0000-0000-000000000002", "0000:3b:00.0")};
}

TEST(ChooseDevice, an_index_uuid_unique_short_uuid_or_pci_id_names_one_board) {
  for (const auto& [selector, pci] : {std::pair("auto", "0000:1b:00.0"),
                                      {"0", "0000:1b:00.0"},
                                      {"2", "0000:9b:00.0"},
                                      {"GPU-77770000-0000-0000-0000-000000000002", "0000:3b:00.0"},
                                      {"GPU-77", "0000:3b:00.0"},
                                      {"GPU-5d3b", "0000:1b:00.0"},
                                      {"00000000:9B:00.0", "0000:9b:00.0"}})
    EXPECT_EQ(choose_device(three_boards(), selector)->pci_bus_id, pci) << selector;
}

TEST(ChooseDevice, an_unknown_or_ambiguous_one_is_refused_with_what_is_there) {
  for (const char* selector :
       {"3", "-1", "1x", "GPU-5d3", "GPU-", "5d3b", "GPU-88", "0000:99:00.0", ""}) {
    const auto d = choose_device(three_boards(), selector);
    ASSERT_FALSE(d) << selector;
    EXPECT_EQ(d.error().code, RefusalCode::no_device);
    EXPECT_NE(d.error().next.find("0 (GPU-5d3b0000-0000-0000-0000-000000000001, 0000:1b:00.0)"),
              std::string::npos)
        << d.error().next;
    EXPECT_NE(d.error().next.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  }
}

} // namespace
} // namespace hebe::campaign
