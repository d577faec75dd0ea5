// Facts about the CPU's member of a placement: a made OpenBLAS whose products take time and energy
// of a made package.
#include "core/sha256.hpp"
#include "tune/calibrate_placement.hpp"

#include <dlfcn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"
#include "made_package.hpp"

namespace hebe::tune {
namespace {
using test::MadePackage;
using testing::AllOf, testing::HasSubstr, testing::SizeIs;

constexpr const char* kMade = HEBE_MADE_OPENBLAS;

template <class Function> Function made(const char* name) {
  static void* library = ::dlopen(kMade, RTLD_NOW);
  return reinterpret_cast<Function>(::dlsym(library, name));
}

class Calibrate : public testing::Test {
protected:
  void SetUp() override {
    made<void (*)(int)>("made_idle")(0);
    watch([](void* package) { static_cast<MadePackage*>(package)->work_once(); });
    request_.members = {"cpu"};
    request_.m = 5;
    request_.n = 4;
    request_.k = 3;
    request_.openblas = kMade;
    request_.not_written = "placement.json";
    request_.host_meter = [this](const HostWindows& windows) {
      auto meter =
          HostMeter::open(package_.sources(), package_.clock, Provenance::measured, windows);
      reads_when_opened_ = package_.reads;
      if (after_open_) after_open_();
      return meter;
    };
  }
  void TearDown() override {
    watch(nullptr);
    made<void (*)(int)>("made_idle")(0);
  }
  void watch(void (*to)(void*)) {
    made<void (*)(void (*)(void*), void*)>("made_watch")(to, &package_);
  }
  Result<Placement> calibrate() {
    return calibrate_placement(evidence::DataRoot(root_.path()), request_, {});
  }

  test::ScratchFolder root_;
  MadePackage package_;
  CalibrationRequest request_;
  std::int64_t reads_when_opened_ = 0;
  std::function<void()> after_open_;
};

TEST_F(Calibrate, a_product_on_the_host_is_metered_by_the_hosts_counter) {
  const auto placement = calibrate();
  ASSERT_TRUE(placement) << to_text(placement.error());
  ASSERT_THAT(placement->rows, SizeIs(1));
  const auto& p = placement->rows[0];
  EXPECT_EQ(p.member, "cpu");
  EXPECT_NEAR(static_cast<double>(p.row.energy_nj.value), 60e6, 0.3e6); // 30 W for 2 ms
  EXPECT_LT(p.row.energy_nj.low, 60e6);
  EXPECT_GT(p.row.energy_nj.high, 60e6);
  EXPECT_NEAR(static_cast<double>(p.row.time_ns.value), 2e6, 1);
  EXPECT_NEAR(p.idle_power.value(), 20, 0.1);
  EXPECT_EQ(p.row.meter.name, "powercap.intel-rapl.package-0");
  EXPECT_EQ(p.row.meter.status, "usable");
  EXPECT_EQ(p.row.meter.provenance, Provenance::measured);
  EXPECT_EQ(p.row.platform.driver, "intel-rapl, Linux 6.1");
  EXPECT_EQ(p.row.key.dtype, "fp32");
  EXPECT_EQ(p.row.key.shape, "m=5,n=4,k=3");
  EXPECT_EQ(p.version, "OpenBLAS 0.0.0 MADE");
  EXPECT_EQ(p.row.implementation.configuration, (Json{{"threads", 3}}));
  EXPECT_EQ(p.row.implementation.artifact_sha256, *sha256_of_file(kMade));
}

TEST_F(Calibrate, a_library_that_does_nothing_is_refused_before_a_counter_is_read_for_it) {
  made<void (*)(int)>("made_idle")(1);
  const auto refused = calibrate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::wrong_output);
  EXPECT_THAT(refused.error().what, HasSubstr("member \"cpu\""));
  EXPECT_EQ(refused.error().not_written, "placement.json");
  EXPECT_EQ(package_.reads, reads_when_opened_);
}

TEST_F(Calibrate, a_library_that_stops_computing_while_it_is_metered_has_no_figure) {
  // An empty loop that takes as long, and draws as much, as the product.
  made<void (*)(long)>("made_idle_after")(10);
  const auto refused = calibrate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::wrong_output);
  EXPECT_EQ(exit_code_of(refused.error().code), ExitCode::claim_fails);
  EXPECT_EQ(refused.error().not_written, "placement.json");
  EXPECT_GT(package_.reads, reads_when_opened_); // it was metered, and that is not enough
}

TEST_F(Calibrate, a_counter_that_holds_while_nothing_is_done_is_frozen_and_no_0_watts) {
  after_open_ = [this] { package_.idle_holds_at = package_.milliseconds(); };
  const auto refused = calibrate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::meter_frozen);
  EXPECT_THAT(refused.error().what, AllOf(HasSubstr("powercap.intel-rapl.package-0 stood at"),
                                          HasSubstr("doing nothing"), HasSubstr("frozen")));
  EXPECT_EQ(refused.error().not_written, "placement.json");
}

TEST_F(Calibrate, a_product_whose_cost_rounds_to_0_has_no_row) {
  // 20 mW doing nothing, and 30 uW more for 10 us: 0.3 nJ, and the counter is fine enough to see
  // it.
  package_.unit = 1e-9;
  package_.work_counts = 30;
  package_.one = Nanos(10'000);
  const auto refused = calibrate();
  ASSERT_FALSE(refused) << refused->rows[0].row.energy_nj.value;
  EXPECT_EQ(refused.error().code, RefusalCode::gate_failed);
  EXPECT_THAT(refused.error().what, HasSubstr("rounds to 0 nJ"));
  EXPECT_EQ(refused.error().not_written, "placement.json");
}

TEST_F(Calibrate, work_that_draws_nothing_beyond_idle_has_no_row) {
  package_.work_counts = 0;
  const auto refused = calibrate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::gate_failed);
}

TEST_F(Calibrate, a_member_without_a_figure_is_the_machines_fault_and_no_wrong_usage) {
  request_.m = std::int64_t{1} << 31; // beyond what OpenBLAS counts to
  auto refused = calibrate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code_of(refused.error().code), ExitCode::unfit_environment);
  EXPECT_THAT(refused.error().what, AllOf(HasSubstr("member \"cpu\""), HasSubstr("2147483648")));
  EXPECT_EQ(refused.error().not_written, "placement.json");
  request_.m = 5;
  request_.openblas = "/nowhere/libopenblas.so.0";
  refused = calibrate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::toolchain_unavailable);
  EXPECT_THAT(refused.error().what, AllOf(HasSubstr("member \"cpu\""), HasSubstr("/nowhere/")));
  for (const auto code :
       {RefusalCode::unsupported, RefusalCode::bad_spec, RefusalCode::compile_failed,
        RefusalCode::no_device, RefusalCode::meter_frozen, RefusalCode::toolchain_unavailable}) {
    const auto named = without_figure("cublaslt", {code, "no algorithm", "x", "y", {}});
    EXPECT_EQ(exit_code_of(named.code), ExitCode::unfit_environment) << name_of(code);
    EXPECT_EQ(named.what, "member \"cublaslt\": no algorithm");
  }
  EXPECT_EQ(without_figure("triton", {RefusalCode::wrong_output, "x", {}, {}, {}}).code,
            RefusalCode::wrong_output);
}

TEST_F(Calibrate, a_member_that_nobody_knows_is_wrong_usage) {
  request_.members = {"cpu", "tpu"};
  const auto refused = calibrate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code_of(refused.error().code), ExitCode::usage);
  EXPECT_EQ(package_.reads, 0);
}

} // namespace
} // namespace hebe::tune
