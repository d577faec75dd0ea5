// Facts about RAPL through powercap, on made trees.
#include "meter/sysfs_file.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/made_tree.hpp"

namespace hebe::meter {
namespace {
using test::MadeTree, test::named;
using testing::HasSubstr;
constexpr const char* kEnergy = "sys/class/powercap/intel-rapl:0/energy_uj";
constexpr const char* kPackage = "powercap.intel-rapl.package-0";

TEST(PowercapSource, zones_and_subzones_are_found_with_unit_scope_and_range) {
  const MadeTree tree;
  tree.put("sys/class/powercap/intel-rapl/enabled", "1\n"); // the control type: no zone
  tree.zone("intel-rapl:0", "package-0", "123456");
  tree.zone("intel-rapl:0:0", "core", "1000");
  tree.zone("intel-rapl:0:1", "dram", "2000", "65712999613");
  tree.zone("intel-rapl:1", "package-1", "5");
  tree.zone("intel-rapl:1:0", "core", "6");
  tree.zone("intel-rapl:2", "psys", "7");
  auto all = tree.discover();
  ASSERT_EQ(all.size(), 6U);
  for (const auto& d : all) EXPECT_TRUE(d.source != nullptr && !d.unusable) << d.name;
  const auto& package = *named(all, kPackage).source;
  EXPECT_EQ(package.description().identity.unit, "uJ");
  EXPECT_EQ(package.description().identity.scope, "cpu-package");
  EXPECT_EQ(package.description().quantity, Quantity::energy_counter);
  EXPECT_EQ(package.description().si_per_unit, 1e-6);
  EXPECT_EQ(package.description().wraps_at, 262143328850);
  EXPECT_EQ(package.description().device, "/sys/class/powercap/intel-rapl:0/energy_uj");
  EXPECT_EQ(package.description().driver, "intel-rapl, Linux 6.1.0-test");
  EXPECT_EQ(package.description().vendor, "Intel");
  EXPECT_EQ(named(all, "powercap.intel-rapl.package-0.dram").source->description().wraps_at,
            65712999613);
  EXPECT_EQ(named(all, "powercap.intel-rapl.package-0.core").source->read()->raw, 1000);
  EXPECT_EQ(named(all, "powercap.intel-rapl.package-1.core").source->read()->raw, 6);
  EXPECT_EQ(named(all, "powercap.intel-rapl.psys").source->description().identity.scope,
            "platform");
}

TEST(PowercapSource, nested_subzones_are_found_once_and_amd_is_named) {
  const MadeTree tree;
  tree.put("proc/cpuinfo", "vendor_id\t: AuthenticAMD\n");
  tree.zone("intel-rapl:0", "package-0", "1");
  tree.zone("intel-rapl:0/intel-rapl:0:0", "core", "2");
  tree.link("sys/class/powercap/intel-rapl:0:0", "sys/class/powercap/intel-rapl:0/intel-rapl:0:0");
  tree.zone("intel-rapl-mmio:0", "package-0", "3"); // the same package, by another way
  auto all = tree.discover();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(named(all, "powercap.intel-rapl.package-0.core").source->read()->raw, 2);
  EXPECT_EQ(named(all, "powercap.intel-rapl-mmio.package-0").source->read()->raw, 3);
  EXPECT_EQ(named(all, kPackage).source->description().vendor, "AMD");
}

TEST(PowercapSource, reading_follows_the_counter_through_its_wrap) {
  const MadeTree tree;
  tree.zone("intel-rapl:0", "package-0", "999", "1000");
  auto all = tree.discover();
  auto& source = *named(all, kPackage).source;
  EXPECT_EQ(source.read()->raw, 999);
  tree.put(kEnergy, "1000\n"); // the range itself is a value
  const auto at_range = source.read().value();
  EXPECT_EQ(at_range.raw, 1000);
  EXPECT_LE(at_range.before, at_range.after);
  tree.put(kEnergy, "3\n");
  EXPECT_EQ(source.read()->raw, 3);
}

// Each way in which the file may be wrong, at discovery and while it is in use.
struct WrongFile {
  const char* name;
  std::function<void(const MadeTree&)> spoil;
  RefusalCode code;
  const char* says;
};
void PrintTo(const WrongFile& wrong, std::ostream* out) { *out << wrong.name; }
class PowercapWrongFile : public testing::TestWithParam<WrongFile> {};

TEST_P(PowercapWrongFile, is_refused_by_name_and_costs_no_other_source) {
  const MadeTree tree;
  tree.zone("intel-rapl:0", "package-0", "5", "1000");
  tree.zone("intel-rapl:1", "package-1", "6");
  auto before = tree.discover();
  GetParam().spoil(tree);
  const auto reading = named(before, kPackage).source->read();
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, GetParam().code);
  EXPECT_THAT(reading.error().what, HasSubstr(GetParam().says));
  EXPECT_THAT(reading.error().where, HasSubstr("intel-rapl:0/energy_uj"));
  EXPECT_FALSE(reading.error().next.empty());

  auto after = tree.discover();
  EXPECT_EQ(after.size(), 2U);
  EXPECT_TRUE(named(after, kPackage).unusable && named(after, kPackage).source == nullptr);
  EXPECT_TRUE(named(after, "powercap.intel-rapl.package-1").source->read());
}

INSTANTIATE_TEST_SUITE_P(
    All, PowercapWrongFile,
    testing::Values(
        WrongFile{"empty", [](const auto& tree) { tree.put(kEnergy, ""); },
                  RefusalCode::meter_failed, "empty"},
        WrongFile{"blank", [](const auto& tree) { tree.put(kEnergy, " \n"); },
                  RefusalCode::meter_failed, "empty"},
        WrongFile{"text", [](const auto& tree) { tree.put(kEnergy, "N/A\n"); },
                  RefusalCode::meter_implausible, "\"N/A\" is not an integer"},
        WrongFile{"fraction", [](const auto& tree) { tree.put(kEnergy, "5.5\n"); },
                  RefusalCode::meter_implausible, "not an integer"},
        WrongFile{"two_numbers", [](const auto& tree) { tree.put(kEnergy, "5\n6\n"); },
                  RefusalCode::meter_implausible, "not an integer"},
        WrongFile{"nul_byte",
                  [](const auto& tree) { tree.put(kEnergy, std::string_view("5\0\n", 3)); },
                  RefusalCode::meter_implausible, "not an integer"},
        WrongFile{"negative", [](const auto& tree) { tree.put(kEnergy, "-1\n"); },
                  RefusalCode::meter_implausible, "-1 is below 0"},
        WrongFile{"over_its_range", [](const auto& tree) { tree.put(kEnergy, "1001\n"); },
                  RefusalCode::meter_implausible, "1001 is over its range, 1000"},
        WrongFile{"over_64_bits",
                  [](const auto& tree) { tree.put(kEnergy, "9223372036854775808\n"); },
                  RefusalCode::meter_implausible, "64-bit"},
        WrongFile{"far_too_long",
                  [](const auto& tree) { tree.put(kEnergy, std::string(5000, '1')); },
                  RefusalCode::meter_implausible, "4096"},
        WrongFile{"a_folder",
                  [](const auto& tree) {
                    tree.remove(kEnergy);
                    std::filesystem::create_directory(tree.at(kEnergy));
                  },
                  RefusalCode::meter_failed, "not a regular file"},
        WrongFile{"a_pipe",
                  [](const auto& tree) {
                    tree.remove(kEnergy);
                    ASSERT_EQ(::mkfifo(tree.at(kEnergy).c_str(), 0666), 0);
                  },
                  RefusalCode::meter_failed, "not a regular file"}),
    [](const auto& tested) { return tested.param.name; });

TEST(PowercapSource, a_file_that_vanished_is_no_reading) {
  const MadeTree tree;
  tree.zone("intel-rapl:0", "package-0", "5");
  auto all = tree.discover();
  tree.remove("sys/class/powercap/intel-rapl:0");
  const auto reading = named(all, kPackage).source->read();
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, RefusalCode::meter_failed);
  EXPECT_THAT(reading.error().what, HasSubstr("gone"));
}

TEST(PowercapSource, a_file_removed_between_open_and_read_is_no_reading) {
  const MadeTree tree;
  tree.put(kEnergy, "5\n");
  const auto fd = open_sysfs(tree.at(kEnergy)).value();
  tree.remove(kEnergy);
  const auto text = read_sysfs(fd, tree.at(kEnergy));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, RefusalCode::meter_failed);
  EXPECT_THAT(text.error().what, HasSubstr("removed while it was read"));
}

TEST(PowercapSource, what_only_root_may_read_is_refused_with_file_reason_and_fix) {
  const MadeTree tree;
  tree.zone("intel-rapl:0", "package-0", "5");
  std::filesystem::permissions(tree.at(kEnergy), std::filesystem::perms::owner_read);
  const int code = test::exit_code_in_child([&] {
    if (!test::become_ordinary_user()) return 77;
    auto all = tree.discover();
    const auto& d = named(all, kPackage);
    if (d.source != nullptr || !d.unusable) return 1;
    const auto& why = *d.unusable;
    if (why.code != RefusalCode::no_permission) return 2;
    if (!why.what.contains("intel-rapl:0/energy_uj")) return 3;
    if (!why.next.contains("chmod a+r " + tree.at(kEnergy).string())) return 4;
    if (!why.next.contains("CVE-2020-8694") || !why.next.contains("2020")) return 5;
    return why.next.contains("CAP_DAC_READ_SEARCH") ? 0 : 6;
  });
  if (code == 77) GTEST_SKIP() << "cannot become an ordinary user";
  // Owned by whoever runs the test: an ordinary user reads his own file.
  if (::geteuid() != 0)
    GTEST_SKIP() << "needs root to make a file that an ordinary user may not read";
  EXPECT_EQ(code, 0);
}

TEST(PowercapSource, a_zone_without_a_range_or_a_counter_is_refused_with_the_reason) {
  for (const char* range : {"", "0", "-5", "many"}) {
    const MadeTree tree;
    tree.zone("intel-rapl:0", "package-0", "5", range);
    auto all = tree.discover();
    EXPECT_THAT(named(all, kPackage).unusable.value().what, HasSubstr("wrap")) << range;
  }
  const MadeTree tree;
  tree.put("sys/class/powercap/dtpm:0/name", "soc\n");
  auto all = tree.discover();
  EXPECT_EQ(named(all, "powercap.dtpm.soc").unusable.value().code, RefusalCode::meter_unsupported);
}

TEST(PowercapSource, a_machine_without_powercap_has_no_source_and_no_refusal) {
  EXPECT_TRUE(MadeTree().discover().empty());
}

} // namespace
} // namespace hebe::meter
