// Facts about NVML that need no board.
#include "meter/nvml_meter.hpp"

#include <gtest/gtest.h>

namespace hebe::meter {
namespace {

TEST(NvmlMeter, pci_ids_of_nvml_cuda_and_sysfs_are_one) {
  const std::pair<const char*, const char*> table[] = {
      {"00000000:3B:00.0", "0000:3b:00.0"},
      {"0000:3B:00.0", "0000:3b:00.0"},
      {"0000:3b:00.0", "0000:3b:00.0"},
      {"00000001:3B:00.0", "0001:3b:00.0"},
      {"00010000:3B:00.0", "00010000:3b:00.0"},
      {"", ""},
      {"0", "0"},
      {"sim:0", "sim:0"},
      {"auto", "auto"},
  };
  for (const auto& [text, normal] : table) EXPECT_EQ(normal_pci_id(text), normal) << text;
}

TEST(NvmlMeter, without_a_driver_there_is_a_refusal_that_says_so) {
  const auto boards = list_nvml_boards();
  if (boards) GTEST_SKIP() << "a driver is here";
  EXPECT_EQ(boards.error().code, RefusalCode::driver_unavailable);
  EXPECT_NE(boards.error().what.find("libnvidia-ml"), std::string::npos) << boards.error().what;
  RealClock clock;
  EXPECT_EQ(open_nvml_meter("GPU-0", "0000:00:00.0", clock).error().code,
            RefusalCode::driver_unavailable);
}

} // namespace
} // namespace hebe::meter
