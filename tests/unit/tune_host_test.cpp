// Facts about host code: OpenBLAS's product on a made library, and RAPL counters on made trees and
// made clocks.
#include "gpu/sim_device.hpp"
#include "tune/host_meter.hpp"
#include "tune/openblas_backend.hpp"

#include <dlfcn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/made_tree.hpp"
#include "made_package.hpp"

namespace hebe::tune {
namespace {
using test::MadePackage, test::MadeTree;
using testing::HasSubstr, testing::IsEmpty, testing::SizeIs;

constexpr const char* kMade = HEBE_MADE_OPENBLAS;
void idle(int on) {
  reinterpret_cast<void (*)(int)>(::dlsym(::dlopen(kMade, RTLD_NOW), "made_idle"))(on);
}

TEST(HostMeter, an_operation_costs_what_it_draws_beyond_idle) {
  MadePackage package;
  auto meter = HostMeter::open(package.sources(), package.clock);
  ASSERT_TRUE(meter) << to_text(meter.error());
  EXPECT_EQ(meter->identity(),
            (MeterIdentity{"powercap.intel-rapl.package-0", "usable", Provenance::measured}));
  const auto got = package.measure(*meter);
  ASSERT_TRUE(got) << to_text(got.error());
  EXPECT_NEAR(got->idle.mean.value(), 20, 0.05);
  EXPECT_NEAR(got->cost.energy.exact_nj, 60e6, 0.5e6);
  EXPECT_NEAR(got->cost.latency_ns, 2e6, 1);
  EXPECT_GT(got->cost.energy.low_nj, 0);
  EXPECT_LT(got->cost.energy.low_nj, got->cost.energy.exact_nj);
  EXPECT_EQ(got->cost.energy.meter.provenance, Provenance::measured);
}

TEST(HostMeter, a_platform_counter_that_never_advances_is_frozen_by_its_name) {
  MadePackage package;
  package.frozen = true;
  const auto meter =
      HostMeter::open(package.sources("perf.power.energy-psys", "platform"), package.clock);
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, RefusalCode::meter_frozen);
  EXPECT_THAT(meter.error().what, HasSubstr("energy-psys stood at 4242"));
  EXPECT_THAT(meter.error().what, HasSubstr(": frozen"));
}

TEST(HostMeter, a_frozen_zone_of_the_kernels_own_files_is_refused_by_name) {
  const MadeTree tree;
  tree.zone("intel-rapl:0", "package-0", "123456");
  VirtualClock clock;
  const auto meter = HostMeter::open(tree.discover(), clock);
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, RefusalCode::meter_frozen);
  EXPECT_THAT(meter.error().what, HasSubstr("powercap.intel-rapl.package-0 stood at 123456"));
}

TEST(HostMeter, one_frozen_package_of_two_makes_their_sum_worthless) {
  MadePackage one, two;
  two.frozen = true;
  auto all = one.sources();
  for (auto& s : two.sources("powercap.intel-rapl.package-1")) all.push_back(std::move(s));
  const auto meter = HostMeter::open(std::move(all), one.clock);
  ASSERT_FALSE(meter);
  EXPECT_THAT(meter.error().what, HasSubstr("package-1 stood at 4242"));
}

TEST(HostMeter, a_machine_without_counters_is_unsupported) {
  const MadeTree tree;
  VirtualClock clock;
  const auto meter = HostMeter::open(tree.discover(), clock);
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, RefusalCode::meter_unsupported);
  EXPECT_THAT(meter.error().what, HasSubstr("RAPL"));
}

TEST(HostMeter, a_counter_that_freezes_or_falls_meanwhile_gives_no_cost) {
  MadePackage frozen;
  auto meter = HostMeter::open(frozen.sources(), frozen.clock);
  ASSERT_TRUE(meter);
  frozen.frozen = true;
  frozen.clock.sleep_for(Nanos(1));
  auto got = frozen.measure(*meter);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().not_written, "placement.json");
  MadePackage falls;
  falls.fall_at = 150;
  meter = HostMeter::open(falls.sources(), falls.clock);
  ASSERT_TRUE(meter);
  got = falls.measure(*meter);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, RefusalCode::meter_backwards);
}

TEST(HostMeter, counts_go_on_where_the_counter_wraps) {
  MadePackage package;
  package.wraps_at = 100'000'000; // 2 to 5 s
  auto meter = HostMeter::open(package.sources(), package.clock);
  ASSERT_TRUE(meter) << to_text(meter.error());
  const auto got = package.measure(*meter);
  ASSERT_TRUE(got) << to_text(got.error());
  EXPECT_NEAR(got->cost.energy.exact_nj, 60e6, 0.5e6);
  EXPECT_GT(got->readings.idles.back().end.front(), *package.wraps_at);
  EXPECT_TRUE(check_host_readings(got->readings, {}, "here"));
}

TEST(HostMeter, work_that_was_not_done_has_no_cost) {
  MadePackage package;
  auto meter = HostMeter::open(package.sources(), package.clock);
  ASSERT_TRUE(meter);
  const auto got = meter->measure(
      [&](std::int64_t n) -> Status { // an empty loop: time passes, nothing is drawn
        package.clock.sleep_for(Nanos(1'000'000) * n);
        return {};
      },
      []() -> Status { return {}; }, "placement.json");
  ASSERT_FALSE(got) << got->cost.energy.cost_nj;
  EXPECT_EQ(got.error().code, RefusalCode::gate_failed);
  EXPECT_EQ(got.error().not_written, "placement.json");
}

std::shared_ptr<HostMatmul> product(const MatmulProblem& p) {
  const auto library = OpenBlas::open({kMade, {}, {}});
  EXPECT_TRUE(library) << to_text(library.error());
  auto out = *HostMatmul::make(*library, p);
  std::vector<float> a(static_cast<std::size_t>(p.m * p.k)), b(static_cast<std::size_t>(p.k * p.n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
  EXPECT_TRUE(out->fill(false, std::as_bytes(std::span(a))));
  EXPECT_TRUE(out->fill(true, std::as_bytes(std::span(b))));
  EXPECT_FALSE(out->fill(true, std::as_bytes(std::span(a)).first(4)));
  return out;
}

TEST(OpenBlas, the_product_is_compared_before_it_is_believed) {
  idle(0);
  const auto work = product({17, 33, 9, kernel::DType::fp32});
  EXPECT_TRUE(work->check());
  idle(1);
  const auto refused = work->check();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::wrong_output);
  idle(0);
}

TEST(OpenBlas, the_installed_library_multiplies_as_the_made_one) {
  const auto library = OpenBlas::open({{}, OpenBlas::names(), {}});
  ASSERT_TRUE(library) << "scripts/install --tests installs OpenBLAS: " << library.error().what;
  for (const auto type : {kernel::DType::fp32, kernel::DType::bf16}) {
    const auto work = HostMatmul::make(*library, {130, 65, 257, type});
    if (!work && type == kernel::DType::bf16) continue; // not every build has it
    ASSERT_TRUE(work) << work.error().what;
    kernel::Argument a;
    a.dtype = type;
    a.is_buffer = true;
    for (const bool second : {false, true}) {
      a.shape = second ? std::vector<std::int64_t>{257, 65} : std::vector<std::int64_t>{130, 257};
      a.init = kernel::Initialiser{kernel::Initialiser::Kind::uniform, -1, 1, second ? 2U : 1U};
      ASSERT_TRUE(fill_input(**work, second, a));
    }
    const auto checked = (*work)->check();
    EXPECT_TRUE(checked) << to_text(checked.error());
  }
}

TEST(OpenBlas, a_type_that_the_library_does_not_multiply_is_unsupported) {
  const auto library = OpenBlas::open({kMade, {}, {}});
  ASSERT_TRUE(library);
  EXPECT_EQ((*library)->version(), "OpenBLAS 0.0.0 MADE");
  const auto got = HostMatmul::make(*library, {2, 3, 4, kernel::DType::bf16});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, RefusalCode::unsupported);
}

struct Benches {
  VirtualClock clock;
  gpu::SimBoard board{clock, gpu::BoardModel{}, 0, {}};
  gpu::SimDevice device;
  campaign::CasePreparer preparer{{}};
  explicit Benches(bool simulated) : device(board, info(simulated)) {}
  static gpu::DeviceInfo info(bool simulated) {
    auto out = gpu::sim_device_info();
    out.simulated = simulated;
    return out;
  }
  Bench bench() { return {device, preparer, "unused", "fp32", nullptr}; }
};

Offer offered(bool simulated, const std::string& file, const Status& metered) {
  BackendSpec spec;
  spec.name = spec.kind = "openblas";
  for (const char* d : {"m", "n", "k"}) spec.sizes[d] = d;
  OpenBlasBackend backend(spec, {file, {}, {}}, [&] { return metered; });
  Benches b(simulated);
  auto out = backend.offer({"decode", {{"m", 2}, {"n", 3}, {"k", 4}}}, b.bench());
  EXPECT_TRUE(out);
  return out.value_or(Offer{});
}

TEST(OpenBlasBackend, is_offered_where_the_host_is_metered_and_nowhere_else) {
  const auto offer = offered(false, kMade, {});
  ASSERT_THAT(offer.candidates, SizeIs(1));
  EXPECT_EQ(offer.candidates[0].configuration, (Json{{"threads", 3}}));
  EXPECT_THAT(offer.unavailable, IsEmpty());
  const Status frozen = refuse(RefusalCode::meter_frozen, "energy-psys stood at 0 for 1 s");
  for (const auto& refused : {offered(false, kMade, frozen), offered(true, kMade, {}),
                              offered(false, "/nowhere/x", {})}) {
    EXPECT_THAT(refused.candidates, IsEmpty());
    ASSERT_THAT(refused.unavailable, SizeIs(1));
  }
  EXPECT_EQ(offered(false, kMade, frozen).unavailable[0].why.code, RefusalCode::meter_frozen);
  EXPECT_EQ(offered(false, "/nowhere/x", {}).unavailable[0].why.code,
            RefusalCode::toolchain_unavailable);
}

} // namespace
} // namespace hebe::tune
