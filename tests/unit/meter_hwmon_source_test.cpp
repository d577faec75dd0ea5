// Facts about boards and rails of hwmon, on made trees.
#include "meter/hwmon_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/made_tree.hpp"

namespace hebe::meter {
namespace {
using test::MadeTree, test::named;
using testing::HasSubstr;

TEST(HwmonSource, two_amd_boards_are_two_sources_by_pci_id) {
  const MadeTree tree;
  const auto first = tree.pci_hwmon(4, "0000:03:00.0", "amdgpu"),
             second = tree.pci_hwmon(2, "0000:83:00.0", "amdgpu");
  tree.put(first + "power1_average", "42000000\n");
  tree.put(first + "power1_label", "PPT\n");
  tree.put(first + "power1_cap", "300000000\n"); // a limit is no reading
  tree.put(second + "power1_input", "17000000\n");
  tree.put(second + "energy1_input", "99\n");
  auto all = tree.discover();
  ASSERT_EQ(all.size(), 3U);
  const auto& a = *named(all, "hwmon.amdgpu.0000:03:00.0.power1_average").source;
  EXPECT_EQ(a.description().device, "0000:03:00.0");
  EXPECT_EQ(a.description().vendor, "AMD");
  EXPECT_EQ(a.description().driver, "amdgpu, Linux 6.1.0-test");
  EXPECT_EQ(a.description().identity.name, "hwmon.amdgpu.power1_average");
  EXPECT_EQ(a.description().identity.field, "power1_average (PPT)");
  EXPECT_EQ(a.description().identity.unit, "uW");
  EXPECT_EQ(a.description().quantity, Quantity::power);
  auto& b = *named(all, "hwmon.amdgpu.0000:83:00.0.power1_input").source;
  EXPECT_EQ(b.read()->raw, 17'000'000);
  auto& energy = *named(all, "hwmon.amdgpu.0000:83:00.0.energy1_input").source;
  EXPECT_EQ(energy.description().quantity, Quantity::energy_counter);
  EXPECT_EQ(energy.description().identity.unit, "uJ");
  EXPECT_EQ(energy.description().si_per_unit, 1e-6);
}

TEST(HwmonSource, boards_whose_numbers_are_swapped_keep_their_readings) {
  const MadeTree tree;
  const auto first = tree.pci_hwmon(0, "0000:03:00.0", "amdgpu"),
             second = tree.pci_hwmon(1, "0000:83:00.0", "amdgpu");
  tree.put(first + "power1_average", "1\n");
  tree.put(second + "power1_average", "2\n");
  auto all = tree.discover();
  std::filesystem::rename(tree.at("sys/class/hwmon/hwmon0"), tree.at("spare"));
  std::filesystem::rename(tree.at("sys/class/hwmon/hwmon1"), tree.at("sys/class/hwmon/hwmon0"));
  std::filesystem::rename(tree.at("spare"), tree.at("sys/class/hwmon/hwmon1"));
  EXPECT_EQ(named(all, "hwmon.amdgpu.0000:03:00.0.power1_average").source->read()->raw, 1);
  EXPECT_EQ(named(all, "hwmon.amdgpu.0000:83:00.0.power1_average").source->read()->raw, 2);
}

TEST(HwmonSource, intel_boards_offer_energy_of_card_and_chip) {
  const MadeTree tree;
  const auto xe = tree.pci_hwmon(0, "0000:03:00.0", "xe"),
             i915 = tree.pci_hwmon(1, "0000:04:00.0", "i915");
  tree.put(xe + "energy1_input", "10\n");
  tree.put(xe + "energy1_label", "card\n");
  tree.put(xe + "energy2_input", "5\n");
  tree.put(xe + "energy2_label", "pkg\n");
  tree.put(xe + "power1_max", "300000000\n");
  tree.put(i915 + "energy1_input", "7\n");
  auto all = tree.discover();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(named(all, "hwmon.xe.0000:03:00.0.energy1_input").source->description().identity.scope,
            "gpu-card");
  EXPECT_EQ(named(all, "hwmon.xe.0000:03:00.0.energy2_input").source->description().identity.field,
            "energy2_input (pkg)");
  auto& source = *named(all, "hwmon.i915.0000:04:00.0.energy1_input").source;
  EXPECT_EQ(source.description().vendor, "Intel");
  EXPECT_EQ(source.read()->raw, 7);
}

struct Jetson : MadeTree {
  Jetson() {
    put(kFolder + "name", "ina3221\n");
    link(kFolder + "device", "sys/devices/platform/i2c-1/1-0040");
    link("sys/class/hwmon/hwmon3", "sys/devices/platform/i2c-1/1-0040/hwmon/hwmon3");
    rail(1, "VDD_GPU_SOC", "4904", "1233");
  }
  void rail(int n, const char* label, const char* millivolts, const char* milliamperes) const {
    const auto channel = std::to_string(n);
    put(kFolder + "in" + channel + "_label", label);
    put(kFolder + "in" + channel + "_input", millivolts);
    put(kFolder + "curr" + channel + "_input", milliamperes);
  }
  const std::string kFolder = "sys/devices/platform/i2c-1/1-0040/hwmon/hwmon3/";
};
constexpr const char* kRail = "hwmon.ina3221.1-0040.VDD_GPU_SOC";

TEST(HwmonSource, a_jetson_rail_is_volts_times_amperes_in_integers) {
  const Jetson tree;
  tree.rail(2, "VDD_CPU_CV", "4904", "0");
  auto all = tree.discover();
  ASSERT_EQ(all.size(), 2U);
  auto& source = *named(all, kRail).source;
  EXPECT_EQ(source.read()->raw, 4904 * 1233);
  EXPECT_EQ(source.description().identity.unit, "uW");
  EXPECT_EQ(source.description().si_per_unit, 1e-6);
  EXPECT_EQ(source.description().identity.scope, "rail VDD_GPU_SOC");
  EXPECT_EQ(source.description().identity.field,
            "in1_input [mV] * curr1_input [mA], read one after the other");
  EXPECT_EQ(source.description().device, "1-0040");
  EXPECT_EQ(named(all, "hwmon.ina3221.1-0040.VDD_CPU_CV").source->read()->raw, 0);
}

TEST(HwmonSource, half_a_rail_is_no_reading) {
  const Jetson tree;
  auto all = tree.discover();
  tree.put(tree.kFolder + "curr1_input", "-3\n"); // current flowing back
  EXPECT_EQ(named(all, kRail).source->read().error().code, RefusalCode::meter_implausible);
  tree.put(tree.kFolder + "curr1_input", "9223372036854775807\n"); // the product would overflow
  EXPECT_EQ(named(all, kRail).source->read().error().code, RefusalCode::meter_implausible);
  tree.remove(tree.kFolder + "curr1_input");
  const auto gone = named(all, kRail).source->read();
  EXPECT_EQ(gone.error().code, RefusalCode::meter_failed);
  EXPECT_THAT(gone.error().where, HasSubstr("curr1_input"));
  auto again = tree.discover();
  EXPECT_THAT(named(again, kRail).unusable.value().what, HasSubstr("without a current"));
}

TEST(HwmonSource, rails_that_are_off_or_have_no_label_are_named_with_the_reason) {
  const Jetson tree;
  tree.rail(2, "VDD_IN", "5000", "100");
  tree.put(tree.kFolder + "in2_enable", "0\n");
  tree.put(tree.kFolder + "in3_input", "5000\n");
  tree.put(tree.kFolder + "curr3_input", "5\n");
  auto all = tree.discover();
  EXPECT_THAT(named(all, "hwmon.ina3221.1-0040.VDD_IN").unusable.value().what,
              HasSubstr("switched off"));
  EXPECT_THAT(named(all, "hwmon.ina3221.1-0040.in3").unusable.value().what,
              HasSubstr("without a label"));
  EXPECT_TRUE(named(all, kRail).source);
}

TEST(HwmonSource, rails_of_one_label_stay_apart) {
  const Jetson tree;
  tree.rail(2, "NC", "1", "1");
  tree.rail(3, "NC", "1", "2");
  auto all = tree.discover();
  EXPECT_EQ(named(all, "hwmon.ina3221.1-0040.NC").source->read()->raw, 1);
  EXPECT_EQ(named(all, "hwmon.ina3221.1-0040.NC.in3").source->read()->raw, 2);
}

TEST(HwmonSource, what_cannot_be_attributed_or_offers_nothing_is_listed_with_the_reason) {
  const MadeTree tree;
  tree.put("sys/class/hwmon/hwmon0/name", "amdgpu\n"); // no device link
  tree.put("sys/class/hwmon/hwmon0/power1_average", "1\n");
  (void)tree.pci_hwmon(1, "0000:03:00.0", "amdgpu"); // no reading
  tree.put("sys/class/hwmon/hwmon2/name", "corsairpsu\n");
  tree.put("sys/class/hwmon/hwmon2/power1_input", "1\n");
  tree.put("sys/class/hwmon/hwmon3/name", "coretemp\n"); // temperatures: nothing to refuse
  tree.put("sys/class/hwmon/hwmon3/temp1_input", "1\n");
  std::filesystem::create_directories(tree.at("sys/class/hwmon/hwmon4"));
  tree.put(tree.pci_hwmon(5, "0000:04:00.0", "amdgpu") + "power1_average", "lots\n");
  auto all = tree.discover();
  EXPECT_EQ(all.size(), 5U);
  EXPECT_THAT(named(all, "hwmon.amdgpu.no-device").unusable.value().what, HasSubstr("PCI id"));
  EXPECT_THAT(named(all, "hwmon.amdgpu.0000:03:00.0").unusable.value().what, HasSubstr("neither"));
  EXPECT_THAT(named(all, "hwmon.corsairpsu.no-device").unusable.value().what,
              HasSubstr("does not know whose"));
  EXPECT_EQ(named(all, "hwmon.hwmon4").unusable.value().code, RefusalCode::meter_failed);
  EXPECT_EQ(named(all, "hwmon.amdgpu.0000:04:00.0.power1_average").unusable.value().code,
            RefusalCode::meter_implausible);
}

TEST(HwmonSource, a_reading_that_only_root_has_is_refused_with_the_fix) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a file that others may not read";
  const MadeTree tree;
  const auto file = tree.pci_hwmon(0, "0000:03:00.0", "amdgpu") + "power1_average";
  tree.put(file, "1\n");
  std::filesystem::permissions(tree.at(file), std::filesystem::perms::owner_read);
  const int code = test::exit_code_in_child([&] {
    if (!test::become_ordinary_user()) return 77;
    auto all = tree.discover();
    const auto& why = named(all, "hwmon.amdgpu.0000:03:00.0.power1_average").unusable.value();
    if (why.code != RefusalCode::no_permission) return 1;
    return why.next.contains("chmod a+r") && why.next.contains("power1_average") ? 0 : 2;
  });
  if (code == 77) GTEST_SKIP() << "cannot become an ordinary user";
  EXPECT_EQ(code, 0);
}

} // namespace
} // namespace hebe::meter
