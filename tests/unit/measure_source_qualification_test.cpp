// Facts about the qualification of sources: a healthy simulated board has one primary and one
// cross-check, and every kind of fault is rejected by its name.
#include "measure/source_qualification.hpp"

#include "measure/source_probe.hpp"

#include <gtest/gtest.h>

#include "../data/support/probed_gpu.hpp"

namespace hebe::measure {
namespace {

const SourceFindings& named(const Qualification& q, std::string_view name) {
  const auto hit =
      std::find_if(q.sources.begin(), q.sources.end(), [&](auto& f) { return f.name == name; });
  EXPECT_NE(hit, q.sources.end()) << name;
  return *hit;
}

constexpr const char* kBuffer = "sim.samples.total_power";
constexpr const char* kCounter = "sim.counter.total_energy";
constexpr const char* kInstant = "sim.field.power_instant";
constexpr const char* kAverage = "sim.field.power_average";

const Qualification& healthy() {
  static const Qualification q = qualify(test::probed());
  return q;
}

TEST(SourceQualification, the_buffer_is_primary_and_the_counter_its_cross_check) {
  const auto& q = healthy();
  EXPECT_EQ(q.primary, kBuffer) << to_json(q).dump(1);
  EXPECT_EQ(q.cross_check, kCounter);
  EXPECT_TRUE(q.qualified()) << q.refusal;
  EXPECT_EQ(std::count_if(q.sources.begin(), q.sources.end(),
                          [](auto& f) { return f.verdict == SourceVerdict::primary; }),
            1);
  EXPECT_EQ(std::count_if(q.sources.begin(), q.sources.end(),
                          [](auto& f) { return f.verdict == SourceVerdict::cross_check; }),
            1);
}

TEST(SourceQualification, a_second_name_of_the_counter_and_the_instant_field_are_usable) {
  for (const char* name : {kInstant, "sim.field.energy", "sim.call.total_energy"}) {
    const auto& f = named(healthy(), name);
    EXPECT_EQ(f.verdict, SourceVerdict::usable) << name << ": " << f.reason;
  }
}

TEST(SourceQualification, a_one_second_average_is_named_as_one_whatever_its_update_period) {
  for (const char* name : {kAverage, "sim.call.power_usage"}) {
    const auto& f = named(healthy(), name);
    EXPECT_EQ(f.rejection, Rejection::one_second_average) << f.reason;
    ASSERT_TRUE(f.statistics.settles_s);
    EXPECT_NEAR(*f.statistics.settles_s, 0.95, 0.1);
    EXPECT_NEAR(f.statistics.period_s->mean, 0.1, 0.005);
  }
}

TEST(SourceQualification, an_unsupported_field_is_a_state_and_no_number) {
  const auto& f = named(healthy(), "sim.field.power_instant.module");
  EXPECT_EQ(f.rejection, Rejection::unsupported);
  EXPECT_NE(f.reason.find("Not Supported"), std::string::npos) << f.reason;
  EXPECT_FALSE(f.statistics.least);
  EXPECT_TRUE(f.levels.empty());
}

TEST(SourceQualification, what_the_model_does_is_what_is_found) {
  const auto& buffer = named(healthy(), kBuffer).statistics;
  EXPECT_NEAR(buffer.period_s->median, 0.020, 0.0005);
  EXPECT_NEAR(static_cast<double>(*buffer.buffer_length), 119, 2);
  EXPECT_NEAR(*buffer.buffer_span_s, 2.36, 0.05);
  EXPECT_EQ(buffer.stamps->domain, "host wall clock");
  EXPECT_LT(std::abs(buffer.stamps->offset_s), 0.03);
  const auto& counter = named(healthy(), kCounter).statistics;
  EXPECT_NEAR(counter.period_s->mean, 0.1, 0.001);
  EXPECT_NEAR(counter.call_s->median, 0.005, 1e-6);
  EXPECT_GT(*counter.zero_differences, 0.9);
  EXPECT_EQ(counter.counter->falls, 0);
  const auto& instant = named(healthy(), kInstant).statistics;
  EXPECT_NEAR(instant.period_s->mean, 0.1, 0.001);
  EXPECT_NEAR(instant.call_s->median, 0.001, 1e-6);
  EXPECT_LT(*instant.settles_s, 0.25);
}

TEST(SourceQualification, sources_agree_at_idle_half_and_full_load_within_their_errors) {
  for (const auto& f : healthy().sources) {
    if (f.verdict == SourceVerdict::rejected || f.name == kBuffer) continue;
    int levels = 0;
    for (const auto& l : f.levels) {
      ASSERT_TRUE(l.ratio);
      EXPECT_NEAR(*l.ratio, 1, 0.01 + 3 * *l.ratio_error) << f.name << " " << name_of(l.level);
      ++levels;
    }
    EXPECT_EQ(levels, 3) << f.name;
  }
}

TEST(SourceQualification, reading_a_simulated_source_costs_no_power) {
  const auto& f = named(healthy(), kInstant);
  ASSERT_TRUE(f.observer);
  EXPECT_LT(std::abs(f.observer->watts), 0.5 + 4 * f.observer->error_w);
}

struct Fault {
  const char* fault;
  const char* source;
  Rejection rejection;
};
void PrintTo(const Fault& f, std::ostream* out) { *out << f.fault; }

class EveryFault : public testing::TestWithParam<Fault> {};

TEST_P(EveryFault, is_rejected_by_its_name_with_a_reason) {
  const auto& p = GetParam();
  const auto q = qualify(test::probed(1, {p.fault}));
  const auto& f = named(q, p.source);
  EXPECT_EQ(f.verdict, SourceVerdict::rejected);
  EXPECT_EQ(name_of(f.rejection), name_of(p.rejection)) << f.reason;
  EXPECT_FALSE(f.reason.empty());
  EXPECT_NE(q.primary, p.source);
  EXPECT_NE(q.cross_check, p.source);
  // Nobody else is blamed for it but other names of the same instrument.
  for (const auto& other : q.sources)
    if (other.rejection == p.rejection && p.rejection != Rejection::one_second_average &&
        std::string_view(p.source) == kInstant) {
      EXPECT_EQ(other.name, p.source) << other.reason;
    }
}

INSTANTIATE_TEST_SUITE_P(
    SourceQualification, EveryFault,
    testing::Values(Fault{"counter_frozen@0", kCounter, Rejection::frozen},
                    Fault{"counter_frozen@30", kCounter, Rejection::frozen},
                    Fault{"counter_backwards@30", kCounter, Rejection::not_monotonic},
                    Fault{"counter_reset@30", kCounter, Rejection::resets},
                    Fault{"counter_wraps@30", kCounter, Rejection::wraps},
                    Fault{"counter_unsupported@0", kCounter, Rejection::unsupported},
                    Fault{"meter_lies@0", kCounter, Rejection::lies},
                    Fault{"samples_frozen@0", kBuffer, Rejection::frozen},
                    Fault{"samples_empty@0", kBuffer, Rejection::empty},
                    Fault{"samples_zero@0", kBuffer, Rejection::implausible},
                    Fault{"samples_implausible@0", kBuffer, Rejection::implausible},
                    Fault{"samples_unsupported@0", kBuffer, Rejection::unsupported},
                    Fault{"samples_foreign_clock@0", kBuffer, Rejection::foreign_clock},
                    Fault{"field_frozen@0", kInstant, Rejection::frozen},
                    Fault{"field_stale@0", kInstant, Rejection::cached_too_long},
                    Fault{"field_lies@0", kInstant, Rejection::lies},
                    Fault{"field_wrong_unit@0", kInstant, Rejection::wrong_unit},
                    Fault{"field_implausible@0", kInstant, Rejection::implausible},
                    Fault{"field_denied@0", kInstant, Rejection::no_permission}),
    [](const auto& i) {
      std::string name = i.param.fault;
      std::replace(name.begin(), name.end(), '@', '_');
      return name;
    });

TEST(SourceQualification, without_a_counter_there_is_no_cross_check_and_the_refusal_says_why) {
  const auto q = qualify(test::probed(1, {"counter_frozen@0"}));
  EXPECT_EQ(q.primary, kBuffer);
  EXPECT_EQ(q.cross_check, "");
  EXPECT_FALSE(q.qualified());
  EXPECT_NE(q.refusal.find("no cross-check"), std::string::npos) << q.refusal;
  EXPECT_NE(q.refusal.find("frozen"), std::string::npos) << q.refusal;
}

// As perf's power/energy-psys on a virtual machine.
TEST(SourceQualification, a_counter_that_opens_and_stands_at_0_is_frozen_not_implausible) {
  auto r = test::probed(1, {});
  for (auto& s : r.sources)
    if (s.description.identity.name == kCounter)
      for (auto& reading : s.readings)
        if (reading.raw) reading.raw = 0;
  const auto& f = named(qualify(r), kCounter);
  EXPECT_EQ(name_of(f.rejection), name_of(Rejection::frozen)) << f.reason;
  EXPECT_NE(f.reason.find("stands at 0"), std::string::npos) << f.reason;
}

TEST(SourceQualification, without_its_buffer_the_board_falls_back_to_the_instant_field) {
  const auto q = qualify(test::probed(1, {"samples_zero@0"}));
  EXPECT_EQ(q.primary, kInstant);
  EXPECT_EQ(q.cross_check, kCounter);
}

TEST(SourceQualification, one_counter_under_three_names_has_one_voice) {
  auto r = test::probed(1, {"meter_lies@0"});
  std::erase_if(r.sources, [](auto& s) {
    const auto& n = s.description.identity.name;
    return n == kAverage || n == "sim.call.power_usage";
  });
  const auto q = qualify(r); // two power sources against three names of a counter
  EXPECT_EQ(q.primary, kBuffer);
  for (const char* name : {kCounter, "sim.field.energy", "sim.call.total_energy"})
    EXPECT_EQ(named(q, name).rejection, Rejection::lies) << name;
}

TEST(SourceQualification, two_sources_that_disagree_are_both_rejected) {
  auto r = test::probed(1, {"meter_lies@0"});
  std::erase_if(r.sources, [](auto& s) {
    const auto& n = s.description.identity.name;
    return n != kBuffer && n != kCounter;
  });
  const auto q = qualify(r);
  for (const auto& f : q.sources) EXPECT_EQ(f.rejection, Rejection::disagrees) << f.reason;
  EXPECT_EQ(q.primary, "");
  EXPECT_NE(q.refusal.find("no primary"), std::string::npos);
}

} // namespace
} // namespace hebe::measure
