// Facts about RAPL through perf events, on made trees with a stand-in for the system call.
#include "meter/perf_source.hpp"

#include <cerrno>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "../data/support/made_tree.hpp"

namespace hebe::meter {
namespace {
using test::MadeTree, test::named;
using testing::HasSubstr;

/// A descriptor that gives these counts one after the other, as an event does.
int counts(const MadeTree& tree, const std::vector<std::uint64_t>& values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  tree.put("counts", {bytes, values.size() * sizeof values[0]});
  return ::open(tree.at("counts").c_str(), O_RDONLY | O_CLOEXEC);
}
PerfOpen gives(const MadeTree& tree, const std::vector<std::uint64_t>& values) {
  return [&tree, values](std::uint32_t, std::uint64_t, int) { return counts(tree, values); };
}
PerfOpen fails(int error) {
  return [error](std::uint32_t, std::uint64_t, int) { return -error; };
}

TEST(PerfSource, each_event_of_each_package_is_opened_with_its_own_config) {
  const MadeTree tree;
  tree.put(std::string(MadeTree::kPmu) + "cpumask", "0,16\n");
  tree.perf_event("energy-pkg", "event=0x02");
  tree.perf_event("energy-psys", "event=0x05");
  std::vector<std::tuple<std::uint32_t, std::uint64_t, int>> opened;
  auto all = tree.discover([&](std::uint32_t type, std::uint64_t config, int cpu) {
    opened.emplace_back(type, config, cpu);
    return counts(tree, {1, 2});
  });
  EXPECT_THAT(opened, testing::ElementsAre(std::tuple(23U, 2U, 0), std::tuple(23U, 2U, 16),
                                           std::tuple(23U, 5U, 0), std::tuple(23U, 5U, 16)));
  ASSERT_EQ(all.size(), 4U);
  const auto& d = named(all, "perf.energy-pkg.cpu16").source->description();
  EXPECT_EQ(d.identity.field, "energy-pkg (config 0x2, cpu 16)");
  EXPECT_EQ(d.identity.scope, "cpu-package");
  EXPECT_EQ(d.identity.unit, "2.3283064365386962890625e-10 J");
  EXPECT_EQ(d.si_per_unit, 0x1p-32);
  EXPECT_EQ(d.quantity, Quantity::energy_counter);
  EXPECT_EQ(d.device, "/sys/bus/event_source/devices/power/events/energy-pkg");
  EXPECT_FALSE(d.wraps_at); // the kernel widens the counter to 64 bits
  EXPECT_EQ(named(all, "perf.energy-psys.cpu0").source->description().identity.scope, "platform");
}

TEST(PerfSource, a_range_of_cpus_is_every_cpu_in_it) {
  const MadeTree tree;
  tree.put(std::string(MadeTree::kPmu) + "cpumask", "0-1,8\n");
  tree.perf_event("energy-pkg", "event=0x02");
  auto all = tree.discover(gives(tree, {0, 0}));
  for (const char* name : {"perf.energy-pkg.cpu0", "perf.energy-pkg.cpu1", "perf.energy-pkg.cpu8"})
    EXPECT_TRUE(named(all, name).source) << name;
}

TEST(PerfSource, an_event_that_opens_and_never_advances_is_still_a_source_to_be_judged) {
  const MadeTree tree;
  tree.perf_event("energy-psys", "event=0x05");
  auto all = tree.discover(gives(tree, {0, 0, 0}));
  auto& source = *named(all, "perf.energy-psys.cpu0").source;
  EXPECT_EQ(source.read()->raw, 0);
  EXPECT_EQ(source.read()->raw, 0);
}

TEST(PerfSource, the_raw_count_is_read_anew_and_whole) {
  const MadeTree tree;
  tree.perf_event("energy-pkg", "event=0x02");
  auto all = tree.discover(gives(tree, {1, 1ULL << 40, ~0ULL}));
  auto& source = *named(all, "perf.energy-pkg.cpu0").source;
  const auto reading = source.read().value();
  EXPECT_EQ(reading.raw, std::int64_t{1} << 40);
  EXPECT_LE(reading.before, reading.after);
  const auto huge = source.read();
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, RefusalCode::meter_implausible);
  const auto ended = source.read(); // what the kernel gives once an event is in its error state
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, RefusalCode::meter_failed);
  EXPECT_EQ(ended.error().where, "perf.energy-pkg.cpu0");
}

TEST(PerfSource, a_closed_system_call_is_refused_with_the_setting_and_the_fix) {
  const MadeTree tree;
  tree.perf_event("energy-pkg", "event=0x02");
  for (const int error : {EACCES, EPERM}) {
    auto all = tree.discover(fails(error));
    const auto& why = named(all, "perf.energy-pkg.cpu0").unusable.value();
    EXPECT_EQ(why.code, RefusalCode::no_permission);
    EXPECT_THAT(why.what, HasSubstr("perf_event_paranoid is 2"));
    EXPECT_THAT(why.where, HasSubstr("proc/sys/kernel/perf_event_paranoid"));
    EXPECT_THAT(why.next, HasSubstr("sysctl kernel.perf_event_paranoid=0"));
    EXPECT_THAT(why.next, HasSubstr("CAP_PERFMON"));
  }
}

TEST(PerfSource, other_failures_to_open_say_what_they_are) {
  const MadeTree tree;
  tree.perf_event("energy-pkg", "event=0x02");
  for (const auto& [error, code] : {std::pair{EINVAL, RefusalCode::meter_unsupported},
                                    {ENODEV, RefusalCode::meter_unsupported},
                                    {ENOSYS, RefusalCode::meter_unsupported},
                                    {EMFILE, RefusalCode::meter_failed}}) {
    auto all = tree.discover(fails(error));
    EXPECT_EQ(named(all, "perf.energy-pkg.cpu0").unusable.value().code, code) << error;
  }
}

TEST(PerfSource, a_made_tree_never_reaches_the_kernel_that_runs) {
  const MadeTree tree;
  tree.perf_event("energy-pkg", "event=0x02");
  auto all = tree.discover();
  EXPECT_THAT(named(all, "perf.energy-pkg.cpu0").unusable.value().what, HasSubstr("made tree"));
}

TEST(PerfSource, a_description_that_is_not_understood_is_refused_and_not_opened) {
  struct Case {
    const char *file, *text;
    RefusalCode code;
    const char* says;
  };
  for (const auto& c :
       {Case{"events/energy-pkg.unit", "Watts", RefusalCode::meter_unsupported, "Watts"},
        Case{"events/energy-pkg.unit", "", RefusalCode::meter_failed, "empty"},
        Case{"events/energy-pkg.scale", "0", RefusalCode::meter_implausible, "scale"},
        Case{"events/energy-pkg.scale", "-1e-9", RefusalCode::meter_implausible, "scale"},
        Case{"events/energy-pkg.scale", "nan", RefusalCode::meter_implausible, "scale"},
        Case{"events/energy-pkg.scale", "1e-9 J", RefusalCode::meter_implausible, "scale"},
        Case{"events/energy-pkg", "event=0x02,umask=0x1", RefusalCode::meter_unsupported, "form"},
        Case{"events/energy-pkg", "config=2", RefusalCode::meter_unsupported, "form"}}) {
    const MadeTree tree;
    tree.perf_event("energy-pkg", "event=0x02");
    tree.put(std::string(MadeTree::kPmu) + c.file, c.text);
    int calls = 0;
    auto all = tree.discover([&](std::uint32_t, std::uint64_t, int) { return ++calls, -EINVAL; });
    const auto& why = named(all, "perf.energy-pkg.cpu0").unusable.value();
    EXPECT_EQ(why.code, c.code) << c.file << c.text;
    EXPECT_THAT(why.what, HasSubstr(c.says));
    EXPECT_THAT(why.where, HasSubstr(c.file));
    EXPECT_EQ(calls, 0);
  }
}

TEST(PerfSource, without_a_readable_cpu_mask_or_type_there_is_one_refusal_for_all_events) {
  for (const char* file : {"cpumask", "type"})
    for (const char* text : {"", "x", "5-2", "-1", "0,,1", "99999999999"}) {
      const MadeTree tree;
      tree.perf_event("energy-pkg", "event=0x02");
      tree.put(std::string(MadeTree::kPmu) + file, text);
      auto all = tree.discover(gives(tree, {0}));
      ASSERT_EQ(all.size(), 1U);
      EXPECT_THAT(named(all, "perf.power").unusable.value().where, HasSubstr(file)) << text;
    }
}

TEST(PerfSource, the_real_call_answers_with_a_descriptor_or_an_error_number) {
  const int opened = open_perf_event(0xffffffff, 0, 0); // no such type
  EXPECT_LT(opened, 0);
  EXPECT_GT(opened, -4096);
}

} // namespace
} // namespace hebe::meter
